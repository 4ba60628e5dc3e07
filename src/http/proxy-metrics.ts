import { Controller, Get, Header } from '@nestjs/common';
import { HttpMetrics } from '../metrics/metrics.js';

/** `GET /metrics` of an auth proxy that runs by itself. */
@Controller()
export class ProxyMetricsController {
  constructor(private readonly metrics: HttpMetrics) {}

  @Get('metrics')
  @Header('content-type', 'text/plain; version=0.0.4; charset=utf-8')
  prometheus(): Promise<string> {
    return this.metrics.registry.metrics();
  }
}
