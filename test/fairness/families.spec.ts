import { setImmediate as turn } from 'node:timers/promises';
import { CoordinatorError } from '../../src/domain/errors.js';
import { Families } from '../../src/fairness/families.js';

/** Tasks that run until they are let go, and the order in which they began. */
function tasks(most: number) {
  const families = new Families(most, 'tasks');
  const begun: string[] = [];
  const running: (() => void)[] = [];
  const start = (organizationId: string) =>
    families.inTurn({ family: 'parent', organizationId }, () => {
      begun.push(organizationId);
      return new Promise<string>((end) => running.push(() => end(organizationId)));
    });
  const end = async (started: Promise<string>) => {
    await turn();
    running.shift()!();
    await started;
  };
  return { begun, start, end };
}

/** What a task that finds no place is told. */
async function refusalOf(started: Promise<string>): Promise<string> {
  const began = turn('it waits');
  const refused: unknown = await Promise.race([started, began]).catch((error: unknown) => error);
  return refused instanceof CoordinatorError ? JSON.stringify(refused.details) : String(refused);
}

test('who has most makes room for siblings and for the parent, and each of them has a place', async () => {
  const { start } = tasks(4);
  const greedy = Array.from({ length: 4 }, () => start('greedy'));
  expect(await refusalOf(start('greedy'))).toContain('tasks: 4, of which whoever has most');
  const others = ['sibling', 'another', 'parent', 'third', 'fourth', 'fifth'].map(start);
  expect(await Promise.all(others.map(refusalOf))).toEqual(others.map(() => 'it waits'));
  const refusals = await Promise.all(greedy.map(refusalOf));
  expect(refusals.map((refusal) => refusal === 'it waits')).toEqual([true, false, false, false]);
});

test('of two that ask all the time neither keeps the other out', async () => {
  const { start, end } = tasks(2);
  const running = start('greedy');
  const waiting = start('greedy');
  const sibling = start('sibling');
  expect(await refusalOf(waiting)).toContain('tasks: 2');
  expect(await refusalOf(start('greedy'))).toContain('tasks: 2');
  await end(running);
  await end(sibling);
});

test('the parent waits for one of its sub-organizations, and none of these for all of another’s', async () => {
  const { begun, start, end } = tasks(8);
  const started = ['greedy', 'greedy', 'sibling', 'parent', 'parent'].map(start);
  const [greedy, again, sibling, own, last] = started as [Promise<string>, ...Promise<string>[]];
  for (const one of [greedy, again, own, sibling, last]) await end(one!);
  expect(begun).toEqual(['greedy', 'greedy', 'parent', 'sibling', 'parent']);
});

test('a task that fails lets the next one begin', async () => {
  const families = new Families(4, 'tasks');
  const whose = { family: 'parent', organizationId: 'parent' };
  const failing = families.inTurn(whose, () => Promise.reject(new Error('broken')));
  const next = families.inTurn(whose, () => Promise.resolve('done'));
  await expect(failing).rejects.toThrow('broken');
  expect(await next).toBe('done');
});
