import type { LintSubject } from '../../src/audit/lint/lint-subject.js';
import { queryTasks } from '../coordinator/query-tasks.js';
import { moduleFile } from '../threads/module-file.js';

const subject: LintSubject = {
  policies: [],
  users: [],
  logsIn: [],
  rootQuorum: { threshold: 1, userIds: [] },
  names: {},
  now: 0,
};
const whose = { family: 'acme', organizationId: 'acme' };
const nothing = { findings: [] };
const store = {
  async *read() {
    yield* await Promise.resolve([]);
  },
};

/** Tasks that do this with each subject. */
const tasksThat = async (does: string) =>
  queryTasks({ store, file: await moduleFile(`export const lint = async () => { ${does} };`) });

test('eight questions of an organization are answered one after the other, and a ninth is refused at once', async () => {
  const tasks = await tasksThat(`
    await new Promise((resolve) => setTimeout(resolve, 100));
    return { value: ${JSON.stringify(nothing)} };`);
  const eight = Array.from({ length: 8 }, () => tasks.lint(whose, subject));
  await expect(tasks.lint(whose, subject)).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
  // Another family has places of its own.
  const other = tasks.lint({ family: 'other', organizationId: 'other' }, subject);
  expect(await Promise.all([...eight, other])).toEqual(Array.from({ length: 9 }, () => nothing));
  await tasks.close();
});

test('lists of approvers and reports on policies share the places of a family', async () => {
  const tasks = await tasksThat(`return { value: ${JSON.stringify(nothing)} };`);
  const eight = Array.from({ length: 8 }, () => tasks.lint(whose, subject));
  const asked = { asked: {}, tagNames: new Map() } as unknown as Parameters<typeof tasks.approvers>[1];
  await expect(tasks.approvers(whose, asked)).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
  await Promise.all(eight);
  await tasks.close();
});

test('what goes wrong in the thread is said, and the next question is answered', async () => {
  const tasks = await tasksThat(`
    if (globalThis.isAsked) return { value: ${JSON.stringify(nothing)} };
    globalThis.isAsked = true;
    return { error: new Error('the clause is odd') };`);
  await expect(tasks.lint(whose, subject)).rejects.toThrow('the clause is odd');
  expect(await tasks.lint(whose, subject)).toEqual(nothing);
  await tasks.close();
});
