import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Slot } from '../fairness/fair-slots.js';

/** Seconds that a caller may take before it has to read at the least rate, and before it may have to make room for others. */
const graceSeconds = 2;
/** Bytes a second. */
const leastRate = 64 * 1024;

/**
 * Ends a response whose caller reads it too slowly, and the slot that it has, however it ends. Only seconds in which
 * something waited to be read count.
 */
export function followReader(response: ServerResponse, socket: Socket, slot?: Slot, secondMs = 1_000): void {
  if (response.destroyed) return slot?.leave();
  const read = (): number => socket.bytesWritten - socket.writableLength;
  const before = read();
  let seconds = 0;
  const timer = setInterval(() => {
    if (socket.writableLength === 0) return;
    seconds += 1;
    if (read() - before < leastRate * (seconds - graceSeconds)) socket.destroy();
    else if (seconds === graceSeconds) slot?.offer(() => socket.destroy());
  }, secondMs);
  response.once('close', () => {
    clearInterval(timer);
    slot?.leave();
  });
}
