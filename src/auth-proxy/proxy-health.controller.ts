import { Controller, Get, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Api } from './api.js';

/** What operators ask of a proxy that runs by itself. */
@Controller('health')
export class ProxyHealthController {
  constructor(private readonly api: Api) {}

  /** The process answers. */
  @Get('live')
  live(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /** The API behind it answers and is ready. */
  @Get('ready')
  async ready(@Res({ passthrough: true }) reply: FastifyReply): Promise<{ status: string }> {
    if (await this.api.isReady()) return { status: 'ok' };
    void reply.status(503);
    return { status: 'api-unavailable' };
  }
}
