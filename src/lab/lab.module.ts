import { Module } from '@nestjs/common';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { ExplanationThread } from './explanation-thread.js';
import { LabThread } from './lab-thread.js';
import { WhatIfThread } from './what-if-thread.js';

/** What the lab answers in threads of its own. */
@Module({
  providers: [
    { provide: LabThread, useFactory: () => new LabThread() },
    {
      provide: ExplanationThread,
      inject: [EVENT_STORE],
      useFactory: (store: EventStore) => new ExplanationThread(store),
    },
    {
      provide: WhatIfThread,
      inject: [EVENT_STORE],
      useFactory: (store: EventStore) => new WhatIfThread(store),
    },
  ],
  exports: [ExplanationThread, LabThread, WhatIfThread],
})
export class LabModule {}
