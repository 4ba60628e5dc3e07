import { CoordinatorError, limitExceeded } from '../domain/errors.js';

interface Bounds {
  /** Bytes of all bodies of requests that are being received or worked on. */
  readonly most: number;
  /** Bodies up to this size have a bound of their own, a quarter of the other, so that large ones do not crowd them out. */
  readonly small: number;
}

/**
 * What a byte of a body may take of the heap while a request is worked on: the bytes, the text, and the values in it, of which
 * the costliest are objects without members (docs/limits.md).
 */
const heapPerByte = 32;
const [leastBytes, mostBytes] = [16 * 1024 * 1024, 256 * 1024 * 1024];

/** The bytes of bodies that a process with so much heap may have in flight: as many as would fill it. */
export function bytesInFlight(heapLimit: number): number {
  return Math.min(Math.max(Math.floor(heapLimit / heapPerByte), leastBytes), mostBytes);
}

/** Bytes of bodies in flight, counted before they are received: what would end the process is refused before. */
export class BodiesInFlight {
  private readonly large = { bytes: 0, byCaller: new Map<string, number>() };
  private readonly little = { bytes: 0, byCaller: new Map<string, number>() };

  constructor(private readonly bounds: Bounds) {}

  /**
   * Counts a body until the returned function is called. One caller may have half of what there is.
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED for the caller's share, UNAVAILABLE when all callers together have too much
   */
  take(caller: string, bytes: number): () => void {
    const isSmall = bytes <= this.bounds.small;
    const most = isSmall ? this.bounds.most / 4 : this.bounds.most;
    const group = isSmall ? this.little : this.large;
    const own = group.byCaller.get(caller) ?? 0;
    if (own > 0 && own + bytes > most / 2) {
      const size = isSmall ? `of up to ${this.bounds.small} bytes` : `of more than ${this.bounds.small} bytes`;
      throw limitExceeded(`${most / 2} bytes in request bodies ${size} at a time from one address`, 1);
    }
    if (group.bytes + bytes > most) {
      throw new CoordinatorError(
        'UNAVAILABLE',
        'the server is already processing as many request bodies as fit into its memory: send the same request again in a moment',
      );
    }
    group.bytes += bytes;
    group.byCaller.set(caller, own + bytes);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      group.bytes -= bytes;
      const left = group.byCaller.get(caller)! - bytes;
      if (left > 0) group.byCaller.set(caller, left);
      else group.byCaller.delete(caller);
    };
  }
}
