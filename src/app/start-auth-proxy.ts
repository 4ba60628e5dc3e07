import type { Config } from '../config/config.js';
import { createLogger } from '../logging/logger.js';
import { readProxySecret } from '../config/proxy-secret.js';
import { createAuthProxy } from './create-auth-proxy.js';
import { listen, tellCommandLine } from './listen.js';

/** The auth proxy by itself. It stores nothing. */
export async function startAuthProxy(config: Config): Promise<void> {
  const logger = createLogger(config.logLevel);
  const proxy = await createAuthProxy(config, { secret: (await readProxySecret(config)) ?? '', logger });
  await listen(proxy, config, logger);
  const url = config.publicUrl ?? (await proxy.app.getUrl()).replace('[::1]', 'localhost');
  const lines = [
    'The auth proxy of Countersign is up.',
    '',
    `  Auth proxy     ${url}`,
    `  API            ${config.apiUrl}`,
  ];
  process.stdout.write([...lines, ''].join('\n'));
  tellCommandLine({ apiUrl: config.apiUrl, authProxyUrl: url });
}
