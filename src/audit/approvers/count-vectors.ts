import type { Steps } from '../../domain/steps.js';

/** How many users of each class, by the number of the class. Users of one class are interchangeable. */
export type Counts = readonly number[];

/** Whether every set of users with these counts includes one with those. */
export function covers(counts: Counts, others: Counts): boolean {
  for (let index = 0; index < counts.length; index++) if (counts[index]! < others[index]!) return false;
  return true;
}

/** The smallest of these: those that cover no other one. */
export function smallest(family: readonly Counts[], steps: Steps): readonly Counts[] {
  const bySize = family.toSorted((one, other) => sizeOf(one) - sizeOf(other));
  const kept: Counts[] = [];
  for (const counts of bySize) {
    steps.take('listElement', (kept.length + 1) * counts.length);
    if (!kept.some((one) => covers(counts, one))) kept.push(counts);
  }
  return kept;
}

/** The smallest that cover one of each family. */
export function joined(families: readonly (readonly Counts[])[], steps: Steps): readonly Counts[] {
  const [first = [], ...others] = families;
  let made = smallest(first, steps);
  for (const family of others) {
    const pairs = made.flatMap((one) => {
      steps.take('listElement', family.length * one.length);
      return family.map((other) => one.map((count, index) => Math.max(count, other[index]!)));
    });
    made = smallest(pairs, steps);
  }
  return made;
}

/** All ways to take so many users from these classes. */
export function choices(
  count: number,
  from: readonly number[],
  sizes: readonly number[],
  steps: Steps,
): readonly Counts[] {
  const made: Counts[] = [];
  const counts = sizes.map(() => 0);
  const take = (index: number, left: number, room: number): void => {
    steps.take('listElement', 4);
    if (left === 0) {
      steps.take('listElement', counts.length);
      made.push([...counts]);
    }
    const group = from[index];
    if (left === 0 || group === undefined || left > room) return;
    const behind = room - sizes[group]!;
    for (let taken = Math.max(0, left - behind); taken <= Math.min(left, sizes[group]!); taken++) {
      counts[group] = taken;
      take(index + 1, left - taken, behind);
    }
    counts[group] = 0;
  };
  take(
    0,
    count,
    from.reduce((sum, group) => sum + sizes[group]!, 0),
  );
  return made;
}

/**
 * The smallest numbers of users without whom none of the family can be filled: for each member of it, too few users of
 * some class are left.
 */
export function blocking(family: readonly Counts[], sizes: readonly number[], steps: Steps): readonly Counts[] {
  let made: readonly Counts[] = [sizes.map(() => 0)];
  for (const wanted of family) {
    const lacking = sizes.map((size, index) => (wanted[index]! > 0 ? size - wanted[index]! + 1 : 0));
    const next = made.flatMap((counts) => {
      steps.take('listElement', 2 * counts.length);
      if (lacking.some((least, index) => least > 0 && counts[index]! >= least)) return [counts];
      return lacking.flatMap((least, index) => (least > 0 ? [counts.with(index, least)] : []));
    });
    made = smallest(next, steps);
  }
  return made;
}

/**
 * Joins classes whose users are interchangeable for the whole family, though something tells them apart: the family has
 * the same sets after any exchange of them.
 */
export function merged(
  family: readonly Counts[],
  sizes: readonly number[],
  steps: Steps,
): { readonly family: readonly Counts[]; readonly groups: readonly (readonly number[])[] } {
  let known = family;
  let groups = sizes.map((_, index) => [index]);
  let room = [...sizes];
  for (let kept = 0; kept < groups.length; kept++) {
    for (let other = kept + 1; other < groups.length;) {
      const together = exchanged(known, room, kept, other, steps);
      if (!together) {
        other++;
        continue;
      }
      known = together;
      groups[kept] = [...groups[kept]!, ...groups[other]!];
      room[kept]! += room[other]!;
      groups = groups.toSpliced(other, 1);
      room = room.toSpliced(other, 1);
    }
  }
  return { family: known, groups };
}

/** The family with two classes as one, if their users are interchangeable in it. */
function exchanged(
  family: readonly Counts[],
  sizes: readonly number[],
  one: number,
  other: number,
  steps: Steps,
): readonly Counts[] | undefined {
  steps.take('listElement', 4 * family.length * sizes.length);
  const found = new Map<string, { readonly counts: Counts; ways: number }>();
  for (const counts of family) {
    const both = counts.with(one, counts[one]! + counts[other]!).toSpliced(other, 1);
    const known = found.get(both.join());
    if (known) known.ways++;
    else found.set(both.join(), { counts: both, ways: 1 });
  }
  for (const { counts, ways } of found.values()) {
    const count = counts[one]!;
    const possible = Math.min(count, sizes[one]!) - Math.max(0, count - sizes[other]!) + 1;
    if (ways < possible) return undefined;
  }
  return Array.from(found.values(), ({ counts }) => counts);
}

/** How many different sets of users a family stands for. */
export function setsIn(family: readonly Counts[], sizes: readonly number[]): bigint {
  return family.reduce(
    (sum, counts) => sum + counts.reduce((ways, count, index) => ways * binomial(sizes[index]!, count), 1n),
    0n,
  );
}

function binomial(of: number, count: number): bigint {
  let ways = 1n;
  const taken = Math.min(count, of - count);
  for (let index = 1; index <= taken; index++) ways = (ways * BigInt(of - taken + index)) / BigInt(index);
  return ways;
}

function sizeOf(counts: Counts): number {
  return counts.reduce((sum, count) => sum + count, 0);
}
