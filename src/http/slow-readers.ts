import type { ServerResponse } from 'node:http';

/** Longest time that a caller may take to read a response, in milliseconds. */
const longestReadMs = 60_000;

/** Calls `gone` once a response is over, however it ends. A slow reader keeps its slot, but not forever. */
export function whenRead(response: ServerResponse, gone: () => void, longestMs = longestReadMs): void {
  if (response.destroyed) return gone();
  const late = setTimeout(() => response.destroy(), longestMs);
  response.once('close', () => {
    clearTimeout(late);
    gone();
  });
}
