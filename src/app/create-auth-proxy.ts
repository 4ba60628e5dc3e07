import { Module } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Logger } from 'pino';
import { AuthProxyModule } from '../auth-proxy/auth-proxy.module.js';
import type { Config } from '../config/config.js';
import { release } from '../config/release.js';
import { ErrorsFilter } from '../http/errors.filter.js';
import { LOGGER, nestLogger } from '../logging/logger.js';
import { HttpMetrics } from '../metrics/metrics.js';
import { ProxyMetricsController } from '../http/proxy-metrics.js';
import { Shutdown } from '../http/shutdown.js';
import { closeServer, measure, newAdapter, prepareServer, type Server } from '../http/server.js';

@Module({})
class ProxyModule {}

/** The auth proxy as a separate server, which needs only the address of the API and the secret. */
export async function createAuthProxy(
  config: Config,
  { secret, logger }: { readonly secret: string; readonly logger: Logger },
): Promise<Server> {
  const { apiUrl = '' } = config;
  const limits = { ...config.proxyLimits, keys: config.rateLimitKeys };
  const shutdown = new Shutdown();
  const isStopping = () => shutdown.isAnnounced;
  const proxy = AuthProxyModule.register({
    apiUrl: () => apiUrl,
    secret,
    limits,
    captcha: config.proxyCaptcha,
    allowPrivateNetwork: config.allowPrivateNetwork,
    clock: Date,
    isAlone: true,
    failed: (message) => logger.error(message),
    isStopping,
  });
  const providers = [
    { provide: LOGGER, useValue: logger },
    { provide: APP_FILTER, useClass: ErrorsFilter },
    HttpMetrics,
  ];
  const adapter = newAdapter(config);
  const app = await NestFactory.create<NestFastifyApplication>(
    { module: ProxyModule, imports: [proxy], controllers: [ProxyMetricsController], providers },
    adapter,
    { logger: nestLogger(logger), bodyParser: false, abortOnError: false },
  );
  prepareServer(adapter, { logger, shutdown });
  const metrics = app.get(HttpMetrics);
  metrics.describeBuild({ version: release(), commit: config.buildCommit, node: process.version });
  measure(adapter, metrics);
  await app.init();
  return {
    app,
    shutdown,
    async close() {
      await closeServer({ app, shutdown });
    },
  };
}
