import { decodedOf } from '../../../src/domain/policy/decoded.js';

const calling = (contract_call_args: Readonly<Record<string, string>>) => ({
  eth: { tx: { to: `0x${'11'.repeat(20)}`, value: 0n, data: '0x00', function_name: 'go', contract_call_args } },
});

test('of what an activity would sign, ten payloads are told', () => {
  const parts = Array.from({ length: 1_000 }, (_, at) => ({ name: `payload ${at}`, resources: calling({}) }));
  expect(decodedOf({ parts }).map(({ of }) => of)).toEqual(parts.slice(0, 10).map(({ name }) => name));
});

test('of one payload 40 facts are told, and that there are more', () => {
  const args = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`arg${at}`, 'x']));
  const [told] = decodedOf({ resources: calling(args) });
  expect(told?.facts).toHaveLength(40);
  expect(told?.notDecoded).toMatch(/\d+ or more details are not shown/);
});

test('of one value 200 characters are told', () => {
  const [told] = decodedOf({ resources: calling({ text: 'ä'.repeat(100_000) }) });
  expect(told?.facts.find(({ name }) => name === 'text')?.value).toBe(`"${'ä'.repeat(200)}…"`);
});
