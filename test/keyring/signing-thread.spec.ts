import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { organizationPath } from '../../src/fairness/fair-queue.js';
import { sign } from '../../src/keyring/sign-digests.js';
import { signPayload } from '../../src/keyring/signing.js';
import { SigningThread } from '../../src/keyring/signing-thread.js';
import { stateOf } from '../e2e/until.js';
import { moduleFile } from '../threads/module-file.js';

/*
 * What is signed in a thread is what would be signed here; a thread that is lost gives nothing, and no key is left.
 */

const opened: SigningThread[] = [];
const thread = (options: ConstructorParameters<typeof SigningThread>[0] = {}): SigningThread => {
  const made = new SigningThread(options);
  opened.push(made);
  return made;
};
afterAll(() => Promise.all(opened.map((one) => one.close())));

const silent = () => moduleFile('export const sign = () => new Promise(() => undefined);');
const path = organizationPath('one');
const keyOf = (privateKey: Uint8Array) => ({ curve: 'CURVE_P256', privateKey }) as const;
const key = keyOf(Buffer.alloc(32, 7));
const digest = Buffer.alloc(32, 9);
const none = new Uint8Array(32);
const digests = (count: number): Buffer[] => Array.from({ length: count }, () => randomBytes(32));

/** The keys that are put into shared memory while something runs. */
async function sharedKeys(run: () => Promise<unknown>): Promise<readonly Uint8Array[]> {
  const keys: Uint8Array[] = [];
  const { SharedArrayBuffer: original } = globalThis;
  globalThis.SharedArrayBuffer = new Proxy(original, {
    construct(target, given: [number]) {
      const made = new target(...given);
      // The pool itself counts messages in eight bytes.
      if (made.byteLength === 32) keys.push(new Uint8Array(made));
      return made;
    },
  });
  try {
    await run();
  } finally {
    globalThis.SharedArrayBuffer = original;
  }
  return keys;
}

test.each([0, 1, 16, 17, 50])('signs %i digests in order, as they are signed here', async (count) => {
  const asked = digests(count);
  const here = asked.map((digest) => signPayload(key, digest));
  expect(await thread().signAll(key, asked, path)).toEqual(here);
});

test.each(['ADDRESS_FORMAT_BITCOIN_MAINNET_P2TR', 'ADDRESS_FORMAT_SPARK_MAINNET', undefined] as const)(
  'signs on secp256k1 as it is signed here, under %s',
  async (addressFormat) => {
    const other = { curve: 'CURVE_SECP256K1', addressFormat, privateKey: Buffer.alloc(32, 5) } as const;
    expect(await thread().signAll(other, [digest], path)).toEqual([signPayload(other, digest)]);
  },
);

test('signs with the key of each, whoever asks at once', async () => {
  const shared = thread();
  const asked = Array.from({ length: 12 }, (_, at) => ({ key: keyOf(Buffer.alloc(32, at + 1)), digests: digests(20) }));
  const signed = await Promise.all(asked.map((one) => shared.signAll(one.key, one.digests, path)));
  expect(signed).toEqual(asked.map((one) => one.digests.map((digest) => signPayload(one.key, digest))));
});

test('sends no more of a digest than its bytes', async () => {
  const echo = await moduleFile(
    'export const sign = ({ digests }) => ({ value: [{ r: digests.buffer.byteLength }] });',
  );
  const [signature] = await thread({ file: echo }).signAll(key, [Buffer.alloc(1_000, 9).subarray(32, 64)], path);
  expect(signature!.r).toBe(32);
});

test('the task wipes the key that it was sent, and signs with what it has taken', async () => {
  const shared = new Uint8Array(new SharedArrayBuffer(32));
  shared.set(key.privateKey);
  const outcome = await sign({ ...keyOf(shared), digests: new Uint8Array(32).fill(9) });
  expect(outcome).toEqual({ value: [signPayload(key, digest)] });
  expect(shared).toEqual(none);
});

test('the task says nothing about a key that cannot be used', () => {
  expect(() => sign({ ...keyOf(new Uint8Array(32).fill(255)), digests: new Uint8Array(32) })).toThrow(
    /^the digests were not signed$/,
  );
});

test('no key is left in shared memory, even if the thread has not wiped it', async () => {
  const careless = await moduleFile('export const sign = ({ privateKey }) => ({ value: [{ r: privateKey[0] }] });');
  const ones = await sharedKeys(async () => {
    const [signature] = await thread({ file: careless }).signAll(key, [digest], path);
    expect(signature!.r).toBe(7);
  });
  expect(ones).toEqual([none]);
  const lost = await sharedKeys(async () => {
    await thread({ file: await silent(), longestMs: 100 })
      .signAll(key, [digest], path)
      .catch(() => undefined);
  });
  expect(lost).toEqual([none]);
  expect(key.privateKey).toEqual(Buffer.alloc(32, 7));
});

test.each([
  ['does not answer', 'new Promise(() => undefined)', 1_000, /^the signature was not available within 1 s|has ended/],
  ['ends', 'process.exit(1)', 20_000, /^the thread that made the signature has ended/],
  ['throws', '{ throw new Error(String(privateKey)) }', 20_000, /^the thread that made the signature has ended/],
])('refuses with 503 when the thread %s, and replaces it', async (_what, act, longestMs, why) => {
  const elsewhere = thread({
    longestMs,
    file: await moduleFile(`export const sign = async ({ privateKey }) => ${act};`),
  });
  // Four are sent at once; what comes after them goes to another thread.
  const asked = Array.from({ length: 6 }, () => elsewhere.signAll(key, [digest], path));
  for (const one of asked) {
    expect(await stateOf(one, 20_000)).toBe('UNAVAILABLE');
    const message = expect.stringMatching(why) as string;
    await expect(one).rejects.toMatchObject({ code: 'UNAVAILABLE', message });
    await expect(one).rejects.toMatchObject({
      message: expect.stringMatching(/: send the same request again$/) as string,
    });
  }
});

test('goes on with a thread that was ended from outside', async () => {
  const file = await moduleFile(`
    import { threadId } from 'node:worker_threads';
    export const sign = ({ digests }) =>
      digests[0] === 0 ? process.exit(1) : { value: [{ r: threadId }] };`);
  const elsewhere = thread({ file });
  const [before] = await elsewhere.signAll(key, [digest], path);
  const [same] = await elsewhere.signAll(key, [digest], path);
  expect(same).toEqual(before);
  await expect(elsewhere.signAll(key, [Buffer.alloc(32)], path)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  const [after] = await elsewhere.signAll(key, [digest], path);
  expect(after).not.toEqual(before);
});

test('whoever has much to sign takes turns with others', async () => {
  const elsewhere = thread();
  const over: string[] = [];
  const ask = async (organization: string, count: number) => {
    await elsewhere.signAll(key, digests(count), organizationPath(organization));
    over.push(organization);
  };
  await Promise.all([...Array.from({ length: 20 }, () => ask('greedy', 16)), ask('modest', 16)]);
  // Four were sent before.
  expect(over.indexOf('modest')).toBeLessThan(6);
});

test('refuses a digest of another length, and a key that is none, before it asks the thread', async () => {
  const elsewhere = thread({ file: await silent() });
  for (const [wrongKey, wrong] of [
    [key, randomBytes(31)],
    [keyOf(Buffer.alloc(32)), digest],
  ] as const) {
    expect(await stateOf(elsewhere.signAll(wrongKey, [digest, wrong], path))).toBe('INVALID_ARGUMENT');
  }
});

test('its thread does not keep the process alive', async () => {
  const file = new URL('../../dist/keyring/signing-thread.js', import.meta.url);
  const script = `
    const { SigningThread } = await import('${file.href}');
    const working = setInterval(() => {}, 1000);
    const signed = await new SigningThread().signAll(
      { curve: 'CURVE_P256', privateKey: Buffer.alloc(32, 7) }, [Buffer.alloc(32, 9)], []);
    console.log(signed.length);
    clearInterval(working);`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    timeout: 20_000,
  });
  expect(stdout).toBe('1\n');
});

test('once closed, refuses what waits and what comes', async () => {
  const elsewhere = thread({ file: await silent() });
  const waiting = Array.from({ length: 6 }, () => stateOf(elsewhere.signAll(key, [digest], path)));
  await elsewhere.close();
  expect(await Promise.all([...waiting, stateOf(elsewhere.signAll(key, [digest], path))])).toEqual(
    Array<string>(7).fill('UNAVAILABLE'),
  );
});
