import { CoordinatorError } from './errors.js';

/**
 * The cost of each kind of work, in steps of about 100 ns on the machine of `bench/README.md`. `npm run bench:steps`
 * measures it, and fails if something costs more than twice its weight. The weights are part of the rules
 * (docs/adr/0012): a used-up budget must give the same decision forever. Fractions are powers of two, so that sums are
 * exact in any order.
 */
export const weights = {
  /** One part of an expression evaluated once. */
  policyNode: 1,
  /** One policy evaluated for one payload, in addition to its clauses. */
  policyAsked: 16,
  /** One character of a parsed clause; counted even if the clause was cached, as are its parts. */
  clauseCharacter: 0.125,
  /** One part of a clause parsed and type-checked. */
  clausePart: 4,
  /** One schedule of a time clause parsed. */
  scheduleRead: 128,
  /** One conversion to the clock of a time zone. */
  zoneOffset: 64,
  /** One element of a list examined, copied or created. */
  listElement: 0.25,
  /** One element of a list compared with what is sought in it. */
  elementSought: 1,
  /** One approval put into a list that a consensus is tried with. */
  voteCopied: 0.25,
  /** One credential of a user turned into a possible approval, or told apart from others. */
  voteTold: 16,
  /** One set of approvals that a consensus is tried with, in addition to its evaluation. */
  votesTried: 8,
  /** One character of two texts compared. */
  characterCompared: 0.00390625,
  /** One character changed in letter case, or checked for hexadecimal. */
  characterFolded: 0.03125,
  /** One character turned into a list element, for a text with characters beyond the basic plane. */
  characterSplit: 0.5,
  /** One byte of input read by a decoder: hex, base64, JSON, RLP, ABI, Borsh. */
  byteRead: 0.125,
  /** One byte of hex, base58 or JSON produced for policies, responses or signatures. */
  byteWritten: 0.125,
  /** One byte of a format that may have an item in each byte: RLP, the records of a PSBT. */
  itemByteRead: 1,
  /** One value of a JSON text, or one member name, however short. */
  jsonValue: 2,
  /** One value decoded: a word of call data, a member of typed data, a field of a struct. */
  valueDecoded: 8,
  /** One type of an interface or of typed data built from its text, or from its type arguments. */
  typeInstantiated: 32,
  /** One name assembled: a canonical signature, an encoded type, a path. */
  nameBuilt: 16,
  /** One input of a transaction read. */
  transactionInput: 512,
  /** One output of a transaction read. */
  transactionOutput: 64,
  /** One input or output of a previous transaction included in a transaction. */
  previousTransactionPart: 128,
  /** One instruction, or one account that it names. */
  instructionPart: 32,
  /** One address or key of 32 bytes encoded in base58 or bech32, or decoded from it. */
  addressCoded: 64,
  /** One block of Keccak-256 (136 bytes). */
  keccakBlock: 64,
  /** One block of SHA-256 (64 bytes), or of RIPEMD-160. */
  sha256Block: 8,
  /** One compressed public key decompressed. */
  pointDecoded: 1_024,
  /** One scalar multiplication: a public key derived, a signature created. */
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

/**
 * How much of that may be spent on reading what a request is about: 2 ms. Anything more is read in a separate thread.
 */
export const readingSteps = 20_000;

/** The budget of a decision: what is left of the request's meter, however much was read. */
export const decisionSteps = mainThreadSteps - readingSteps;

/** What reading one request may take, in a separate thread if it is much: a second. */
export const decodingSteps = 10_000_000;

/**
 * The budget is used up. This makes a policy unreadable (R1 of the security rules); anywhere else it refuses the
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
 * Counts what a request has spent of its budget. There is one per request, passed to everything that works for it, not
 * one for each expression, row, payload or tally, because there can be many of those.
 */
export class Steps {
  /** With `of`, part of a larger budget: what is taken here is also taken there, except what was already `used`. */
  constructor(
    readonly budget: number = mainThreadSteps,
    private readonly of?: Steps,
    private used = 0,
  ) {}

  /** Steps taken so far. Once used up, this may exceed the budget by one piece of work. */
  get spent(): number {
    return this.used;
  }

  get left(): number {
    const own = Math.max(0, this.budget - this.used);
    return this.of ? Math.min(own, this.of.left) : own;
  }

  /** What can be taken without anything being refused, here or where it is also taken. */
  get room(): number {
    const own = this.budget - this.used;
    return this.of ? Math.min(own, this.of.room) : own;
  }

  /** Takes at once what pieces of work took together, for which there was `room`. */
  settle(steps: number): void {
    this.used += steps;
    this.of?.settle(steps);
  }

  get isSpent(): boolean {
    return this.used > this.budget || this.of?.isSpent === true;
  }

  /**
   * Counts work that is about to be done. Once the budget is used up, it stays so.
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

  /** A part of this budget with its own limit; `used` of it was already taken, also for others. */
  upTo(budget: number, used = 0): Steps {
    return new Steps(budget, this, used);
  }

  /**
   * Adds what was spent elsewhere: by a worker thread, or by something cached that costs the same as if it were not.
   */
  note(steps: number): void {
    this.used += steps;
    this.of?.note(steps);
  }
}

/**
 * A request is decided once more because its organization has changed, and its meter is used up. This is not an
 * outcome, because a decision by itself has more; the request may be sent again.
 */
export class MeterSpent extends Error {
  constructor() {
    super('the request has used up its steps on decisions that concurrent changes made obsolete');
    this.name = 'MeterSpent';
  }
}

/**
 * The only meter of a request, for all its work on the main thread. The budget of a decision does not depend on what
 * else was taken, or deciding again from history would give another result: it has all of `decisionSteps`, or ends with
 * `MeterSpent`.
 */
export class Meter extends Steps {
  /** For reading on the main thread; limited, so that the first decision always has its own steps. */
  readonly reading: Steps = this.upTo(readingSteps);
  /** What threads have spent on reading for this request. */
  readonly decoding = new Steps(decodingSteps);

  /** Steps for a decision on one state; on another state, it starts again with new ones. */
  decision(): Steps {
    return new DecisionSteps(this, decisionSteps);
  }

  override take(work: Work, count = 1): void {
    // Refused work is not done, and not counted again each time it is tried.
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

  override get room(): number {
    return Math.min(super.room, this.meter.left);
  }

  override settle(steps: number): void {
    this.meter.note(steps);
    super.settle(steps);
  }

  override take(work: Work, count = 1): void {
    // What exceeds the decision's own budget is not done.
    const steps = Math.min(weights[work] * count, this.left);
    const { left } = this.meter;
    this.meter.note(Math.min(steps, left));
    if (steps > left) throw new MeterSpent();
    super.take(work, count);
  }
}
