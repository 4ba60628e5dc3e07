import type { Registry } from '../../decide/registry.js';
import type { OrganizationEvent, OrganizationView } from '../../domain/organization/organization.js';
import type { Steps } from '../../domain/steps.js';
import type { EventReader } from '../../ledger/event-store.js';
import type { Came, HeldFacts } from './branch.js';
import type { Change } from './fork-change.js';
import type { Requested, States } from './outcome-texts.js';

export interface BranchOptions {
  readonly organizationId: string;
  readonly registry: Registry;
  /** What differs at one event. */
  readonly change?: Change;
  /** What differs from an event on; from 0, as soon as the organization is founded. */
  readonly held?: { readonly facts: HeldFacts; readonly from: number };
  /** Called now and then with the number of events so far. */
  readonly onProgress?: (events: number) => void;
  /** Counts what it takes; once it is spent, the branch ends where it is. Without one, nothing is counted. */
  readonly meter?: Steps;
  /** Decisions that the parent made are taken as recorded: its policies are for its own members. */
  readonly hidesParent?: boolean;
}

/** What may be read of a store. */
export type BranchSource = Pick<EventReader, 'read' | 'head'>;

/** Thrown where a branch has to end before its history does. */
export class CutShort extends Error {}

/** Told of what is decided on a branch. */
export interface BranchReport {
  /** The branch begins behind so many events. */
  begins(events: number): void;
  /** @param event the recorded event @param came the outcome of the request that is there now */
  changes(change: Change, event: OrganizationEvent | undefined, came: Came | undefined, states: States): void;
  /** A denied request was not decided again. */
  notDecided(why: string): void;
  /** A denied request is denied again. */
  sameDenial(): void;
  /** A decision was taken as recorded: it is the parent's. */
  asRecorded(): void;
  /**
   * Compares the record with the outcome on the branch, before either is applied.
   * @param recorded undefined for a denial
   * @param alone the outcome on the recorded state, with nothing else than what is held there
   * @returns a function to call once both are applied
   */
  compare(
    requested: Requested,
    recorded: Came | undefined,
    came: Came,
    states: States,
    alone: () => Came,
  ): (after: States) => void;
}

/** A history and its branch, at the end of both. */
export interface Ends {
  readonly original: OrganizationView;
  readonly branch: OrganizationView;
  /** Revision of the last event of the history that was reached. */
  readonly last: number;
  /** The meter was spent before the history ended. */
  readonly isCut: boolean;
}
