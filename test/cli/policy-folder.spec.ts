import { execFileSync } from 'node:child_process';
import { cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { TypingUser } from './typed.js';

const examples = new URL('../../examples/policies/', import.meta.url);
const page = new URL('../../docs/how-to/policies-as-code.md', import.meta.url);

let user: TypingUser;

beforeAll(async () => {
  user = await TypingUser.sitDown();
  await cp(fileURLToPath(examples), user.path('examples/policies'), { recursive: true });
});

afterAll(() => user.leaves());

describe.each(['treasury', 'ci-signing', 'customer-wallets'])('the example %s', (name) => {
  it('has policies without a mistake, and passes its tests', async () => {
    expect(await user.types(['policies', 'check', `examples/policies/${name}`])).toMatchObject({ code: 0, error: '' });
    const { code, out, error } = await user.types(['policies', 'test', `examples/policies/${name}`]);
    expect([code, error]).toEqual([0, '']);
    expect(out).toMatch(/\n(\d+) of \1 tests passed\.\n$/);
  });
});

/** The treasury's policies, with one part as it should not be. */
async function changed(from: string, to: string): Promise<void> {
  const text = await readFile(new URL('treasury/policies.yaml', examples), 'utf8');
  expect(text.split(from)).toHaveLength(2);
  await writeFile(user.path('examples/policies/treasury/policies.yaml'), text.replace(from, to));
}

it('test says what the guide shows', async () => {
  const text = await readFile(page, 'utf8');
  const { out } = await user.types(['policies', 'test', 'examples/policies/treasury']);
  expect(text).toContain(`$ countersign policies test examples/policies/treasury\n${out}`);
  await changed('approvers.filter(user', 'aprovers.filter(user');
  const { code, out: mistakes } = await user.types(['policies', 'check', 'examples/policies/treasury']);
  expect(code).toBe(1);
  expect(text).toContain(`$ countersign policies check examples/policies/treasury\n${mistakes}`);
  expect((await user.types(['policies', 'test', 'examples/policies/treasury'])).code).toBe(1);
});

it.each([
  ['<wallet Treasury>', '<wallet Tresury>', 'policies.yaml:10:59: there is no wallet `Tresury` in this file\n'],
  ['members: [Ann, Ben]', 'members: [Ann, Bob]', 'policies.yaml:4:18: there is no user `Bob` in `users`\n'],
  [
    'effect: deny\n    condition: eth',
    'efect: deny\n    condition: eth',
    /^policies\.yaml:13:12: unknown `efect`: known are /,
  ],
  ["'UPDATE_USER',", "'UPDATE_USERS',", /^policies\.yaml:\d+:\d+: unknown activity kind `UPDATE_USERS`/],
  ['    condition: |\n', '    condition: |\n      wallet.id &&\n', /^policies\.yaml:18:14: /],
  [
    'members: [Ann, Ben]',
    'members: *nobody',
    'policies.yaml:4:12: `*nobody` is an alias: write out what it stands for\n',
  ],
  ['quorum:', 'quorum: [', /^policies\.yaml:\d+:\d+: /],
])('check reports %j as %j with its place', async (from, to, expected) => {
  await changed(from, to);
  const { code, out } = await user.types(['policies', 'check', 'examples/policies/treasury']);
  expect(code).toBe(1);
  if (typeof expected === 'string') expect(out).toBe(expected);
  else expect(out).toMatch(expected);
});

it('test fails where an outcome is another, and tells a CI server', async () => {
  await changed('count() >= 2', 'count() >= 3');
  const ran = await user.types(['policies', 'test', 'examples/policies/treasury', '--junit', 'results.xml']);
  expect(ran.code).toBe(1);
  expect(ran.out).toMatch(/^FAILED {2}two treasurers sign +needs \[Theo\]; expected allow$/m);
  const report = await readFile(user.path('results.xml'), 'utf8');
  expect(report).toContain('<testsuite name="policies" tests="5" failures="2">');
  expect(report).toContain('<failure message="needs [Theo]; expected allow"/>');
});

it('test says what one of the tests lacks', async () => {
  await changed('count() >= 2', 'count()  >= 2');
  const tests = ['tests:', '  - by: Nobody', '    activity: SIGN_TRANSACTIONS', '    expect: maybe', ''].join('\n');
  await writeFile(user.path('examples/policies/treasury/treasury.test.yaml'), tests);
  const { code, out } = await user.types(['policies', 'test', 'examples/policies/treasury']);
  expect([code, out.split('\n').map((line) => line.replace(/: .*/, ''))]).toEqual([
    1,
    ['treasury.test.yaml:2:9', 'treasury.test.yaml:3:15', 'treasury.test.yaml:4:13', ''],
  ]);
  expect((await user.types(['policies', 'test', 'nowhere'])).code).toBe(2);
});

describe('a folder of somebody else', () => {
  const folder = () => user.path('others');
  const file = () => user.path('others', 'policies.yaml');

  beforeEach(() => mkdir(folder(), { recursive: true }));
  afterEach(() => rm(folder(), { recursive: true }));

  it.each<readonly [string, () => unknown, RegExp]>([
    ['a device', () => symlink('/dev/zero', file()), /it is not a file/],
    ['a pipe nobody writes to', () => execFileSync('mkfifo', [file()]), /it is not a file/],
    ['a folder', () => mkdir(file()), /it is (?:not a file|a folder)/],
    ['a large file', () => writeFile(file(), '#'.repeat(1024 * 1024 + 1)), /it has 1048577 bytes; at most 1048576/],
  ])('is refused at once if policies.yaml is %s', async (_what, make, reason) => {
    await make();
    const { code, error } = await user.types(['policies', 'check', folder()]);
    expect([code, error]).toEqual([2, expect.stringMatching(reason) as string]);
  });

  it('may not say something twice', async () => {
    await writeFile(file(), 'policies: []\npolicies: []\n');
    const { code, out } = await user.types(['policies', 'check', folder()]);
    expect([code, out]).toEqual([1, 'policies.yaml:2:1: `policies` stands here twice\n']);
  });

  it('is told a hundred mistakes, and that there are more', async () => {
    await writeFile(
      file(),
      `${Array.from({ length: 60_000 }, (_, at) => `unknown${at}: 1`).join('\n')}\npolicies: []\n`,
    );
    const { code, out } = await user.types(['policies', 'check', folder()]);
    expect([code, out.split('\n').length]).toEqual([1, 102]);
    expect(out).toMatch(/there are more mistakes than these 100\n$/);
  });
});
