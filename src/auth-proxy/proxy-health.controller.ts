import { Controller, Get, Inject, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Api } from './api.js';

/** Injects whether this process is about to end. */
export const IS_STOPPING = Symbol('IsStopping');

/** Health checks of a proxy that runs by itself. */
@Controller('health')
export class ProxyHealthController {
  constructor(
    private readonly api: Api,
    @Inject(IS_STOPPING) private readonly isStopping: () => boolean,
  ) {}

  /** The process responds. */
  @Get('live')
  live(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /** It has started as soon as it responds: there is nothing to catch up with. */
  @Get('startup')
  startup(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /** The API behind it responds, is ready, and accepts the secret of this proxy. */
  @Get('ready')
  async ready(@Res({ passthrough: true }) reply: FastifyReply): Promise<{ status: string; reason?: string }> {
    const status = this.isStopping() ? 'stopping' : await this.api.readiness();
    if (status === 'ok') return { status };
    void reply.status(503);
    return status === 'proxy-secret-refused'
      ? { status, reason: 'the API has a different PROXY_SECRET: set the same one for both' }
      : { status };
  }
}
