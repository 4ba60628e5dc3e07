import { CoordinatorError } from './errors.js';

/**
 * What each piece of work costs, in steps of about 100 ns on the machine of `bench/README.md`. `npm run bench:steps`
 * measures them again, and fails where one costs more than twice its weight. They are part of the numbered rules
 * (docs/adr/0039): what a used-up budget decides is decided alike for ever. Fractions are powers of two, so that sums are
 * exact in any order.
 */
export const weights = {
  /** One part of an expression evaluated once. */
  policyNode: 1,
  /** What one policy is asked of one payload, beside its clauses. */
  policyAsked: 16,
  /** One character of a clause read; counted whether or not the clause was still in memory, as are its parts. */
  clauseCharacter: 0.125,
  /** One part of a clause read and type-checked. */
  clausePart: 4,
  /** One schedule of a time clause read. */
  scheduleRead: 128,
  /** One look at what the clock of a time zone shows. */
  zoneOffset: 64,
  /** One element of a list looked at, copied or made. */
  listElement: 0.25,
  /** One element of a list compared with what is sought in it. */
  elementSought: 1,
  /** One approval put into a list that a consensus is tried with. */
  voteCopied: 0.25,
  /** One credential of a user made an approval that could be given, or told apart from others. */
  voteTold: 16,
  /** One set of approvals that a consensus is tried with, beside its evaluation. */
  votesTried: 8,
  /** One character of two texts compared. */
  characterCompared: 0.00390625,
  /** One character changed in letter case, or looked at whether it is hexadecimal. */
  characterFolded: 0.03125,
  /** One character of a text with some beyond the basic plane made an element of a list. */
  characterSplit: 0.5,
  /** One byte of input read by a decoder: hex, base64, JSON, RLP, ABI, Borsh. */
  byteRead: 0.125,
  /** One byte of hex, base58 or JSON made for policies, answers or signatures. */
  byteWritten: 0.125,
  /** One byte of what may have an item in each of its bytes: RLP, the records of a PSBT. */
  itemByteRead: 1,
  /** One value of a JSON text, or one name of a member, however short it is. */
  jsonValue: 2,
  /** One value decoded: a word of call data, a member of typed data, a field of a struct. */
  valueDecoded: 8,
  /** One type of an interface or of typed data made from its text, or from its type arguments. */
  typeInstantiated: 32,
  /** One name put together: a canonical signature, an encoded type, a path. */
  nameBuilt: 16,
  /** One input of a transaction read. */
  transactionInput: 512,
  /** One output of a transaction read. */
  transactionOutput: 64,
  /** One input or output of a previous transaction that a transaction brings along. */
  previousTransactionPart: 128,
  /** One instruction, or one account that it names. */
  instructionPart: 32,
  /** One address or key of 32 bytes written in base58 or bech32, or read from it. */
  addressCoded: 64,
  /** One block of Keccak-256 (136 bytes). */
  keccakBlock: 64,
  /** One block of SHA-256 (64 bytes), or of RIPEMD-160. */
  sha256Block: 8,
  /** One compressed public key made a point of its curve. */
  pointDecoded: 1_024,
  /** One multiplication on a curve: a public key derived, a signature made. */
  curveOperation: 5_120,
  /** One signature verified in JavaScript. */
  signatureVerified: 16_384,
  /** One child key derived (BIP-32). */
  keyDerivation: 6_144,
} as const satisfies Readonly<Record<string, number>>;

/** A piece of work that is counted. */
export type Work = keyof typeof weights;

/** What one request may spend on the main thread: 50 ms. */
export const mainThreadSteps = 500_000;

/** How much of that may go to reading what a request is about: 2 ms. What takes more is read in a thread of its own. */
export const readingSteps = 20_000;

/** What a decision by rules of that number may take: by rules 4 what is left of the request's meter, whatever was read. */
export function decisionSteps(rules: number): number {
  return rules < 4 ? mainThreadSteps : mainThreadSteps - readingSteps;
}

/** What reading one request may take, in a thread of its own where it is much: a second. */
export const decodingSteps = 10_000_000;

/**
 * The budget is used up. A policy that meets it is unreadable (R1 of the security rules); anywhere else it refuses the
 * request.
 */
export class OutOfSteps extends CoordinatorError {
  constructor(
    readonly budget: number,
    readonly work: Work,
  ) {
    super(
      'INVALID_ARGUMENT',
      `this request would take more than ${budget} steps of work (the last were for ${work}): request less at once`,
      { category: 'REQUEST_INVALID' },
    );
    this.name = 'OutOfSteps';
  }
}

/**
 * What a request has spent, of what it may spend. One for each request, handed down to everything that it makes work: not
 * one for each expression, row, payload or tally, as there can be many of those.
 */
export class Steps {
  /** With `of`, part of a larger budget: what is taken here is taken there too, but for what was `used` before. */
  constructor(
    readonly budget: number = mainThreadSteps,
    private readonly of?: Steps,
    private used = 0,
  ) {}

  /** Steps taken so far. Up to one piece of work more than the budget, once it is used up. */
  get spent(): number {
    return this.used;
  }

  get left(): number {
    const own = Math.max(0, this.budget - this.used);
    return this.of ? Math.min(own, this.of.left) : own;
  }

  get isSpent(): boolean {
    return this.used > this.budget || this.of?.isSpent === true;
  }

  /**
   * Counts work, which is to be done afterwards and not before. Once the budget is used up it stays so.
   * @throws {OutOfSteps}
   */
  take(work: Work, count = 1): void {
    const steps = weights[work] * count;
    this.used += steps;
    if (this.used > this.budget) {
      this.of?.note(steps);
      throw new OutOfSteps(this.budget, work);
    }
    this.of?.take(work, count);
  }

  /** A part of this budget that has a limit of its own; `used` of it was taken already, for others too. */
  upTo(budget: number, used = 0): Steps {
    return new Steps(budget, this, used);
  }

  /** Adds what was spent elsewhere: by a worker thread, or by what was remembered and costs the same as if it were not. */
  note(steps: number): void {
    this.used += steps;
    this.of?.note(steps);
  }
}

/**
 * A request is decided once more, as its organization has changed meanwhile, and its meter is used up: no outcome, since by
 * itself the decision has more. It may be sent again.
 */
export class MeterSpent extends Error {
  constructor() {
    super('the request has used up its steps on decisions that concurrent changes made obsolete');
    this.name = 'MeterSpent';
  }
}

/**
 * The one meter of a request: everything that it makes work on the main thread takes from it. What a decision may take
 * does not depend on what else was taken, or deciding again from history would come out otherwise: it has all of
 * `decisionSteps`, or ends with `MeterSpent`.
 */
export class Meter extends Steps {
  /** For reading on the main thread; there is a limit to it, so that the first decision always has its own. */
  readonly reading: Steps = this.upTo(readingSteps);
  /** What threads have taken to read for this request. */
  readonly decoding = new Steps(decodingSteps);

  /** Steps for a decision on one state; on another it begins anew, with others. */
  decision(rules: number): Steps {
    return new DecisionSteps(this, decisionSteps(rules));
  }

  override take(work: Work, count = 1): void {
    // What is refused is not done, and not counted again each time that it is tried.
    if (this.isSpent) throw new OutOfSteps(this.budget, work);
    super.take(work, count);
  }

  override note(steps: number): void {
    if (!this.isSpent) super.note(steps);
  }
}

class DecisionSteps extends Steps {
  constructor(
    private readonly meter: Steps,
    budget: number,
  ) {
    super(budget);
  }

  override take(work: Work, count = 1): void {
    // What is too much for the decision itself is not done.
    const steps = Math.min(weights[work] * count, this.left);
    const { left } = this.meter;
    this.meter.note(Math.min(steps, left));
    if (steps > left) throw new MeterSpent();
    super.take(work, count);
  }
}
