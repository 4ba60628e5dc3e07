import { Limits } from '../../src/auth-proxy/limits.js';

const limits = (perAddress: number | undefined) =>
  new Limits({ perAddress, perConfiguration: undefined, perContact: undefined });

async function counted(limit: Limits, addresses: readonly string[]): Promise<boolean[]> {
  const taken: boolean[] = [];
  for (const address of addresses) {
    taken.push(
      await limit.countAddress(address).then(
        () => true,
        () => false,
      ),
    );
  }
  return taken;
}

test.each([
  [
    ['10.0.0.1', '10.0.0.1', '10.0.0.2'],
    [true, false, true],
  ],
  [
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9', '2001:db8:1:3::1'],
    [true, false, true],
  ],
  [
    ['2001:db8::1', '2001:db8:0:0:1::', '2001:db8:0:1::'],
    [true, false, true],
  ],
  [
    ['::1', '::2', '1::'],
    [true, false, true],
  ],
  [
    ['::ffff:10.0.0.1', '::ffff:10.0.0.1', '::ffff:10.0.0.2'],
    [true, false, true],
  ],
])('%j count as one where they are one caller', async (addresses, expected) => {
  expect(await counted(limits(1), addresses)).toEqual(expected);
});

test('no limit is none', async () => {
  expect(
    await counted(
      limits(undefined),
      Array.from({ length: 50 }, () => '10.0.0.1'),
    ),
  ).not.toContain(false);
});

test('the refusal is the one that clients know', async () => {
  const limit = limits(1);
  await limit.countAddress('10.0.0.1');
  await expect(limit.countAddress('10.0.0.1')).rejects.toMatchObject({
    code: 'RESOURCE_EXHAUSTED',
    category: 'RATE_LIMIT_EXCEEDED',
    message: 'Too many requests. Please wait and try again in a few seconds',
  });
});
