import { decodedForMail, decodedOf } from '../../../src/domain/policy/decoded.js';
import { unreadable } from '../../../src/domain/policy/types.js';

const calling = (contract_call_args: Readonly<Record<string, string>>) => ({
  eth: { tx: { to: `0x${'11'.repeat(20)}`, value: 0n, data: '0x00', function_name: 'go', contract_call_args } },
});

test('ten payloads are shown, and the number of the others', () => {
  const parts = Array.from({ length: 1_000 }, (_, at) => ({ name: `payload ${at}`, resources: calling({}) }));
  const shown = decodedOf({ parts });
  expect(shown.slice(0, 10).map(({ payload }) => payload)).toEqual(parts.slice(0, 10).map(({ name }) => name));
  expect(shown.slice(10)).toEqual([{ text: 'And 990 more payloads, which are not shown here.', facts: [] }]);
});

test('a hundred facts of one payload are shown, its own first, and that there are more', () => {
  const args = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`arg${at}`, 'x']));
  const [told] = decodedOf({ resources: calling(args) });
  expect(told?.facts).toHaveLength(100);
  expect(told?.facts.map(({ name }) => name).slice(0, 7)).toEqual([
    'To',
    'Value',
    'Chain',
    'Function',
    'Nonce',
    'Type',
    'argument.arg0',
  ]);
  expect(told?.notDecoded).toMatch(/\d+ or more details are not shown/);
});

test('of one value 200 characters are told', () => {
  const [told] = decodedOf({ resources: calling({ text: 'ä'.repeat(100_000) }) });
  expect(told?.facts.find(({ name }) => name === 'argument.text')?.value).toBe(`"${'ä'.repeat(200)}…"`);
});

test('of a Solana transaction it is told that an instruction moves nothing, though another is in both lists', () => {
  const [from, to] = ['A', 'B'];
  const emptied = { from, to, amount: 1n };
  const call = { program_key: 'token', instruction_data_hex: '09' };
  const told = (instructions: number) => {
    const tx = {
      transfers: [emptied],
      spl_transfers: [{ ...emptied, token_mint: '' }],
      instructions: Array<typeof call>(instructions).fill(call),
    };
    return decodedOf({ resources: { solana: { tx } } })[0]!.notDecoded;
  };
  expect(told(1)).toBeUndefined();
  expect(told(2)).toMatch(/instructions other than transfers/);
});

describe('texts that would be signed', () => {
  const named = (...texts: readonly string[]) => texts.map((text, at) => ({ name: `payload ${at}`, text }));
  const hidden = { eth: { tx: unreadable('it may be a transaction') } };

  test('are shown one by one, though policies see them as one; ten, and the number of the others', () => {
    const texts = named(...Array.from({ length: 20 }, (_, at) => `text ${at}`), 'text 0');
    const shown = decodedOf({ parts: [{ name: 'payload 0', resources: {} }], texts });
    expect(shown.slice(0, 10).map(({ payload, facts }) => [payload, facts[0]!.value])).toEqual(
      texts.slice(0, 10).map(({ name, text }) => [name, `"${text}"`]),
    );
    expect(shown.slice(10)).toEqual([{ text: 'And 10 more payloads, which are not shown here.', facts: [] }]);
  });

  test('say what else they may be, and are shown as the transaction that they are', () => {
    const text = { text: 'A text of 3 characters.', facts: [{ name: 'Text', value: '"abc"' }] };
    const texts = named('abc');
    expect(decodedOf({ parts: [{ name: 'payload 0', resources: hidden }], texts })).toEqual([
      { ...text, notDecoded: 'it may be a transaction' },
    ]);
    expect(decodedOf({ resources: unreadable('the key is gone'), texts })).toEqual([
      { ...text, notDecoded: 'the key is gone' },
    ]);
    const [called] = decodedOf({ parts: [{ name: 'payload 0', resources: calling({}) }], texts });
    expect(called!.text).toMatch(/^A call to 0x1111/);
  });

  test('are in no mail', () => {
    const mail = decodedForMail({ parts: [{ name: 'payload 0', resources: {} }], texts: named('Evil words') });
    expect(mail).toEqual([
      { name: 'It would sign', value: 'A text of 10 characters.' },
      { name: 'And', value: 'more than is shown here: see the activity' },
    ]);
  });
});
