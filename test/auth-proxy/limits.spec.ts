import { BodiesInFlight, bytesInFlight } from '../../src/rate-limits/bodies-in-flight.js';
import { tellCaller, toldCaller } from '../../src/rate-limits/caller.js';
import { flagsFor } from '../../src/cli/start/memory.js';
import { CoordinatorError, limitExceeded } from '../../src/domain/errors.js';
import { Limits } from '../../src/auth-proxy/limits.js';
import { KeyedLimit } from '../../src/rate-limits/keyed-limit.js';

const unlimited = {
  perAddress: undefined,
  perConfiguration: undefined,
  codesPerAddress: undefined,
  perContact: undefined,
  signUpsPerAddress: undefined,
};
const limits = (perAddress: number | undefined) => new Limits({ ...unlimited, perAddress });

function counted(limit: Limits, addresses: readonly string[]): boolean[] {
  return addresses.map((address) => {
    try {
      limit.countAddress(address);
      return true;
    } catch {
      return false;
    }
  });
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
])('%j count as one where they are one caller', (addresses, expected) => {
  expect(counted(limits(1), addresses)).toEqual(expected);
});

test.each([
  ['a /24', (number: number) => `203.0.113.${number}`, 4],
  ['a /56', (number: number) => `2001:db8:1:${number.toString(16)}::1`, 4],
  ['a /48', (number: number) => `2001:db8:1:${number.toString(16)}00::1`, 16],
])('the networks of %s have together so many times as much as one', (_what, address, most) => {
  const addresses = Array.from({ length: 100 }, (_, number) => address(number));
  const limit = limits(1);
  expect(counted(limit, addresses).filter(Boolean)).toHaveLength(most);
  expect(counted(limit, ['198.51.100.1', '2001:db8:2::1', '::ffff:198.51.100.1'])).toEqual([true, true, true]);
});

test('no limit is none', () => {
  expect(
    counted(
      limits(undefined),
      Array.from({ length: 50 }, () => '10.0.0.1'),
    ),
  ).not.toContain(false);
});

test('the refusal is the one that clients know, and says which limit it was and when to come back', () => {
  const limit = limits(1);
  limit.countAddress('10.0.0.1');
  let refusal: unknown;
  try {
    limit.countAddress('10.0.0.1');
  } catch (error) {
    refusal = error;
  }
  expect(refusal).toMatchObject({
    code: 'RESOURCE_EXHAUSTED',
    category: 'RATE_LIMIT_EXCEEDED',
    message: 'Too many requests. Please wait and try again in a few seconds',
    retryAfterSeconds: 60,
    details: [{ violations: [{ description: '1 requests a minute from one address to the auth proxy' }] }],
  });
});

test('codes are counted for each caller, so that one does not use up what another is owed', () => {
  const limit = new Limits({ ...unlimited, perContact: 1 });
  const [one, other] = ['10.0.0.1', '10.0.0.2'].map((address) => limit.countCode('c', 'Ann@example.com', address));
  expect(one).toMatch(/^[0-9a-f]{32}$/);
  expect(other).not.toBe(one);
  expect(() => limit.countCode('c', 'ann@Example.com', '10.0.0.1')).toThrow('Too many requests');
});

describe('codes that one address asks for', () => {
  const codes = (limit: Limits, address: string, contacts: readonly string[]) =>
    contacts.map((contact) => {
      try {
        return limit.countCode('c', contact, address).length > 0;
      } catch {
        return false;
      }
    });

  test('count for its network, whomever they go to', () => {
    const limit = new Limits({ ...unlimited, codesPerAddress: 2 });
    expect(codes(limit, '2001:db8::1', ['+12025550101'])).toEqual([true]);
    expect(codes(limit, '2001:db8::2', ['+12025550102', '+12025550103'])).toEqual([true, false]);
    expect(codes(limit, '2001:db8:0:1::1', ['+12025550103'])).toEqual([true]);
  });

  test('do not count where the contact gets no more', () => {
    const limit = new Limits({ ...unlimited, codesPerAddress: 2, perContact: 1 });
    expect(codes(limit, '10.0.0.1', ['ann', 'ann', 'ann', 'bob', 'carl'])).toEqual([true, false, false, true, false]);
  });

  test('take no more room for contacts than it may ask for', () => {
    const limit = new Limits({ ...unlimited, codesPerAddress: 2, perContact: 10, keys: 16 });
    codes(
      limit,
      '10.0.0.1',
      Array.from({ length: 100 }, (_, index) => `${index}@example.com`),
    );
    expect(codes(limit, '10.0.0.2', ['ann@example.com'])).toEqual([true]);
  });
});

describe('a limit whose table is full', () => {
  const filled = (now: () => number) => {
    const limit = new KeyedLimit({ most: 2, windowMs: 60_000, name: 'some', now, maxKeys: 16 });
    for (let key = 0; key < 14; key++) limit.take(`${key} ${'long '.repeat(1_000)}`);
    return limit;
  };

  test('forgets nobody, refuses whoever is new, and keeps a share for those who are known', () => {
    const limit = filled(() => 0);
    expect(() => limit.take('new')).toThrow('Too many requests');
    expect(limit.take('known', { trusted: true })).toBe(1);
    limit.take('known', { trusted: true });
    expect(() => limit.take('known', { trusted: true })).toThrow('Too many requests');
    expect(limit.take(`0 ${'long '.repeat(1_000)}`)).toBe(0);
    expect(limit.size).toBe(15);
  });

  test('accepts new keys again once windows have ended', () => {
    let time = 0;
    const limit = filled(() => time);
    time = 60_000;
    expect(limit.take('new')).toBe(1);
    expect(limit.size).toBe(1);
  });
});

describe('bytes of bodies in flight', () => {
  test('follow the heap', () => {
    const mebibyte = 2 ** 20;
    expect([128, 2_048, 65_536].map((heap) => bytesInFlight(heap * mebibyte) / mebibyte)).toEqual([16, 64, 256]);
  });

  const tooMany = 'as many request bodies as fit into its memory';
  const counted = () => {
    const bodies = new BodiesInFlight({ most: 100, small: 4 });
    const givenUp: string[] = [];
    const take = (caller: string, bytes: number) =>
      bodies.take(caller, bytes, () => givenUp.push(`${caller} ${bytes}`));
    return { take, givenUp };
  };

  test('one caller has half, all have what there is, and small ones have a quarter beside', () => {
    const { take, givenUp } = counted();
    const workedOn = (caller: string, bytes: number) => {
      const body = take(caller, bytes);
      body.received();
      return body;
    };
    const { letGo } = workedOn('one', 30);
    expect(() => take('one', 21)).toThrow(limitExceeded('', 1).message);
    workedOn('two', 50);
    workedOn('three', 20);
    expect(() => take('four', 5)).toThrow(tooMany);
    workedOn('one', 4);
    workedOn('one', 4);
    workedOn('one', 4);
    expect(() => take('one', 4)).toThrow(limitExceeded('', 1).message);
    workedOn('four', 4);
    letGo();
    letGo();
    workedOn('one', 30);
    expect(() => take('four', 5)).toThrow(tooMany);
    expect(givenUp).toEqual([]);
  });

  test('what is still being received makes room, the oldest of who holds most first, and only for who holds less', () => {
    const { take, givenUp } = counted();
    const worked = take('greedy', 10);
    worked.received();
    take('greedy', 20);
    const late = take('greedy', 20);
    take('other', 20);
    take('other', 30);
    take('new', 25);
    // Each held 50; after the first one's oldest the other holds most.
    expect(givenUp).toEqual(['greedy 20', 'other 20']);
    // What was given up is over: nothing is freed twice.
    late.letGo();
    worked.letGo();
    take('greedy', 40);
    expect(() => take('new', 20)).toThrow(tooMany);
    expect(givenUp).toEqual(['greedy 20', 'other 20']);
    take('fourth', 10);
    expect(givenUp).toEqual(['greedy 20', 'other 20', 'greedy 40']);
  });
});

describe('the caller that a proxy tells', () => {
  const bound = { path: '/public/v1/submit/init_otp', stamp: 'stamp' };
  const header = tellCaller('secret', '203.0.113.7', bound);

  test('is accepted from the holder of the secret, for that request only', () => {
    expect(toldCaller('secret', header, bound)).toBe('203.0.113.7');
    expect(toldCaller('other', header, bound)).toBeUndefined();
    expect(toldCaller(undefined, header, bound)).toBeUndefined();
    expect(toldCaller('secret', header, { ...bound, stamp: 'another' })).toBeUndefined();
    expect(toldCaller('secret', header, { ...bound, path: '/public/v1/submit/otp_login' })).toBeUndefined();
    expect(toldCaller('secret', header.replace('203.0.113.7', '203.0.113.8'), bound)).toBeUndefined();
    for (const text of ['', ' ', '203.0.113.7', '203.0.113.7 x', undefined, [header]]) {
      expect(toldCaller('secret', text, bound)).toBeUndefined();
    }
  });
});

test.each([
  [128, '--max-old-space-size=192'],
  [1_024, '--max-old-space-size=512'],
  [4_096, '--max-old-space-size=2048'],
  [65_536, '--max-old-space-size=8192'],
])('Node is told what fits into %d MiB', (mebibytes, flag) => {
  expect(flagsFor(mebibytes * 2 ** 20)).toEqual([flag, '--max-semi-space-size=16', '--heap-growing-percent=30']);
});

describe('wrong guesses of a code', () => {
  const otpId = '0a1b2c3d-0000-4000-8000-000000000001';
  const wrong = () => Promise.reject(new CoordinatorError('INVALID_ARGUMENT', 'Invalid OTP code: of another release'));
  const right = () => Promise.resolve('right');
  /** How a guess ended: as the API said, or refused by the proxy before. */
  const outcome = async (limit: Limits, address: string, guess: () => Promise<string>, id = otpId) => {
    let isAsked = false;
    const asked = () => {
      isAsked = true;
      return guess();
    };
    try {
      return await limit.countGuess(id, address, asked);
    } catch (error) {
      const { code, message } = error as CoordinatorError;
      return `${isAsked ? 'asked' : 'not asked'}: ${code} ${message.slice(0, 16)}`;
    }
  };
  const refused = 'not asked: INVALID_ARGUMENT Invalid OTP code';

  test('of one network end it for that network at the third, in whatever letter case its id is, and for no other', async () => {
    const limit = new Limits(unlimited);
    const addresses = ['2001:db8:1:2::1', '2001:db8:1:2::2', '2001:db8:1:2:3::'];
    for (const address of addresses) expect(await outcome(limit, address, wrong)).toMatch(/^asked: /);
    expect(await outcome(limit, '2001:db8:1:2::1', right)).toBe(refused);
    expect(await outcome(limit, '2001:db8:1:2::1', right, otpId.toUpperCase())).toBe(refused);
    expect(await outcome(limit, '2001:db8:1:2::1', right, otpId.replace('1', '2'))).toBe('right');
    expect(await outcome(limit, '2001:db8:1:3::1', right)).toBe('right');
  });

  test('count however many come at once; those of another refusal, and right ones, do not', async () => {
    const limit = new Limits(unlimited);
    const down = () => Promise.reject(new CoordinatorError('UNAVAILABLE', 'down'));
    for (let attempt = 0; attempt < 5; attempt++) {
      expect(await outcome(limit, '10.0.0.1', down)).toMatch(/^asked: UNAVAILABLE/);
      expect(await outcome(limit, '10.0.0.1', right)).toBe('right');
    }
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => outcome(limit, '10.0.0.1', wrong)));
    expect(outcomes.filter((one) => one !== refused)).toHaveLength(3);
  });

  test('of many codes are three for each code that an address may have sent', async () => {
    const limit = new Limits({ ...unlimited, codesPerAddress: 2 });
    const guess = (number: number) => outcome(limit, '10.0.0.1', wrong, `id-${number}`);
    for (let number = 0; number < 6; number++) expect(await guess(number)).toMatch(/^asked: /);
    expect(await guess(6)).toMatch(/^not asked: RESOURCE_EXHAUSTED/);
    expect(await outcome(limit, '10.0.0.2', right, 'id-6')).toBe('right');
  });
});
