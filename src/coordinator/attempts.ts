import type { VaultAttempt } from '../domain/vault-attempt.js';
import type { QueuePath } from '../fairness/fair-queue.js';
import { derivedId, uuidV7 } from '../ledger/ids.js';
import type { Clock } from '../ports/clock.js';
import type { Randomness } from '../ports/randomness.js';

/** Age in milliseconds after which nothing that an attempt has created is recorded. */
export const attemptEndsMs = 30 * 60_000;

/** One run of `prepare`, from its start until its outcome is recorded, or is known never to be. */
export class Attempt {
  /** Vaults that it has created, or was about to create. */
  readonly vaultIds: string[] = [];
  private readonly begun = performance.now();
  private names = 0;
  private ended = false;

  constructor(
    readonly said: VaultAttempt,
    /** The sender of the request. */
    readonly submitterId: string,
    private readonly ports: { readonly clock: Clock; readonly randomness: Randomness },
    /** The sender's place in the order of turns. */
    readonly path: QueuePath,
  ) {}

  /** A name for something it creates, unique even among attempts at the same moment for the same bytes. */
  newId(): string {
    return derivedId(this.said.attemptId, 'prepared', String(this.names++));
  }

  /**
   * A name for a vault, noted before anything is sealed in it. @throws {Error} once the fate of the attempt is decided
   */
  newVaultId(): string {
    if (this.ended) throw new Error('this attempt has already been settled');
    const vaultId = uuidV7(this.ports.clock, this.ports.randomness);
    this.vaultIds.push(vaultId);
    return vaultId;
  }

  /** Whether nothing that it has made is recorded any more: its fate is decided, or it is too old. */
  isOver(): boolean {
    return this.ended || this.isTooOld();
  }

  /** By the wall clock, or by the time this process has waited. */
  private isTooOld(): boolean {
    const age = Math.max(this.ports.clock.now() - this.said.at, performance.now() - this.begun);
    return age >= attemptEndsMs;
  }

  /** Vaults that none of these events names: the attempt is over, so they have lost. */
  end(recorded: readonly object[]): readonly string[] {
    this.ended = true;
    if (this.vaultIds.length === 0) return [];
    const text = JSON.stringify(recorded);
    return this.vaultIds.filter((vaultId) => !text.includes(vaultId));
  }
}
