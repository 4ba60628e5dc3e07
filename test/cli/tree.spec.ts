import { CliCommand } from '../../src/cli/command.js';
import { Terminal } from '../../src/cli/terminal.js';
import { commandTree } from '../../src/cli/tree.js';
import { TypingUser } from './typed.js';

/* What holds for every command of the tree. */

function* leavesOf(command: CliCommand): Generator<CliCommand> {
  if (command.commands.length === 0) yield command;
  for (const one of command.commands) if (one instanceof CliCommand) yield* leavesOf(one);
}

const leaves = [...leavesOf(commandTree(Terminal.ofProcess()))].map((leaf) => [leaf.fullName, leaf] as const);

let user: TypingUser;

beforeAll(async () => {
  user = await TypingUser.sitDown();
});

afterAll(() => user.leaves());

/** The command with everything that it requires. */
function sufficient({ fullName, registeredArguments, options }: CliCommand): string[] {
  return [
    ...fullName.split(' ').slice(1),
    ...registeredArguments.filter(({ required }) => required).map(() => 'x'),
    ...options.filter(({ mandatory }) => mandatory).flatMap(({ long }) => [long!, 'x']),
  ];
}

describe.each(leaves)('%s', (_name, leaf) => {
  const words = sufficient(leaf);

  test('has help with an example, and leads to the exit codes', async () => {
    const { code, out, error } = await user.types([...words, '--help']);
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(out).toMatch(/^Usage: countersign /);
    expect(out).toMatch(/\n {2}--json +print one line of JSON|\n {2}--json +when it is up/);
    expect(out).toMatch(/\nExamples:\n {2}.+\n {4}\$ countersign /);
    expect(out).toMatch(/\nExit codes: see countersign --help\n$/);
  });

  test('refuses an option that it does not know', async () => {
    expect(await user.types([...words, '--zzz'])).toEqual({
      code: 2,
      out: '',
      error: "error: unknown option '--zzz'\n(add --help for usage)\n",
    });
    const { code, error } = await user.types([...words, '--zzz', '--json']);
    expect([code, JSON.parse(error)]).toEqual([2, { error: { message: "unknown option '--zzz'", exitCode: 2 } }]);
  });

  test('refuses an argument more than it takes', async () => {
    const takesMany = leaf.registeredArguments.some(({ variadic }) => variadic);
    const optional = leaf.registeredArguments.filter(({ required }) => !required).map(() => 'x');
    const { code, out, error } = await user.types([...words, ...optional, ...(takesMany ? ['--zzz'] : ['x'])]);
    expect([code, out]).toEqual([2, '']);
    expect(error).toMatch(takesMany ? /^error: unknown option/ : /^error: too many arguments/);
  });
});

test('help gives the meaning of each exit code', async () => {
  const { out } = await user.types(['--help']);
  expect(out).toMatch(
    /\nExit codes:\n {2}0 {2}done\n {2}1 .+\n {2}2 .+\n {2}3 .+\n {2}4 .+\n {2}5 .+\n {2}6 .+\n {2}7 .+\n/,
  );
});

test.each([
  ['history export', /ask the operator for the file; `countersign replay --profile` shows the history/],
  ['history fork', /`countersign policies what-if --profile` tries other policies/],
  ['kek rotate', /ask the operator/],
  ['webhooks redeliver', /ask the operator/],
])('%s opens the store, and says what to do with a profile instead', async (name, instead) => {
  const { code, out, error } = await user.types([...name.split(' '), '--profile', 'alice']);
  expect([code, out]).toEqual([2, '']);
  expect(error).toContain(`error: countersign ${name} opens the store, so it takes no --profile`);
  expect(error).toMatch(instead);
  expect((await user.types([...name.split(' '), '--help'])).out).not.toMatch(/^ {2}--profile/m);
  const completion = await user.types(['completion', 'bash']);
  expect(completion.out).toMatch(new RegExp(`" ${name}"\\) words="--data-dir (?!.*--profile)`));
});

test('history export and fork say in their help who may run them', async () => {
  for (const verb of ['export', 'fork']) {
    const { out } = await user.types(['history', verb, '--help']);
    expect(out.replace(/\s+/g, ' ')).toMatch(/Opens the store, so it is for the operator: with a profile, /);
  }
});
