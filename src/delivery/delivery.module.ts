import { Module } from '@nestjs/common';
import type { Logger } from 'pino';
import { LOGGER } from '../http/logger.js';
import { InstallationKeys } from '../keyring/installation-keys.js';
import { KeyringModule } from '../keyring/keyring.module.js';
import { sendDigest } from '../keyring/send-digest.js';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { uuidV7 } from '../ledger/ids.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { RANDOMNESS, type Randomness } from '../ports/randomness.js';
import { ContactLimits } from './contact-limits.js';
import { DELIVERY, type Delivery } from './delivery.js';
import { VoteNotices } from './vote-notices.js';

/** Messages to people, within the limits per person. */
@Module({
  imports: [KeyringModule],
  providers: [
    {
      provide: ContactLimits,
      inject: [EVENT_STORE, CLOCK, RANDOMNESS, InstallationKeys],
      useFactory: (store: EventStore, clock: Clock, randomness: Randomness, keys: InstallationKeys) =>
        new ContactLimits({ store, clock, newId: () => uuidV7(clock, randomness), digest: sendDigest(keys) }),
    },
    {
      provide: VoteNotices,
      inject: [DELIVERY, ContactLimits, LOGGER],
      useFactory: (delivery: Delivery, limits: ContactLimits, logger: Logger) =>
        new VoteNotices(delivery, limits, (activityId, err) =>
          logger.warn({ activityId, err }, 'approvers could not be told of an activity that waits for them'),
        ),
    },
  ],
  exports: [ContactLimits, VoteNotices],
})
export class DeliveryModule {}
