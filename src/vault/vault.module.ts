import { Module } from '@nestjs/common';
import { VaultDestroyer } from './destroy-vaults.js';

/** Shredding of sealed secrets. */
@Module({ providers: [VaultDestroyer], exports: [VaultDestroyer] })
export class VaultModule {}
