import { Module } from '@nestjs/common';
import { ReadModelsModule } from '../read-models/read-models.module.js';
import { ClaimRecorder } from './claim-recorder.js';
import { CoordinatorModule } from './coordinator.module.js';
import { OrphanedVaults } from './orphaned-vaults.js';

const providers = [ClaimRecorder, OrphanedVaults];

/** Work that follows the read models: the order of claims, and vaults that nothing names. */
@Module({ imports: [CoordinatorModule, ReadModelsModule], providers, exports: providers })
export class SweepsModule {}
