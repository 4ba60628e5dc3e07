import { decodedForMail, decodedOf } from '../../../src/domain/policy/decoded.js';
import { type Doubt, unreadable, type PolicyValue } from '../../../src/domain/policy/types.js';

type Values = Readonly<Record<string, PolicyValue | undefined>>;

const target = `0x${'11'.repeat(20)}`;
const ether = 10n ** 18n;

/** What is said of one payload: its sentence, its facts, and what could not be decoded. */
function told(resources: Values | Doubt) {
  const [{ text, facts, notDecoded }] = decodedOf({ resources }) as [ReturnType<typeof decodedOf>[0]];
  return { text, facts: facts.map(({ name, value }) => `${name}: ${value}`), notDecoded };
}

describe('an Ethereum transaction', () => {
  const transfer = { to: target, value: ether / 2n, chain_id: 1n, data: '0x', type: 'legacy', nonce: 7n };
  const tx = (more: Values = {}) => told({ eth: { tx: { ...transfer, ...more } } });
  const call = { data: `0xa9059cbb${'00'.repeat(64)}`, function_signature: '0xa9059cbb' };
  const isNotDecoded = '68 bytes of call data: decoded only where an interface of the contract is uploaded';

  test('that sends ether', () => {
    expect(tx()).toEqual({
      text: `0.5 ETH to ${target}, on chain 1.`,
      facts: [`To: ${target}`, 'Value: 0.5 ETH', 'Chain: 1', 'Nonce: 7', 'Type: "legacy"'],
      notDecoded: undefined,
    });
  });

  test.each([
    ['ether, where its currency is', { chain_id: 8453n }, `0.5 ETH to ${target}, on chain 8453.`],
    ['coins of a chain that is not known', { chain_id: 137n }, `0.5 coins of chain 137 to ${target}, on chain 137.`],
    [
      'for every chain, if it names none',
      { chain_id: undefined },
      `0.5 ETH to ${target}, on every chain that takes it (it names none).`,
    ],
    ['that makes a contract', { to: '' }, 'A new contract with 0.5 ETH, on chain 1.'],
    ['that calls', { ...call, value: 0n }, `A call to ${target}, on chain 1.`],
    ['that calls and pays', call, `0.5 ETH to ${target} with a call, on chain 1.`],
    ['that does nothing', { value: 0n }, `0 ETH to ${target}, on chain 1.`],
    ['with a value that is not readable', { value: unreadable('x') }, `not readable to ${target}, on chain 1.`],
  ])('%s', (_what, more, text) => {
    expect(tx(more).text).toBe(text);
  });

  test('names what it makes, and that it is for any chain', () => {
    expect(tx({ to: '', chain_id: undefined }).facts.slice(0, 3)).toEqual([
      'To: a new contract',
      'Value: 0.5 ETH',
      'Chain: any',
    ]);
  });

  test('has the highest fee where both of its factors are known', () => {
    expect(tx({ gas: 21_000n, max_fee_per_gas: 10n ** 9n }).facts).toContain('Highest fee: 0.000021 ETH');
    expect(tx({ gas: 21_000n, max_fee_per_gas: 10n ** 9n, chain_id: 137n }).facts).toContain(
      'Highest fee: 0.000021 coins of chain 137',
    );
    for (const more of [{ gas: 21_000n }, { max_fee_per_gas: 1n }]) {
      expect(tx(more).facts.filter((fact) => fact.startsWith('Highest fee'))).toEqual([]);
    }
  });

  test('whose call is decoded shows its arguments', () => {
    const args = { to: target, amounts: [1n, 2n], none: [], deep: { inner: 'a text' } };
    expect(tx({ ...call, value: 0n, function_name: 'transfer', contract_call_args: args })).toEqual({
      text: `A call to ${target}, on chain 1.`,
      facts: [
        `To: ${target}`,
        'Value: 0 ETH',
        'Chain: 1',
        'Function: transfer',
        'Nonce: 7',
        'Type: "legacy"',
        `argument.to: ${target}`,
        'argument.amounts[0]: 1',
        'argument.amounts[1]: 2',
        'argument.none: none',
        'argument.deep.inner: "a text"',
      ],
      notDecoded: undefined,
    });
  });

  test('keeps its own receiver and value apart from arguments that an uploader named like them', () => {
    const { facts } = tx({
      ...call,
      function_name: 'pay',
      contract_call_args: { To: `0x${'55'.repeat(20)}`, Value: '0 ETH' },
    });
    expect(facts.filter((fact) => /^(?:To|Value):/.test(fact))).toEqual([`To: ${target}`, 'Value: 0.5 ETH']);
    expect(facts).toEqual(expect.arrayContaining([`argument.To: 0x${'55'.repeat(20)}`, 'argument.Value: "0 ETH"']));
  });

  test('whose call is not decoded says so, and why', () => {
    const { facts, notDecoded } = tx(call);
    expect(facts).toContain('Function: 0xa9059cbb, not decoded');
    expect(notDecoded).toBe(isNotDecoded);
    expect(tx({ ...call, function_name: unreadable('the\ninterface is broken') }).notDecoded).toBe(
      '68 bytes of call data: the interface is broken',
    );
    // No name of a function: an uploader chose it.
    expect(tx({ ...call, function_name: 'transfer to www.example.com' }).notDecoded).toBe(isNotDecoded);
  });
});

test('typed data', () => {
  const domain = { name: 'A shop', version: '1', chain_id: 5n, verifying_contract: target };
  const typed = (eip_712: Values) => told({ eth: { eip_712 } });
  expect(typed({ primary_type: 'Order', domain, message: { price: 3n } })).toEqual({
    text: `Typed data (EIP-712) for ${target} on chain 5.`,
    facts: ['Type: "Order"', `Contract: ${target}`, 'Chain: 5', 'Domain: "A shop"', 'Version: 1', 'message.price: 3'],
    notDecoded: undefined,
  });
  const nameless = { text: 'Typed data (EIP-712) for no named contract.', notDecoded: undefined };
  expect(typed({ primary_type: 'Order', domain: {}, message: {} })).toEqual({ ...nameless, facts: ['Type: "Order"'] });
  expect(typed({ primary_type: 'Order', domain: { verifying_contract: `${target} or another` } }).text).toBe(
    nameless.text,
  );
});

test('an authorization of EIP-7702', () => {
  const authorized = (chain_id: PolicyValue) =>
    told({ eth: { eip_7702_authorization: { address: target, chain_id, nonce: 4n } } });
  expect(authorized(10n)).toEqual({
    text: `An authorization (EIP-7702) that lets the contract ${target} act as this account on chain 10.`,
    facts: [`Contract: ${target}`, 'Chain: 10', 'Nonce: 4'],
    notDecoded: undefined,
  });
  expect(authorized(unreadable('chain 0'))).toMatchObject({
    text: `An authorization (EIP-7702) that lets the contract ${target} act as this account on every chain.`,
    facts: [`Contract: ${target}`, 'Chain: every', 'Nonce: 4'],
  });
});

describe('a Solana transaction', () => {
  const [from, to, mint, program] = ['A', 'B', 'C', 'D'].map((letter) => letter.repeat(32)) as [
    string,
    string,
    string,
    string,
  ];
  const tx = (values: Values) =>
    told({ solana: { tx: { transfers: [], spl_transfers: [], instructions: [], ...values } } });
  const sol = { from, to, amount: 1_500_000_000n };
  const raw = { program_key: program, instruction_data_hex: '0102' };

  test('with transfers and calls', () => {
    const token = { from, to, amount: 9n, token_mint: mint };
    const parsed = { instruction_name: 'swap', program_call_args: { least: 2n } };
    const called = { ...raw, parsed_instruction_data: parsed };
    expect(tx({ transfers: [sol], spl_transfers: [token], instructions: [raw, called] })).toEqual({
      text: `1.5 SOL to ${to}, 9 smallest units of the token ${mint} to ${to}, in a Solana transaction of 2 instructions.`,
      facts: [
        `Transfer: 1.5 SOL to ${to}`,
        `Token transfer: 9 smallest units of the token ${mint} to ${to}`,
        `Instruction 1: 2 bytes for program ${program}`,
        `Instruction 2: "swap" of program ${program}`,
        'Instruction 2.least: 2',
      ],
      notDecoded: 'instructions other than transfers are decoded only where an interface of their program is uploaded',
    });
  });

  test('names the receivers of most with the sum of what they get, and the sum of all', () => {
    const paid = (receiver: string, coins: bigint) => ({ from, to: receiver.repeat(32), amount: coins * 10n ** 9n });
    const name = (letter: string) => letter.repeat(32);
    expect(tx({ transfers: Array(3).fill(sol), instructions: [raw] }).text).toBe(
      `4.5 SOL to ${to}, in a Solana transaction of 1 instruction.`,
    );
    const five = [paid('E', 1n), paid('F', 1n), paid('G', 2n), paid('Z', 900n), paid('E', 4n)];
    expect(tx({ transfers: five }).text).toBe(
      `908 SOL to 4 receivers, of it 900 SOL to ${name('Z')}, 5 SOL to ${name('E')}, 2 SOL to ${name('G')}, in a Solana transaction of 0 instructions.`,
    );
    expect(tx({}).text).toBe('A Solana transaction of 0 instructions.');
  });

  test('names tokens, receivers and amounts, and counts tokens beyond the third', () => {
    const token = (letter: string, receiver: string, amount: bigint) => ({
      from,
      to: receiver.repeat(32),
      amount,
      token_mint: letter && letter.repeat(32),
    });
    const [x, y] = ['X', 'Y'].map((letter) => letter.repeat(32));
    expect(tx({ spl_transfers: [token('C', 'X', 10n ** 12n), token('C', 'Y', 5n)] })).toMatchObject({
      text: `1000000000000 smallest units of the token ${mint} to ${x}, 5 smallest units of the token ${mint} to ${y}, in a Solana transaction of 0 instructions.`,
      facts: [
        `Token transfer: 1000000000000 smallest units of the token ${mint} to ${x}`,
        `Token transfer: 5 smallest units of the token ${mint} to ${y}`,
      ],
    });
    const { text } = tx({ spl_transfers: ['', 'C', 'D', 'E', 'F'].map((letter) => token(letter, 'X', 1n)) });
    expect(text).toContain(`1 smallest units of a token that the instruction does not name to ${x}, `);
    expect(text).toContain(', 2 other tokens, in a Solana transaction');
  });

  test('lists every transfer of a full packet', () => {
    const transfers = Array.from({ length: 50 }, (_, index) => ({ from, to, amount: BigInt(index) }));
    expect(tx({ transfers }).facts).toHaveLength(50);
    expect(tx({ transfers }).notDecoded).toBeUndefined();
  });

  test('whose amount is not readable says so', () => {
    expect(tx({ transfers: [sol, { from, to, amount: unreadable('x') }] }).text).toBe(
      `1.5 SOL to ${to}, not readable to ${to}, in a Solana transaction of 0 instructions.`,
    );
  });

  test('counts payments that it does not name because they cannot be read', () => {
    const unread = Array.from({ length: 5 }, () => ({ from, to, amount: unreadable('x') }));
    expect(tx({ transfers: unread }).text).toBe(
      `${`not readable to ${to}, `.repeat(3)}2 more payments that cannot be read, in a Solana transaction of 0 instructions.`,
    );
  });

  test('whose transfers are not readable says why', () => {
    expect(tx({ transfers: unreadable('a hand-over'), instructions: [raw] }).notDecoded).toBe('a hand-over');
  });
});

test('a Bitcoin transaction', () => {
  const address = `bc1q${'q'.repeat(38)}`;
  const paid = { value: 150_000_000n, address, address_type: 'p2wpkh' };
  const data = { value: 0n, address: '', address_type: 'OP_RETURN' };
  const tx = (outputs: readonly Values[]) => told({ bitcoin: { tx: { outputs, inputs: [{}, {}], fee: 1_000n } } });
  expect(tx([paid])).toEqual({
    text: `1.5 BTC to ${address}, with a fee of 0.00001 BTC.`,
    facts: [`Output 1: 1.5 BTC to ${address}`, 'Fee: 0.00001 BTC', 'Inputs: 2'],
    notDecoded: undefined,
  });
  expect(tx([paid, data])).toEqual({
    text: `1.5 BTC to ${address}, 0 BTC to no address (OP_RETURN), with a fee of 0.00001 BTC.`,
    facts: [
      `Output 1: 1.5 BTC to ${address}`,
      'Output 2: 0 BTC to no address (OP_RETURN)',
      'Fee: 0.00001 BTC',
      'Inputs: 2',
    ],
    notDecoded: 'which of the outputs is change is not known',
  });
});

test('a Tron transaction', () => {
  const to = 'T'.repeat(34);
  const tx = (values: Values) => told({ tron: { tx: values } });
  expect(
    tx({ contract: [{ type: 'TransferContract', to_address: to, amount: 2_500_000n }], data: '', fee_limit: 0n }),
  ).toEqual({
    text: `2.5 TRX by TransferContract to ${to}.`,
    facts: ['Contract type: TransferContract', `To: ${to}`, 'Value: 2.5 TRX'],
    notDecoded: undefined,
  });
  const call = {
    type: 'TriggerSmartContract',
    contract_address: to,
    data: 'a9059cbb00',
    call_token_value: 3n,
    token_id: 4n,
  };
  expect(tx({ contract: [call], data: '6869', fee_limit: 1_000_000n })).toEqual({
    text: `TriggerSmartContract to ${to}.`,
    facts: [
      'Contract type: TriggerSmartContract',
      `To: ${to}`,
      'Token: 3 smallest units of token 4',
      'Function: 0xa9059cbb, not decoded',
      'Memo: "hi"',
      'Highest fee: 1 TRX',
    ],
    notDecoded: 'call data of Tron contracts is not decoded',
  });
  const asset = { type: 'TransferAssetContract', to_address: to, amount: 5n };
  expect(tx({ contract: [asset, asset] }).text).toBe(`5 smallest units of a TRC-10 token by 2 contracts to ${to}.`);
  expect(tx({ contract: [] }).text).toBe('0 contracts.');
});

test('what says nothing about itself is not decoded', () => {
  const text = 'Something that could not be decoded.';
  expect(told({})).toEqual({ text, facts: [], notDecoded: expect.stringContaining('raw bytes') as string });
  expect(told(unreadable('it is\u202ecut'))).toEqual({ text, facts: [], notDecoded: 'it is cut' });
  expect(decodedOf({})).toEqual([]);
});

test('payloads are named where there are several', () => {
  const resources = { eth: { tx: { to: target, value: 0n, data: '0x' } } };
  const named = (count: number) =>
    decodedOf({ parts: Array.from({ length: count }, (_, at) => ({ name: `part ${at}`, resources })) }).map(
      ({ payload }) => payload,
    );
  expect([named(1), named(2)]).toEqual([[undefined], ['part 0', 'part 1']]);
});

describe('a mail', () => {
  const calling = (more: Values) => ({
    eth: { tx: { to: target, value: 0n, chain_id: 1n, data: '0x', nonce: 1n, type: 'X', ...more } },
  });
  const and = (toSign: Parameters<typeof decodedForMail>[0]) =>
    decodedForMail(toSign).find(({ name }) => name === 'And')?.value;

  test('has no words of a requester or an uploader, and says that there is more', () => {
    const call = { data: '0x00', function_name: 'go', contract_call_args: { text: 'call me' } };
    const mail = decodedForMail({ resources: calling(call) });
    expect(mail[0]).toEqual({ name: 'It would sign', value: `A call to ${target}, on chain 1.` });
    expect(JSON.stringify(mail)).not.toMatch(/call me|"go"/);
    expect(mail.at(-1)).toEqual({ name: 'And', value: 'more than is shown here: see the activity' });
  });

  test('says how many payloads follow', () => {
    const parts = (count: number) => Array.from({ length: count }, () => ({ name: 'one', resources: calling({}) }));
    expect(and({ resources: calling({}) })).toBeUndefined();
    expect(and({ parts: parts(1) })).toBeUndefined();
    expect(and({ parts: parts(2) })).toBe('and another payload: see the activity');
    expect(and({ parts: parts(4) })).toBe('and 3 more payloads: see the activity');
    expect(decodedForMail({ parts: [] })).toEqual([]);
  });

  test('has twelve facts at most', () => {
    const outputs = Array.from({ length: 20 }, () => ({ value: 1n, address: 'x'.repeat(30), address_type: 'p2wpkh' }));
    const mail = decodedForMail({ resources: { bitcoin: { tx: { outputs, inputs: [], fee: 1n } } } });
    expect(mail).toHaveLength(14);
    expect(mail.at(-1)!.value).toBe('more than is shown here: see the activity');
  });
});
