import { Module, type DynamicModule } from '@nestjs/common';
import { Api } from './api.js';
import { AuthProxyController, PROXY_CLOCK } from './auth-proxy.controller.js';
import { Limits, type ProxyLimits } from './limits.js';
import { ProxyHealthController } from './proxy-health.controller.js';

interface ProxyOptions {
  /** The base URL of the Activity API, without a trailing slash. */
  readonly apiUrl: () => string | Promise<string>;
  /** The secret that the API has as PROXY_SECRET. */
  readonly secret: string;
  readonly limits: ProxyLimits;
  readonly clock: { now(): number };
  /** Whether the process runs only the proxy, so that its health is the proxy's. */
  readonly isAlone: boolean;
  /** Called if the API rejects the secret, once a minute at most. */
  readonly refused?: (message: string) => void;
}

/** The auth proxy. It knows the Activity API only by its address (docs/adr/0019). */
@Module({})
export class AuthProxyModule {
  static register({ apiUrl, secret, limits, clock, isAlone, refused }: ProxyOptions): DynamicModule {
    return {
      module: AuthProxyModule,
      controllers: [AuthProxyController, ...(isAlone ? [ProxyHealthController] : [])],
      providers: [
        { provide: Api, useFactory: () => new Api({ url: apiUrl, secret, clock, ...(refused ? { refused } : {}) }) },
        { provide: Limits, useFactory: () => new Limits(limits) },
        { provide: PROXY_CLOCK, useValue: clock },
      ],
    };
  }
}
