import { Module } from '@nestjs/common';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { StateThread } from './state-thread.js';

/** Past states, folded in a separate thread. */
@Module({
  providers: [
    { provide: StateThread, inject: [EVENT_STORE], useFactory: (store: EventStore) => new StateThread(store) },
  ],
  exports: [StateThread],
})
export class ReplayModule {}
