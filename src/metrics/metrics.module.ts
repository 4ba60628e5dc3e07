import { Module } from '@nestjs/common';
import { DRIVER_METRICS } from '../ports/driver-metrics.js';
import { Metrics } from './metrics.js';

/** Counters and measurements. */
@Module({
  providers: [Metrics, { provide: DRIVER_METRICS, useExisting: Metrics }],
  exports: [Metrics, DRIVER_METRICS],
})
export class MetricsModule {}
