import { Module, type DynamicModule } from '@nestjs/common';
import { Api } from './api.js';
import { AuthProxyController, PROXY_CLOCK } from './auth-proxy.controller.js';
import { Limits, type ProxyLimits } from './limits.js';
import { ProxyHealthController } from './proxy-health.controller.js';

interface ProxyOptions {
  /** Where the Activity API is reached, without a slash at its end. */
  readonly apiUrl: () => string | Promise<string>;
  /** The one that the API knows as PROXY_SECRET. */
  readonly secret: string;
  readonly limits: ProxyLimits;
  readonly clock: { now(): number };
  /** Whether the process is nothing else, so that its health is that of the proxy. */
  readonly isAlone: boolean;
  /** Told that the API does not take the secret, once a minute at most. */
  readonly refused?: (message: string) => void;
}

/** The auth proxy. It knows the Activity API by its address only (docs/adr/0019). */
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
