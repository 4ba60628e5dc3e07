import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

// The check of every response judges something: a run of jest with its own configuration, over a server with planted faults.

interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly title: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

function runJest(...args: readonly string[]): Promise<Report> {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  return new Promise((ended, failed) => {
    const env = { ...process.env, BUILT: '1' };
    execFile(
      process.execPath,
      ['node_modules/jest/bin/jest.js', '--json', '-w', '1', ...args],
      { cwd: root, env },
      (_error, out, said) => {
        try {
          ended(JSON.parse(out) as Report);
        } catch {
          failed(new Error(`jest did not run: ${said}`));
        }
      },
    );
  });
}

test('an undocumented response fails the test in which it was sent, and no other', async () => {
  const { testResults } = await runJest('--testMatch', '**/test/answers/undocumented.ts');
  const { assertionResults } = testResults[0]!;
  const outcomes = assertionResults.map(({ title, failureMessages }) => [
    title,
    /responses that are not as documented:\n(.*)/.exec(failureMessages.join('\n'))?.[1],
  ]);
  const more = 'POST /public/v1/query/whoami responded 404: body must NOT have unevaluated properties';
  expect(Object.fromEntries(outcomes)).toEqual({
    'a documented response': undefined,
    'a documented large response': undefined,
    'an undocumented member': more,
    'an undocumented member of a large response': more,
    'an undocumented status': 'POST /public/v1/query/whoami responded 418: the status is not documented',
    'an undocumented path': 'POST /public/v1/submit/nothing responded 200: it is no documented path',
    'a response through a path of the auth proxy': expect.stringContaining(
      'POST /v1/otp_init responded 200: body ',
    ) as string,
    'a path that is not of the API': undefined,
    'a fake server': undefined,
    'in a hook': `${more}, body must NOT have unevaluated properties`,
  });
  expect(assertionResults.filter(({ status }) => status === 'failed')).toHaveLength(6);
});
