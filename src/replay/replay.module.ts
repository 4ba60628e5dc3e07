import { Module } from '@nestjs/common';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { HISTORY, type HistoryOptions } from '../ledger/history-options.js';
import { ReasonsThread } from './reasons-thread.js';
import { StateThread } from './state-thread.js';

/** Past states and decisions, folded in separate threads. */
@Module({
  providers: [
    {
      provide: StateThread,
      inject: [EVENT_STORE, HISTORY],
      useFactory: (store: EventStore, { stateFolder }: HistoryOptions) =>
        new StateThread(store, stateFolder === undefined ? {} : { stateFolder }),
    },
    { provide: ReasonsThread, inject: [EVENT_STORE], useFactory: (store: EventStore) => new ReasonsThread(store) },
  ],
  exports: [StateThread, ReasonsThread],
})
export class ReplayModule {}
