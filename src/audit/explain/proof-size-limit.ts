import { mainThreadSteps, type Steps } from '../../domain/steps.js';

/** Most bytes of a proof, as JSON. */
const bytesOfProof = 3 * 2 ** 20;
/** Most parts of one clause that are told. */
const mostPartsOfClause = 500;
/** What a policy takes besides the parts of its clauses, and a part of a clause: at most, as JSON. */
const bytesOfPolicy = 7 * 1_024;
const bytesOfPart = 5 * 1_024;

/** What an explanation may still take: bytes of its answer, and steps. */
export class Room {
  private left = bytesOfProof;
  private isFull = false;

  constructor(readonly steps: Steps) {}

  /** Some of what there was to tell is left out. */
  get isCut(): boolean {
    return this.isFull;
  }

  cut(): void {
    this.isFull = true;
  }

  take(bytes: number): void {
    this.left -= bytes;
  }

  /** Takes what a policy takes; false if there is not as much. */
  takePolicy(): boolean {
    const hasRoom = this.left >= bytesOfPolicy;
    if (hasRoom) this.take(bytesOfPolicy);
    else this.cut();
    return hasRoom;
  }

  /** How many parts of one clause may be told; none where the steps for it may be too few. */
  partsOfClause(): number {
    return this.steps.left < mainThreadSteps ? 0 : Math.min(Math.floor(this.left / bytesOfPart), mostPartsOfClause);
  }
}

/**
 * What a part with these texts takes at most as JSON: a character is escaped, or has three bytes. Where its value is from
 * takes a name of 60 characters, and the place of an event, for each thing or vote.
 */
export function mostBytes(texts: readonly string[], sources: number): number {
  return texts.reduce((bytes, text) => bytes + 3 * text.length, 300 + 600 * sources);
}

/** Votes named as the source of one value. */
export const mostVotes = 4;
