import { jest } from '@jest/globals';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { makers } from '../../packages/analyze/src/trial/trial-parameters.js';
import { TypingUser } from '../cli/typed.js';

// The solver and a coordinator of its own: a minute on a machine with other work to do, and then some.
jest.setTimeout(300_000);

const examples = new URL('../../examples/policies/', import.meta.url);
const page = new URL('../../docs/how-to/analyze-your-policies.md', import.meta.url);

let user: TypingUser;

beforeAll(async () => {
  user = await TypingUser.sitDown();
  await cp(fileURLToPath(examples), user.path('examples/policies'), { recursive: true });
});

afterAll(() => user.leaves());

const analyze = (name: string, ...options: string[]) =>
  user.types(['policies', 'analyze', `examples/policies/${name}`, ...options]);

it.each(['ci-signing', 'customer-wallets'])('analyze answers the questions of the example %s', async (name) => {
  const { code, out, error } = await analyze(name);
  expect([code, error]).toEqual([0, '']);
  expect(out).toMatch(/\n(\d+) of \1 answers are as expected\.\n$/);
  expectExecuted(out);
});

it('analyze says of the treasury what the guide shows', async () => {
  const { code, out, error } = await analyze('treasury');
  expect([code, error]).toEqual([0, '']);
  expect(await readFile(page, 'utf8')).toContain(`$ countersign policies analyze examples/policies/treasury\n${out}`);
  expectExecuted(out);
});

/** Every example was. */
function expectExecuted(out: string): void {
  const examples = out.match(/^  \w+ submits /gm) ?? [];
  expect(examples.length).toBeGreaterThan(0);
  expect(out.match(/^  executed in a coordinator/gm)).toHaveLength(examples.length);
}

it('executes what policies say of other chains and of typed data, what is denied, and who is needed', async () => {
  const folder = user.path('examples/policies/chains');
  const conditions = [
    "solana.tx.transfers.count() == 1 && solana.tx.transfers.all(t, t.to == '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T' && t.amount < 9)",
    "solana.tx.spl_transfers.count() == 1 && solana.tx.spl_transfers.all(t, t.amount > 1000 && t.token_mint != 'x')",
    "tron.tx.contract.all(c, c.type == 'TransferContract' && c.amount <= 5) && tron.tx.fee_limit > 7",
    "bitcoin.tx.outputs.all(o, o.address == 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq') && bitcoin.tx.fee < 1000",
    "eth.eip_712.domain.name == 'Shop' && eth.eip_712.message['amount'] < 5 && eth.eip_712.primary_type == 'Order'",
    "eth.eip_7702_authorization.chain_id == 1 && eth.eip_7702_authorization.address != '0x'",
    // Verbs refuse a list of no wallets, some lengths, and users that there are not.
    "activity.kind == 'DELETE_WALLETS' && wallets.all(w, w.label != 'Hot')",
    "activity.kind == 'INIT_OTP_AUTH' && activity.params.otp_length != 9",
    "activity.kind == 'UPDATE_USER_EMAIL' && activity.params.user_id != '<user Sam>'",
  ];
  await mkdir(folder);
  const names = conditions.map((_, index) => `Policy ${index}`);
  const policies = names.map((name, index) => `  - { name: ${name}, condition: "${conditions[index]}" }`);
  const file = ['quorum: { members: [Ann] }', 'users: [Ann, Dev, Sam]', 'policies:', ...policies, ''];
  await writeFile(`${folder}/policies.yaml`, file.join('\n'));
  const asked = [
    ...names.map((name) => `  - { implied: [${name}], by: none.yaml, expect: no }`),
    // Of denials, of what is still possible, and of what is not any more.
    '  - { implied: denials.yaml, by: fewer.yaml, expect: no }',
    '  - { lockedOutWithout: Dev, do: SIGN, expect: no }',
    '  - { lockedOutWithout: Ann, do: CREATE, expect: yes }',
  ];
  const denials = (condition: string) =>
    ['quorum: { members: [Ann] }', 'users: [Ann, Dev, Sam]', 'policies:']
      .concat(`  - { name: None, effect: deny, condition: "${condition}" }`, '')
      .join('\n');
  await writeFile(`${folder}/denials.yaml`, denials("activity.action == 'SIGN'"));
  await writeFile(`${folder}/fewer.yaml`, denials("activity.action == 'SIGN' && wallet.label != 'Hot'"));
  await writeFile(`${folder}/none.yaml`, 'quorum: { members: [Ann] }\nusers: [Ann, Dev, Sam]\npolicies: []\n');
  await writeFile(`${folder}/chains.analysis.yaml`, ['questions:', ...asked, ''].join('\n'));
  const { code, out, error } = await analyze('chains');
  expect([code, error]).toEqual([0, '']);
  expectExecuted(out);
});

it('executes calls that policies name, with their arguments', async () => {
  const folder = user.path('examples/policies/calls');
  const args = 'eth.tx.contract_call_args';
  const parsed = 'solana.tx.instructions[0].parsed_instruction_data';
  const swap = `${parsed}.instruction_name == 'swap' && ${parsed}.program_call_args['amount'] <= 5`;
  const conditions = [
    `eth.tx.to == '0x${'ab'.repeat(20)}' && eth.tx.function_name == 'pay' && ${args}['amount'] <= 5`,
    `eth.tx.function_signature == '0xa9059cbb' && eth.tx.function_name == 'transfer' && ${args}['to'] == '0x${'cd'.repeat(20)}'`,
    'solana.tx.address_table_lookups.any(l, l.readonly_indexes.contains(7)) && solana.tx.instructions.count() == 0',
    `${swap} && ${parsed}.named_accounts['vault'] == '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T'`,
  ];
  await mkdir(folder);
  const policies = conditions.map((condition, index) => `  - { name: Policy ${index}, condition: "${condition}" }`);
  const head = ['quorum: { members: [Ann] }', 'users: [Ann, Dev]'];
  await writeFile(`${folder}/none.yaml`, [...head, 'policies: []', ''].join('\n'));
  const asked = conditions.map((_, index) => `  - { implied: [Policy ${index}], by: none.yaml, expect: no }`);
  // What has a function's name has its arguments, too, though denials would not mind.
  const named = `  - { name: Named, condition: "eth.tx.function_name == 'pay'" }`;
  const limited = `  - { name: Limited, effect: deny, condition: "${args}['amount'] > 5" }`;
  policies.push(named, limited);
  asked.push('  - { implied: [Named, Limited], by: none.yaml, expect: no }');
  await writeFile(`${folder}/policies.yaml`, [...head, 'policies:', ...policies, ''].join('\n'));
  await writeFile(`${folder}/calls.analysis.yaml`, ['questions:', ...asked, ''].join('\n'));
  const { code, out, error } = await analyze('calls');
  expect([code, error]).toEqual([0, '']);
  expectExecuted(out);
});

const questions = (...lines: readonly string[]) =>
  writeFile(user.path('examples/policies/treasury/treasury.analysis.yaml'), ['questions:', ...lines, ''].join('\n'));

it('analyze fails where an answer is another, and shows the request', async () => {
  await questions(
    '  - can: [Otto]',
    '    do: SIGN',
    '    expect: possible',
    '  - can: anyone',
    '    do: EXPORT_WALLET',
    '    expect: never',
    // Of many kinds, one that can be executed.
    '  - can: anyone',
    '    do: CREATE',
    '    expect: possible',
  );
  const { code, out } = await analyze('treasury', '--json');
  const { questions: told, bounds } = JSON.parse(out) as {
    readonly questions: readonly {
      readonly got: string;
      readonly example?: { readonly activity: string };
      readonly execution?: object;
    }[];
    readonly bounds: readonly string[];
  };
  expect(code).toBe(1);
  expect(told.map(({ got }) => got)).toEqual(['never', 'possible', 'possible']);
  expect(told[1]!.example).toMatchObject({
    activity: 'ACTIVITY_TYPE_EXPORT_WALLET',
    approvals: [expect.stringMatching(/^(Ann|Ben)$/)],
  });
  expect(told[1]!.execution).toEqual({ outcome: 'executed', steps: [['waits', 'allowed']] });
  expect(told[2]!.execution).toMatchObject({ outcome: 'executed' });
  expect(bounds.join('\n')).toContain('at most 3 elements');
});

it('analyze calls an answer unconfirmed whose example cannot be executed, and fails unless that is expected', async () => {
  const folder = user.path('examples/policies/unconfirmed');
  await mkdir(folder);
  const head = 'quorum: { members: [Ann] }\nusers: [Ann, Dev]\npolicies:';
  await writeFile(`${folder}/policies.yaml`, `${head}\n  - { name: All, effect: allow }\n`);
  await writeFile(`${folder}/none.yaml`, `${head} []\n`);
  // A member of the root quorum is theirs alone, whatever policies say.
  const about = (expect: string) =>
    `  - { can: [Dev], do: UPDATE_USER, params: { user_id: <user Ann> }, expect: ${expect} }`;
  const asked = ['possible', 'never', 'unconfirmed'].map(about);
  asked.push('  - { implied: policies.yaml, by: none.yaml, expect: unconfirmed }');
  await writeFile(`${folder}/root.analysis.yaml`, ['questions:', ...asked, ''].join('\n'));
  const { code, out } = await analyze('unconfirmed');
  expect([code, out.split('\n', 5).slice(1)]).toEqual([
    1,
    [
      'FAILED  question 1  unconfirmed; expected possible',
      'FAILED  question 2  unconfirmed; expected never',
      'ok      question 3  unconfirmed',
      'FAILED  question 4  no; expected unconfirmed',
    ],
  ]);
  expect(out).toContain(
    '  decided, not executed: a member of the root quorum is theirs alone, whatever policies say\n',
  );
});

it('analyze fails, and names the question and the activity, where what builds an example is broken', async () => {
  await questions('  - can: anyone', '    do: EXPORT_WALLET', '    expect: possible');
  const type = 'ACTIVITY_TYPE_EXPORT_WALLET';
  const whole = makers[type];
  // Without what it makes wallets in.
  const broken: typeof whole = ({ facts }) => whole({ facts } as Parameters<typeof whole>[0]);
  Object.assign(makers, { [type]: broken });
  try {
    const { code, out, error } = await analyze('treasury');
    expect([code, out]).toEqual([1, '']);
    expect(error).toContain(`executing the example of “question 1” (${type}) failed`);
    expect(error).toMatch(/please report it, with the files:\nTypeError: .*'wallet'/);
  } finally {
    Object.assign(makers, { [type]: whole });
  }
});

it('analyze says what a question lacks, with its place', async () => {
  await questions(
    '  - can: everyone',
    '    do: SIGN',
    '    expect: never',
    '  - can: anyone',
    '    do: SING',
    '    expect: maybe',
    '  - can: [Nobody]',
    '    do: SIGN',
    '    resources: { wallet: { colour: red } }',
    '    expect: never',
    '  - implied: [No such policy]',
    '    by: other.yaml',
    '    expect: yes',
    '  - expect: yes',
  );
  const { code, out } = await analyze('treasury');
  expect([code, out.split('\n').map((line) => line.replace(/: .*/, ''))]).toEqual([
    1,
    ['2:10', '7:13', '6:9', '8:11', '10:16', '12:15', '13:9', '15:5']
      .map((place) => `treasury.analysis.yaml:${place}`)
      .concat(''),
  ]);
  expect((await user.types(['policies', 'analyze', 'nowhere'])).code).toBe(2);
  expect((await analyze('treasury', '--limit', 'soon')).code).toBe(2);
});
