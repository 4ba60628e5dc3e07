import { quoted } from '../../decide/waits-for.js';
import type { Counts } from './count-vectors.js';
import type { MinimalApprovers } from './minimal-approvers.js';
import type { ApproversQuestion } from './passing-sets.js';

/** Maximum number of sets told of each kind, and of characters in their texts. */
const mostSets = 1_000;
const mostCharacters = 2 ** 18;
/** Maximum number of users named for one class, and of user ids told. */
const mostNamed = 5;
const mostUserIds = 1_000;

/** How many users of which class, by the number of the class from 1. */
interface ToldCount {
  readonly class: string;
  readonly count: string;
}

/** A set of users in one sentence. */
interface ToldSet {
  readonly text: string;
  readonly of: readonly ToldCount[];
  /** Classes of which one more approval, cast before the last of the set, would undo it. */
  readonly undoneBy?: readonly string[];
}

/** Who could make an activity pass, in words. */
export interface ApproverSets {
  readonly text: string;
  /** Users of one class are interchangeable. */
  readonly classes: readonly {
    readonly number: string;
    readonly text: string;
    readonly size: string;
    /** The first 1,000. */
    readonly userIds: readonly string[];
  }[];
  readonly minimalSets: readonly ToldSet[];
  /** How many sets of users `minimalSets` stands for, all of them told. */
  readonly setCount: string;
  readonly blockingSets?: readonly ToldSet[];
  /** Why something was left out. */
  readonly notComplete?: string;
}

/** Names of tags by their ids. */
type TagNames = Readonly<Record<string, string>>;

/** A question, with the names to put its answer into words. */
export interface ApproversTask {
  readonly asked: ApproversQuestion;
  readonly tagNames: TagNames;
}

/** Puts an answer into words. */
export function approverSetsOf(
  found: MinimalApprovers,
  requested: ApproversQuestion,
  tagNames: TagNames,
): ApproverSets {
  const words = new Words(requested, tagNames);
  const classes = found.classes.map((userIds) => words.ofClass(userIds));
  const toldSet = (counts: Counts, undoing: readonly number[] = []): ToldSet => {
    return {
      text: ofSet(counts, classes) + ofUndoing(undoing, classes),
      of: counts.flatMap((count, index) => (count > 0 ? [{ class: String(index + 1), count: String(count) }] : [])),
      ...(undoing.length > 0 ? { undoneBy: undoing.map((index) => String(index + 1)) } : {}),
    };
  };
  const minimal = upToRoom(found.passing, (counts, index) => toldSet(counts, found.undoneBy[index]));
  const { blocking } = found;
  const blockers = blocking && upToRoom(blocking, (counts) => toldSet(counts));
  const isCut = minimal.isCut || blockers?.isCut === true;
  return {
    text: sentence(found),
    classes: found.classes.map((userIds, index) => ({
      number: String(index + 1),
      text: classes[index]!.text,
      size: String(userIds.length),
      userIds: userIds.slice(0, mostUserIds),
    })),
    minimalSets: minimal.told,
    setCount: String(found.sets),
    ...(blockers ? { blockingSets: blockers.told } : {}),
    ...whatIsMissing(found, isCut),
  };
}

function whatIsMissing({ isComplete, blocking }: MinimalApprovers, isCut: boolean): { readonly notComplete?: string } {
  if (!isComplete) {
    return {
      notComplete:
        'finding all sets would take too long: those listed pass, and none of them has a smaller one in it, but there may be others',
    };
  }
  if (!blocking) return { notComplete: 'finding the blocking sets would take too long' };
  return isCut ? { notComplete: `only the first sets are listed, up to ${mostSets}` } : {};
}

function sentence({ passing, sets, isComplete }: MinimalApprovers): string {
  if (passing.length === 0) {
    return isComplete
      ? 'No approvals can make this activity pass today.'
      : 'It is not known whether approvals can make this activity pass: finding out would take too long.';
  }
  const many = `${isComplete ? '' : 'at least '}${sets} ${sets === 1n ? 'set' : 'sets'} of users`;
  return `The approvals of any one of ${many} would make this activity pass.`;
}

function upToRoom(family: readonly Counts[], tell: (counts: Counts, index: number) => ToldSet) {
  const told: ToldSet[] = [];
  let characters = 0;
  for (const [index, counts] of family.entries()) {
    const set = tell(counts, index);
    characters += set.text.length;
    if (told.length >= mostSets || characters > mostCharacters) return { told, isCut: true };
    told.push(set);
  }
  return { told, isCut: false };
}

function ofSet(counts: Counts, classes: readonly ClassWords[]): string {
  const parts = counts.flatMap((count, index) => {
    const { text, names, size } = classes[index]!;
    if (count === 0) return [];
    if (count === size) return names ?? [`all ${size} of ${text}`];
    if (count === 1 && names) return [`(${listed(names, 'or')})`];
    return [`any ${count} of ${text}`];
  });
  return parts.length === 0 ? 'nobody' : listed(parts, 'and');
}

function ofUndoing(undoing: readonly number[], classes: readonly ClassWords[]): string {
  const undone = undoing.flatMap((index) => classes[index]!.names ?? [`any of ${classes[index]!.text}`]);
  return undone.length === 0 ? '' : `; one more approval before the last, by ${listed(undone, 'or')}, would undo it`;
}

function listed(parts: readonly string[], word: 'and' | 'or'): string {
  return parts.length < 2 ? parts.join() : `${parts.slice(0, -1).join(', ')} ${word} ${parts.at(-1)}`;
}

/** A class in words; by its names, if it has only a few users and they are nothing else. */
interface ClassWords {
  readonly text: string;
  readonly size: number;
  readonly names?: readonly string[];
}

class Words {
  private readonly names: ReadonlyMap<string, string>;
  /** Those who could still vote and have these tags, or belong to the root quorum. */
  private readonly groups: readonly { readonly name: string; readonly userIds: ReadonlySet<string> }[];

  constructor({ ballot, unasked }: ApproversQuestion, tagNames: TagNames) {
    const { users, cast, rootQuorum } = ballot;
    this.names = new Map(users.map(({ userId, userName }) => [userId, quoted(userName)]));
    const out = new Set([...cast.map(({ userId }) => userId), ...unasked]);
    const voters = users.filter(({ userId, credentials }) => credentials.length > 0 && !out.has(userId));
    const group = (name: string, isIn: (user: (typeof users)[number]) => boolean) => ({
      name,
      userIds: new Set(voters.filter(isIn).map(({ userId }) => userId)),
    });
    this.groups = [
      ...Object.entries(tagNames).map(([tagId, name]) =>
        group(`tag ${quoted(name)}`, ({ tags }) => tags.includes(tagId)),
      ),
      group('the root quorum', ({ userId }) => rootQuorum.userIds.includes(userId)),
      group('all users', () => true),
    ];
  }

  ofClass(userIds: readonly string[]): ClassWords {
    const size = userIds.length;
    const namesOf = (some: readonly string[]) => some.map((userId) => this.names.get(userId) ?? userId);
    const exact = this.groups.find((group) => group.userIds.size === size && this.isIn(userIds, group.userIds));
    if (exact && size > 1) return { text: exact.name, size };
    if (size <= mostNamed) return { text: listed(namesOf(userIds), 'and'), size, names: namesOf(userIds) };
    const wider = this.groups
      .filter((group) => group.userIds.size - size <= 3 && this.isIn(userIds, group.userIds))
      .toSorted((one, other) => one.userIds.size - other.userIds.size)[0];
    const first = namesOf(userIds.slice(0, 3)).join(', ');
    if (!wider) return { text: `${size} users (${first} and ${size - 3} others)`, size };
    const out = [...wider.userIds].filter((userId) => !userIds.includes(userId));
    return { text: `${wider.name} without ${listed(namesOf(out), 'and')}`, size };
  }

  private isIn(userIds: readonly string[], group: ReadonlySet<string>): boolean {
    return userIds.every((userId) => group.has(userId));
  }
}
