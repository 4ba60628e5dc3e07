import { errorMessage } from '../../domain/errors.js';
import type { DecisionContext } from '../../decide/decision-context.js';
import type { Registry } from '../../decide/registry.js';
import type { OrganizationEvent } from '../../domain/organization/organization.js';
import { isLimitsSet } from '../../domain/organization/limits.js';
import type { EventMetadata } from '../../ledger/chain.js';
import type { RecordedEvent } from '../../ledger/event-store.js';
import { isOfMend } from '../../ledger/mend-clock.js';
import { fold, nothingLoaded, type LoadedOrganization } from '../../ledger/loaded-organization.js';
import { checkRules, decidingTypes, eventOf, limitsOf, type Deciding } from './deciding-events.js';
import { again, type Redecided } from './decision-again.js';
import type { ParentAt } from './recorded-context.js';

/** What is recorded as a decision cannot be one: `cause` says why. */
export class NotDecidable extends Error {
  constructor(override readonly cause: unknown) {
    super(errorMessage(cause), { cause });
    this.name = 'NotDecidable';
  }
}

/** An event, and its link in the chain if that was verified. */
interface Taken {
  readonly recorded: RecordedEvent;
  readonly hash: string | undefined;
}

/**
 * Folds one organization's stream event by event, and makes each of its decisions again once all that it has recorded is
 * there: from the events before it, what the deciding event itself says of the request, and its recorded time.
 */
export class Redeciding {
  private loaded = nothingLoaded();
  /** A deciding event and what follows from it, not folded yet: it was decided on what came before. */
  private held: Taken[] = [];

  constructor(
    private readonly registry: Registry,
    private readonly parentAt: ParentAt,
    /** Compare app proofs too, which are about links of the chain that an export may have changed. */
    private readonly withProofs = false,
  ) {}

  /** Revision of the last event taken; -1 before the first. */
  get revision(): number {
    return this.loaded.revision + this.held.length;
  }

  /** Whether the event starts another decision, so that the previous one has to be settled first; so has one before a mend. */
  isNextDecision(recorded: RecordedEvent): boolean {
    return decidingTypes.has(recorded.type);
  }

  /**
   * Takes the next event of the stream.
   * @param hash its link in the chain, if that was verified before
   * @throws {Error} if it cannot be folded
   */
  take(recorded: RecordedEvent, hash?: string): void {
    if (this.isNextDecision(recorded) || (this.held.length > 0 && !isOfMend(recorded)))
      this.held.push({ recorded, hash });
    else this.fold({ recorded, hash });
  }

  /**
   * The stream, or the append, ends here: the decision that its last events belong to, made again; undefined if there
   * is none.
   * @throws {NotDecidable} if no decision of this organization can have recorded them; they are folded anyway
   */
  settle(): Redecided | undefined {
    const { held } = this;
    if (held.length === 0) return undefined;
    let made: Redecided | undefined;
    let failure: unknown;
    try {
      const [deciding, ...following] = held.map(({ recorded }) => recorded);
      made = this.again(deciding!, following);
    } catch (error) {
      failure = error;
    }
    this.foldOnly();
    if (failure) throw new NotDecidable(failure);
    return made;
  }

  /** As `settle`, for a decision that need not be made again. */
  foldOnly(): void {
    const { held } = this;
    this.held = [];
    for (const taken of held) this.fold(taken);
  }

  private fold({ recorded, hash }: Taken): void {
    fold(this.loaded, recorded, hash);
  }

  /** The organization after `settle`. */
  folded(): Pick<LoadedOrganization, 'organization' | 'revision' | 'hash'> {
    return this.loaded;
  }

  /** Everything needed to continue with `goOn`, serializable by `v8.serialize`; only between two decisions. */
  soFar(): LoadedOrganization {
    return this.loaded;
  }

  goOn(folded: LoadedOrganization): void {
    this.loaded = folded;
  }

  private again(recorded: RecordedEvent, following: readonly RecordedEvent[]): Redecided {
    const event = eventOf(recorded) as Deciding;
    for (const one of following) checkSameCause(recorded, one);
    checkRules(event, recorded.revision);
    const { organization, revision } = this.loaded;
    const { at: now } = recorded.metadata as EventMetadata;
    const isProof = ({ type }: OrganizationEvent) => type === 'AppProofsIssued';
    const caused = following.map(eventOf);
    const { limits } = limitsOf(event);
    if (!isLimitsSet({ ...limits?.organization, ...limits?.subOrganizations })) {
      throw new Error(`revision ${recorded.revision} was decided with limits that nobody can set`);
    }
    const context: DecisionContext = {
      registry: this.registry,
      organization,
      revision,
      now,
      ...(limits ? { limits } : {}),
    };
    const decision = {
      event,
      effects: caused.filter((effect) => !isProof(effect)),
      issued: caused.filter(isProof),
      revision: recorded.revision,
      metadata: recorded.metadata as EventMetadata,
      link: this.withProofs ? this.loaded.hash : undefined,
    };
    return again(context, decision, this.parentAt);
  }
}

/**
 * Makes every decision of a whole stream again; for what a parent decided in its sub-organization, also from the
 * parent's stream.
 * @throws {Error} as `Redeciding` does
 */
export function redecide(
  stream: readonly RecordedEvent[],
  registry: Registry,
  parentStream: readonly RecordedEvent[] = [],
): Redecided[] {
  const redeciding = new Redeciding(registry, (authority) => {
    const parent = nothingLoaded();
    for (const event of parentStream.slice(0, authority.revision + 1)) fold(parent, event);
    return parent;
  });
  const made = stream.map((recorded) => {
    const before = redeciding.isNextDecision(recorded) || isOfMend(recorded) ? redeciding.settle() : undefined;
    redeciding.take(recorded);
    return before;
  });
  return [...made, redeciding.settle()].filter((one) => one !== undefined);
}

function checkSameCause(deciding: RecordedEvent, effect: RecordedEvent): void {
  const of = ({ metadata }: RecordedEvent) => {
    const { at, $correlationId, $causationId } = metadata as EventMetadata;
    return JSON.stringify([at, $correlationId, $causationId]);
  };
  if (of(deciding) === of(effect)) return;
  throw new Error(`revision ${effect.revision} does not follow from revision ${deciding.revision}: ${of(effect)}`);
}
