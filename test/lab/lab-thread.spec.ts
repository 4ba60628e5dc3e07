import { LabThread } from '../../src/lab/lab-thread.js';
import type { LintSubject } from '../../src/lab/lint-subject.js';

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

/** A thread that does this with each question. */
const threadThat = (does: string, longestMs?: number) =>
  new LabThread({
    file: new URL(
      `data:text/javascript,${encodeURIComponent(
        `import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => ${does});`,
      )}`,
    ),
    ...(longestMs === undefined ? {} : { longestMs }),
  });

test('eight questions of an organization are answered one after the other, and a ninth is refused at once', async () => {
  const answers = `setTimeout(() => parentPort.postMessage({ kind: 'lint', report: ${JSON.stringify(nothing)} }), 100)`;
  const thread = threadThat(answers);
  const eight = Array.from({ length: 8 }, () => thread.lint(whose, subject));
  await expect(thread.lint(whose, subject)).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
  // Another family has places of its own.
  const other = thread.lint({ family: 'other', organizationId: 'other' }, subject);
  expect(await Promise.all([...eight, other])).toEqual(Array.from({ length: 9 }, () => nothing));
  await thread.close();
});

test.each([
  // On a busy machine a thread takes longer than half a second to start, and dies only then.
  ['dies', 'process.exit(1)', 30_000, 'the thread that answers about policies has ended'],
  ['does not answer', 'undefined', 500, 'the answer was not available within 0.5 s'],
])('a thread that %s is replaced, and whoever asked is told so', async (_what, does, longestMs, message) => {
  const thread = threadThat(does, longestMs);
  for (let times = 0; times < 2; times++) {
    await expect(thread.lint(whose, subject)).rejects.toThrow(message);
  }
  await thread.close();
});

test('what goes wrong in the thread is said, and the next question is answered', async () => {
  const broken = `{ kind: 'failed', reason: 'the clause is odd' }`;
  const whole = `{ kind: 'lint', report: ${JSON.stringify(nothing)} }`;
  const thread = threadThat(
    `{ parentPort.postMessage(globalThis.isAsked ? ${whole} : ${broken}); globalThis.isAsked = true; }`,
  );
  await expect(thread.lint(whose, subject)).rejects.toThrow('the clause is odd');
  expect(await thread.lint(whose, subject)).toEqual(nothing);
  await thread.close();
});
