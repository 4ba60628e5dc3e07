import type { Analysis } from './consensus-analysis.js';
import type { Tally } from './tally.js';
import type { Voter, VoteSet } from './votes.js';

/** What a question concludes from a set of votes: `too-many` if a smaller one may be what it looks for. */
type Test = (set: VoteSet) => 'found' | 'too-many' | 'none';

/**
 * Searches for a set of the voters' votes: first everyone, then, kind by kind, as few as are still too many, then every
 * set from the smallest on; or only the last, to find the smallest.
 */
export function search(
  analysis: Analysis,
  voters: readonly Voter[],
  tally: Tally,
  test: Test,
  order: 'by guesses first' | 'from the smallest' = 'by guesses first',
): boolean {
  if (analysis.kind === 'ordered') return searchSequences(voters, tally, test);
  const { cap } = analysis;
  const kinds = new Map<string, Voter[]>();
  for (const voter of voters) {
    const known = kinds.get(voter.kind);
    if (known) known.push(voter);
    else kinds.set(voter.kind, [voter]);
  }
  const groups = [...kinds.values()].map((alike) => ({ voters: alike, choices: alike[0]!.choices }));
  const slots = groups.flatMap(({ voters: alike, choices }, group) =>
    choices.map((choice, place) => ({
      choice,
      group,
      place,
      of: { voters: alike, place },
      limit: choice.isNeutral ? 1 : Math.min(cap, alike.length),
    })),
  );
  const setOf = (counts: readonly number[]): VoteSet => {
    tally.steps.take('listElement', counts.length);
    return counts.flatMap((count, index) => (count > 0 ? [{ ...slots[index]!, count }] : []));
  };

  // A match is mostly found here, even if there are too many sets to try each.
  const guesses = tally.steps.spent + tally.steps.left / 2;
  const isGuessing = () => order === 'by guesses first' && tally.steps.spent < guesses;
  const mostChoices = Math.max(0, ...groups.map(({ choices }) => choices.length));
  for (let choice = 0; choice < mostChoices && isGuessing(); choice += 1) {
    const counts = slots.map(({ group, place, limit }) => {
      const { choices } = groups[group]!;
      return place === Math.min(choice, choices.length - 1) ? limit : 0;
    });
    if (test(setOf(counts)) === 'found') return true;
    for (let index = 0; index < counts.length; index += 1) {
      let fewest = 0;
      let kept = counts[index]!;
      while (fewest < kept && isGuessing()) {
        counts[index] = Math.floor((fewest + kept) / 2);
        const answer = test(setOf(counts));
        if (answer === 'found') return true;
        if (answer === 'too-many') kept = counts[index]!;
        else fewest = counts[index]! + 1;
      }
      counts[index] = kept;
    }
  }

  // How many the slots from each on can take, so that no branch is entered that cannot be filled.
  const capacity: number[] = [];
  for (let index = slots.length - 1, inGroup = 0, behind = 0; index >= 0; index -= 1) {
    const { group, limit } = slots[index]!;
    inGroup += limit;
    capacity[index] = behind + Math.min(inGroup, groups[group]!.voters.length);
    if (slots[index - 1]?.group !== group) {
      behind = capacity[index]!;
      inGroup = 0;
    }
  }
  const free = groups.map(({ voters: alike }) => alike.length);
  const set: VoteSet[number][] = [];
  const fill = (first: number, left: number): boolean => {
    if (left === 0) return test(set) === 'found';
    for (let index = first; index < slots.length && left <= capacity[index]! && !tally.isSpent; index += 1) {
      const { choice, group, limit, of } = slots[index]!;
      for (let count = Math.min(left, limit, free[group]!); count > 0; count -= 1) {
        set.push({ choice, count, of });
        free[group]! -= count;
        const isFound = fill(index + 1, left - count);
        free[group]! += count;
        set.pop();
        if (isFound) return true;
      }
    }
    return false;
  };
  for (let size = 0; size <= (capacity[0] ?? 0) && !tally.isSpent; size += 1) if (fill(0, size)) return true;
  return false;
}

function searchSequences(voters: readonly Voter[], tally: Tally, test: Test): boolean {
  const sequence: VoteSet[number][] = [];
  const used = new Set<Voter>();
  const extend = (left: number): boolean => {
    if (tally.isSpent) return false;
    if (left === 0) return test(sequence) === 'found';
    return voters.some((voter) => {
      if (used.has(voter)) return false;
      used.add(voter);
      const isFound = voter.choices.some((choice) => {
        sequence.push({ choice, count: 1 });
        const isFoundWith = extend(left - 1);
        sequence.pop();
        return isFoundWith;
      });
      used.delete(voter);
      return isFound;
    });
  };
  for (let length = 0; length <= voters.length && !tally.isSpent; length += 1) if (extend(length)) return true;
  return false;
}
