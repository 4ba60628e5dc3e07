import { Module } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Logger } from 'pino';
import { AuthProxyModule } from '../auth-proxy/auth-proxy.module.js';
import type { Config } from '../config/config.js';
import { ErrorsFilter } from '../http/errors.filter.js';
import { LOGGER, nestLogger } from '../http/logger.js';
import { HttpMetrics } from '../http/metrics.js';
import { ProxyMetricsController } from '../http/proxy-metrics.js';
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
  const refused = (message: string) => logger.error(message);
  const proxy = AuthProxyModule.register({ apiUrl: () => apiUrl, secret, limits, clock: Date, isAlone: true, refused });
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
  prepareServer(adapter, undefined);
  measure(adapter, app.get(HttpMetrics));
  await app.init();
  return { app, close: () => closeServer(app) };
}
