import { Module } from '@nestjs/common';
import type { Config } from '../config/config.js';
import { CONFIG } from '../http/config.token.js';
import { OutboundHttp } from './outbound-http.js';

/** The one HTTP client for hosts that others choose. */
@Module({
  providers: [
    {
      provide: OutboundHttp,
      inject: [CONFIG],
      useFactory: ({ allowPrivateNetwork }: Config) => new OutboundHttp({ allowPrivateNetwork }),
    },
  ],
  exports: [OutboundHttp],
})
export class HttpClientModule {}
