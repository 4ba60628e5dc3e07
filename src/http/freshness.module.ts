import { Module } from '@nestjs/common';
import { Freshness } from './freshness.js';

/** The last position that this instance has returned. */
@Module({ providers: [Freshness], exports: [Freshness] })
export class FreshnessModule {}
