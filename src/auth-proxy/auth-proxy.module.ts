import { Module, type DynamicModule } from '@nestjs/common';
import type { CaptchaSettings } from '../config/proxy.js';
import { OutboundHttp } from '../http-client/outbound-http.js';
import { Api } from './api.js';
import { AuthProxyController, PROXY_CLOCK } from './auth-proxy.controller.js';
import { Captcha } from './captcha.js';
import { Limits, type ProxyLimits } from './limits.js';
import { IS_STOPPING, ProxyHealthController } from './proxy-health.controller.js';

interface ProxyOptions {
  /** The base URL of the Activity API, without a trailing slash. */
  readonly apiUrl: () => string | Promise<string>;
  /** The secret that the API has as PROXY_SECRET. */
  readonly secret: string;
  readonly limits: ProxyLimits;
  readonly clock: { now(): number };
  /** Whether the process runs only the proxy, so that its health is the proxy's. */
  readonly isAlone: boolean;
  readonly captcha: CaptchaSettings | undefined;
  /** Whether captchas may be checked at http, loopback and private addresses. */
  readonly allowPrivateNetwork: boolean;
  /** Called if the API rejects the secret, or captchas cannot be checked, once a minute at most. */
  readonly failed: (message: string) => void;
  /** Whether the process is about to end, so that callers should go elsewhere. */
  readonly isStopping?: () => boolean;
}

/** The auth proxy. It knows the Activity API only by its address (docs/adr/0019). */
@Module({})
export class AuthProxyModule {
  static register(options: ProxyOptions): DynamicModule {
    const { apiUrl, secret, limits, captcha, allowPrivateNetwork, clock, isAlone, failed, isStopping } = options;
    const http = new OutboundHttp({ allowPrivateNetwork });
    return {
      module: AuthProxyModule,
      controllers: [AuthProxyController, ...(isAlone ? [ProxyHealthController] : [])],
      providers: [
        { provide: Api, useValue: new Api({ url: apiUrl, secret, clock, refused: failed }) },
        { provide: Captcha, useValue: new Captcha({ settings: captcha, http, failed }) },
        { provide: Limits, useValue: new Limits(limits) },
        { provide: PROXY_CLOCK, useValue: clock },
        { provide: IS_STOPPING, useValue: isStopping ?? (() => false) },
      ],
    };
  }
}
