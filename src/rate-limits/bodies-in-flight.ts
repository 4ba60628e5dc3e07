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

/** One body in flight. */
export interface BodyInFlight {
  /** It is there as a whole, and is worked on: it does not make room for others any more. */
  readonly received: () => void;
  /** Its bytes are free again. */
  readonly letGo: () => void;
}

interface Body {
  readonly bytes: number;
  readonly giveUp: () => void;
}

/** What one caller has in flight. */
interface Held {
  bytes: number;
  /** Bodies that are still being received, oldest first. */
  readonly incoming: Set<Body>;
}

/** Bodies that share a bound. */
class Group {
  private bytes = 0;
  private readonly callers = new Map<string, Held>();

  constructor(readonly most: number) {}

  of(caller: string): number {
    return this.callers.get(caller)?.bytes ?? 0;
  }

  /** Whether there is room for so many bytes more, after bodies of callers who hold more have made it. */
  makeRoom(caller: string, bytes: number): boolean {
    const own = this.of(caller) + bytes;
    while (this.bytes + bytes > this.most) {
      const largest = this.largestAbove(own);
      if (!largest) return false;
      const [name, { incoming }] = largest;
      const [slowest] = incoming;
      this.remove(name, slowest!);
      slowest!.giveUp();
    }
    return true;
  }

  add(caller: string, body: Body): void {
    const held = this.callers.get(caller) ?? { bytes: 0, incoming: new Set() };
    this.callers.set(caller, held);
    held.incoming.add(body);
    held.bytes += body.bytes;
    this.bytes += body.bytes;
  }

  received(caller: string, body: Body): void {
    this.callers.get(caller)?.incoming.delete(body);
  }

  remove(caller: string, body: Body): void {
    const held = this.callers.get(caller)!;
    held.incoming.delete(body);
    held.bytes -= body.bytes;
    this.bytes -= body.bytes;
    if (held.bytes === 0) this.callers.delete(caller);
  }

  /** The caller who holds most, of those with more than so many bytes and a body that is still being received. */
  private largestAbove(bytes: number): [string, Held] | undefined {
    let largest: [string, Held] | undefined;
    for (const one of this.callers) {
      const [, held] = one;
      if (held.incoming.size > 0 && held.bytes > (largest?.[1].bytes ?? bytes)) largest = one;
    }
    return largest;
  }
}

/** Bytes of bodies in flight, counted before they are received: what would end the process is refused before. */
export class BodiesInFlight {
  private readonly large: Group;
  private readonly little: Group;

  constructor(private readonly bounds: Bounds) {
    this.large = new Group(bounds.most);
    this.little = new Group(bounds.most / 4);
  }

  /**
   * Counts a body. One caller may have half of what there is. Announcing a body costs nothing, so where all is taken the
   * oldest body that is still being received makes room, of the caller who holds most, if that is more than this one would.
   * @param giveUp called at once for a body that makes room; it is not counted any more
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED for the caller's share, UNAVAILABLE when all callers together have too much
   */
  take(caller: string, bytes: number, giveUp: () => void): BodyInFlight {
    const isSmall = bytes <= this.bounds.small;
    const group = isSmall ? this.little : this.large;
    const own = group.of(caller);
    if (own > 0 && own + bytes > group.most / 2) {
      const size = isSmall ? `of up to ${this.bounds.small} bytes` : `of more than ${this.bounds.small} bytes`;
      throw limitExceeded(`${group.most / 2} bytes in request bodies ${size} at a time from one address`, 1);
    }
    if (!group.makeRoom(caller, bytes)) throw tooManyBodies();
    let isOver = false;
    const body = {
      bytes,
      giveUp: () => {
        isOver = true;
        giveUp();
      },
    };
    group.add(caller, body);
    return {
      received: () => group.received(caller, body),
      letGo: () => {
        if (isOver) return;
        isOver = true;
        group.remove(caller, body);
      },
    };
  }
}

/** The server has as many bodies as fit into its memory. */
export function tooManyBodies(): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    'the server is already processing as many request bodies as fit into its memory: send the same request again in a moment',
  );
}
