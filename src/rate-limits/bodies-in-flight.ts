import { CoordinatorError, limitExceeded } from '../domain/errors.js';
import { Shares } from '../fairness/shares.js';
import { networksOf } from './caller.js';

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

/** One body in flight. */
export interface BodyInFlight {
  /** It is there as a whole, and is worked on: it does not make room for others any more. */
  readonly received: () => void;
  /** Its bytes are free again. */
  readonly letGo: () => void;
}

/** Bytes of bodies in flight, counted before they are received: what would end the process is refused before. */
export class BodiesInFlight {
  private readonly large: Shares;
  private readonly little: Shares;

  constructor(private readonly bounds: Bounds) {
    this.large = new Shares(bounds.most);
    this.little = new Shares(bounds.most / 4);
  }

  /**
   * Counts a body. One caller may have half of what there is. Announcing a body costs nothing, so where all is taken the
   * oldest body that is still being received makes room, of the network that holds most, if that is more than this one would.
   * @param giveUp called at once for a body that makes room; it is not counted any more
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED for the caller's share, UNAVAILABLE when all callers together have too much
   */
  take(caller: string, bytes: number, giveUp: () => void): BodyInFlight {
    const isSmall = bytes <= this.bounds.small;
    const shares = isSmall ? this.little : this.large;
    const path = networksOf(caller).toReversed();
    const own = shares.held(path);
    if (own > 0 && own + bytes > shares.most / 2) {
      const size = isSmall ? `of up to ${this.bounds.small} bytes` : `of more than ${this.bounds.small} bytes`;
      throw limitExceeded(`${shares.most / 2} bytes in request bodies ${size} at a time from one address`, 1);
    }
    const share = shares.take(path, bytes);
    if (!share) throw tooManyBodies();
    share.offer(giveUp);
    return { received: () => share.keep(), letGo: () => share.free() };
  }
}

/** The server has as many bodies as fit into its memory. */
export function tooManyBodies(): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    'the server is already processing as many request bodies as fit into its memory: send the same request again in a moment',
  );
}
