/**
 * The part of an event's metadata that the hash chain does not cover. Whoever can write to the store can change, add and remove it
 * unnoticed: nothing that decides, folds or verifies may read it.
 */
export interface Unchained {
  /** The trace that the request belonged to (https://www.w3.org/TR/trace-context/). */
  readonly traceparent?: string;
  /** For a transparency log: its leaf for this event is a hash over this salt and the event's link. */
  readonly salt?: string;
  /** Members of later releases. */
  readonly [name: string]: unknown;
}

/** Maximum size of its JSON in bytes. */
const maxUnchainedBytes = 1024;

/** Why a value is not such a part; undefined if it is. Unknown members are accepted. */
export function unchainedProblem(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return 'its `unchained` metadata is not an object';
  }
  const bytes = Buffer.byteLength(JSON.stringify(value));
  return bytes <= maxUnchainedBytes
    ? undefined
    : `its \`unchained\` metadata has ${bytes} bytes, and at most ${maxUnchainedBytes} are allowed`;
}
