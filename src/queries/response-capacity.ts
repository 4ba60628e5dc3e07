import { FairSlots } from '../fairness/fair-slots.js';

/** Responses up to this size, in bytes, need no slot. */
export const smallResponse = 256 * 1024;

/**
 * Slots for large responses, which occupy memory until the caller has read them. One object per process: coordinators in one
 * process share its memory.
 */
export const responseCapacity = new FairSlots({
  slots: 16,
  most: 256,
  longestWaitMs: 10_000,
  what: `responses of more than ${smallResponse} bytes being read or waiting`,
});
