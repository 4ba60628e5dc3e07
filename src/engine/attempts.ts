import type { VaultAttempt } from '../domain/vault-attempt.js';
import type { QueuePath } from '../fairness/fair-queue.js';
import { derivedId, uuidV7 } from '../ledger/ids.js';
import type { Clock } from '../ports/clock.js';
import type { Randomness } from '../ports/randomness.js';

/** From then on nothing that an attempt has made is recorded, in milliseconds. */
export const attemptEndsMs = 30 * 60_000;

/** One run of `prepare`, from its beginning until what was decided is recorded, or is known never to be. */
export class Attempt {
  /** Vaults that it has made, or was about to make. */
  readonly vaultIds: string[] = [];
  private readonly begun = performance.now();
  private names = 0;
  private isOver = false;

  constructor(
    readonly said: VaultAttempt,
    /** Whose request it is. */
    readonly submitterId: string,
    private readonly ports: { readonly clock: Clock; readonly randomness: Randomness },
    /** Whose turns it takes. */
    readonly path: QueuePath,
  ) {}

  /** A name for something that it makes: another attempt, at the same moment and for the same bytes, has others. */
  newId(): string {
    return derivedId(this.said.attemptId, 'prepared', String(this.names++));
  }

  /** A name for a vault, noted before anything is sealed in it. @throws {Error} once it was decided what becomes of it */
  newVaultId(): string {
    if (this.isOver) throw new Error('the attempt is over, and whatever it had made was looked at');
    const vaultId = uuidV7(this.ports.clock, this.ports.randomness);
    this.vaultIds.push(vaultId);
    return vaultId;
  }

  /** Whether it may not be recorded any more, by the wall clock or by how long this process has waited. */
  isTooOld(): boolean {
    const age = Math.max(this.ports.clock.now() - this.said.at, performance.now() - this.begun);
    return age >= attemptEndsMs;
  }

  /** Vaults that none of these events names: the attempt is over, and these have lost. */
  end(recorded: readonly object[]): readonly string[] {
    this.isOver = true;
    if (this.vaultIds.length === 0) return [];
    const text = JSON.stringify(recorded);
    return this.vaultIds.filter((vaultId) => !text.includes(vaultId));
  }
}
