import { Module } from '@nestjs/common';
import { KeyringModule } from '../keyring/keyring.module.js';
import { ContactLimits } from './contact-limits.js';
import { VoteNotices } from './vote-notices.js';

const providers = [ContactLimits, VoteNotices];

/** Messages to people, within the limits per person. */
@Module({ imports: [KeyringModule], providers, exports: providers })
export class DeliveryModule {}
