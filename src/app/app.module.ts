import { Module, type DynamicModule } from '@nestjs/common';
import { AuthProxyModule } from '../auth-proxy/auth-proxy.module.js';
import { SweepsModule } from '../coordinator/sweeps.module.js';
import { HttpModule } from '../http/http.module.js';
import { WebhooksModule } from '../webhooks/webhooks.module.js';
import { WorldModule, type World } from './world.module.js';

/** A coordinator: its HTTP endpoints and its background work. Each module imports what it needs. */
@Module({ imports: [HttpModule, WebhooksModule, SweepsModule] })
export class AppModule {
  static forRoot(world: World): DynamicModule {
    return { module: AppModule, imports: [WorldModule.forRoot(world), ...authProxy(world)] };
  }
}

/** The auth proxy next to the coordinator, which it reaches by its address like any other client. */
function authProxy({ config, logger, clock, addresses, proxySecret: secret }: World): DynamicModule[] {
  if (config.app !== 'all' || secret === undefined) return [];
  const { apiUrl, proxyLimits, rateLimitKeys: keys, proxyCaptcha: captcha, allowPrivateNetwork } = config;
  return [
    AuthProxyModule.register({
      apiUrl: () => apiUrl ?? addresses.own(),
      secret,
      limits: { ...proxyLimits, keys },
      captcha,
      allowPrivateNetwork,
      clock,
      isAlone: false,
      failed: (message) => logger.error(message),
    }),
  ];
}
