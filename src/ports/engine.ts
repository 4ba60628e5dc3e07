/** Tokens by which Nest injects what is no port of its own file. */

export const LIMITS = Symbol('Limits');
export const EVENT_STORE = Symbol('EventStore');
export const REGISTRY = Symbol('Registry');
export const ROWS = Symbol('Rows');
