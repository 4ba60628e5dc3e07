import { chmod, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import fc from 'fast-check';
import { ApiError, startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { furnish, sampleSettings, submitSamples, type Furnished } from '../e2e/samples.js';
import { exchange } from '../e2e/exchange.js';
import { Installation, stop } from '../e2e/installation.js';
import { encoded, operatorPaths } from '../e2e/operator-paths.js';
import { WebhookReceiver } from '../e2e/webhook-receiver.js';
import { isLong } from '../long.js';

/*
 * Small and sharp: what is for operators answers no page of another origin, whatever its path is written like; a copy that is
 * started to look at it sends nothing, whatever it is asked; what is nested without end is refused wherever JSON may stand;
 * and the proxy counts nothing of what it refuses for its size.
 */

const seed = Number(process.env['SEED'] ?? 13);

const tried = new Map<string, number>();
const note = (what: string) => tried.set(what, (tried.get(what) ?? 0) + 1);

let coordinator: TestCoordinator;
let furnished: Furnished;

beforeAll(async () => {
  coordinator = await startCoordinator({
    seed: 'edges',
    settings: {
      ...sampleSettings,
      PROXY_RATE_LIMIT_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
      PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONTACT: '1',
    },
  });
  furnished = await furnish(coordinator);
});

afterAll(async () => {
  await coordinator.close();
  const lines = [...tried].sort().map(([what, times]) => `  ${what}: ${times}\n`);
  process.stdout.write(`edges, seed ${seed}:\n${lines.join('')}`);
});

test('no page of another origin reads what is for operators', async () => {
  const asked = fc.record({
    path: fc.constantFrom(...operatorPaths),
    before: fc.constantFrom('', '', '/', '//'),
    after: fc.constantFrom('', '', '/', '?', '?a=b', '/x', '#a'),
    inCapitals: fc.boolean(),
    isEncoded: fc.boolean(),
    origin: fc.constantFrom('https://evil.example', 'null', 'http://localhost:3000', 'https://EVIL.example:8443'),
    method: fc.constantFrom('GET', 'POST', 'OPTIONS', 'HEAD'),
    wants: fc.constantFrom('GET', 'POST', 'PUT'),
  });
  for (const one of fc.sample(asked, { numRuns: isLong ? 2_000 : 150, seed })) {
    const { path, before, after, inCapitals, isEncoded, origin, method, wants } = one;
    const written = inCapitals ? path.toUpperCase() : path;
    const target = `${before}${isEncoded ? encoded(written) : written}${after}`;
    const headers = { origin, ...(method === 'OPTIONS' ? { 'access-control-request-method': wants } : {}) };
    const answer = await fetch(coordinator.url + target, { method, headers });
    await answer.arrayBuffer();
    const told: string[] = [];
    answer.headers.forEach((_value, name) => void (name.startsWith('access-control-') && told.push(name)));
    expect([one, told]).toEqual([one, []]);
    note(`${method} of what is for operators: nothing for other origins`);
  }
  // What pages are to call answers them.
  for (const path of ['/public/v1/discovery/keys', '/.well-known/jwks.json']) {
    const { headers } = await fetch(coordinator.url + path, { headers: { origin: 'https://evil.example' } });
    expect([path, headers.get('access-control-allow-origin')]).toEqual([path, '*']);
  }
});

/** Every place in a sample that holds JSON as text, and is read as such. */
function textsOfJson(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value === 'string') {
    if (!/^\s*[[{]/.test(value)) return [];
    try {
      JSON.parse(value);
      return [path];
    } catch {
      return [];
    }
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => textsOfJson(member, [...path, name]));
}

function withText(sample: object, [name, ...rest]: readonly string[], text: string): object {
  const member = (sample as Record<string, unknown>)[name!];
  const changed = rest.length === 0 ? text : withText(member as object, rest, text);
  return Array.isArray(sample)
    ? sample.map((one: unknown, at) => (String(at) === name ? changed : one))
    : { ...sample, [name!]: changed };
}

test('what is nested without end is refused wherever JSON may stand, and says why', async () => {
  const { signWith } = furnished;
  const typed = (message: string) =>
    `{"types":{"A":[{"name":"a","type":"uint8"}]},"primaryType":"A","domain":{},"message":${message}}`;
  const signing = { signWith, hashFunction: 'HASH_FUNCTION_NO_OP', payload: typed('{"a":1}') };
  const samples: Readonly<Record<string, object>> = {
    ...submitSamples(furnished),
    ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2: { ...signing, encoding: 'PAYLOAD_ENCODING_EIP712' },
    ACTIVITY_TYPE_SIGN_RAW_PAYLOADS: {
      signWith,
      hashFunction: 'HASH_FUNCTION_NO_OP',
      encoding: 'PAYLOAD_ENCODING_EIP7702_AUTHORIZATION',
      payloads: ['{"chainId":1}'],
    },
  };
  const depth = 150_000;
  const nests: Readonly<Record<string, string>> = {
    lists: '['.repeat(depth) + ']'.repeat(depth),
    objects: '{"a":'.repeat(depth / 2) + '1' + '}'.repeat(depth / 2),
    both: '[{"a":'.repeat(depth / 2) + '1' + '}]'.repeat(depth / 2),
    'lists that do not end': '['.repeat(depth),
  };
  let places = 0;
  for (const [type, sample] of Object.entries(samples)) {
    for (const path of textsOfJson(sample)) {
      places += 1;
      for (const [what, nest] of Object.entries(nests)) {
        for (const text of path.at(-1) === 'payload' ? [nest, typed(nest), typed(`{"a":${nest}}`)] : [nest]) {
          coordinator.clock.advance(1);
          const refused = await coordinator.client.submit(type, withText(sample, path, text)).then(
            () => undefined,
            (error: unknown) => error,
          );
          if (!(refused instanceof ApiError)) throw refused instanceof Error ? refused : new Error(`${type} took it`);
          const { status, body } = refused;
          // Or longer than may stand there, which is looked at first.
          const most = /must have .*?(\d+) characters/.exec(body.message)?.[1];
          const isLonger = most !== undefined && text.length > Number(most);
          expect([type, path, what, status, isLonger || body.message]).toEqual([
            type,
            path,
            what,
            400,
            isLonger || expect.stringMatching(/nested deeper than (?:20000|32) levels/),
          ]);
          note(`${what} in JSON of a request: ${isLonger ? 'too long' : 'too deep'}`);
        }
      }
    }
  }
  expect(places).toBeGreaterThan(4);
}, 120_000);

test('the proxy counts nothing of what it refuses for its size', async () => {
  const proxied = (endpoint: string, contact: string) =>
    exchange(`${coordinator.url}/v1/${endpoint}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': coordinator.root.authProxyConfigId },
      body: JSON.stringify({ otpType: contact.startsWith('+') ? 'OTP_TYPE_SMS' : 'OTP_TYPE_EMAIL', contact }),
    });
  const contact = fc.record({
    endpoint: fc.constantFrom('otp_init', 'otp_init_v2'),
    start: fc.constantFrom('ann@example.com', '+1202555', '@', ' '),
    filler: fc.constantFrom('x', ' ', '0', '😀'),
    size: fc.constantFrom(255, 1_000, 100_000, 900_000),
  });
  for (const { endpoint, start, filler, size } of fc.sample(contact, { numRuns: isLong ? 100 : 12, seed })) {
    // A face is one character, of four bytes; a body has two megabytes.
    const asked = start + filler.repeat(Math.min(size, Math.floor(1_800_000 / Buffer.byteLength(filler))));
    // One that is counted may be asked for once.
    const statuses = [(await proxied(endpoint, asked)).status, (await proxied(endpoint, asked)).status];
    expect([start, filler, size, statuses]).toEqual([start, filler, size, [400, 400]]);
    note('a contact that is too long, twice: refused, not counted');
  }
  expect((await proxied('otp_init', 'ann@example.org')).status).toBe(200);
  expect((await proxied('otp_init', 'ann@example.org')).status).toBe(429);
});

test('a copy that is started to look at it records nothing and sends nothing, whatever it is asked', async () => {
  const receiver = await WebhookReceiver.start();
  const log = new Writable({ write: (_chunk, _encoding, done) => done() });
  const copy = await startCoordinator({
    seed: 'a copy',
    settings: { ...sampleSettings, VOTE_NOTICES: 'true' },
    log,
  });
  let isOpen = true;
  try {
    const { client, root } = copy;
    for (const name of ['one', 'two']) {
      await client.submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
        name,
        url: `${receiver.url}/${name}`,
        subscriptions: [{ eventType: 'ACTIVITY_UPDATES' }],
      });
    }
    const ann = await copy.createUser('Ann', { userEmail: 'ann@example.com' });
    await copy.createUser('Bob', { userEmail: 'bob@example.com' });
    await copy.createPolicy({ policyName: 'two', condition: 'true', consensus: 'approvers.count() >= 2' });
    const asked = await ann.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'x', userIds: [] });
    expect(asked.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    await copy.settled();
    const sent = [copy.messages().length, receiver.received.length];
    await copy.restart({ settings: { RESTORED: 'true' } });
    const recorded = await copy.events();
    // What was to be delivered again later is due.
    copy.clock.advance(3_600_000);
    // The samples of another organization, as far as they make sense here.
    let done = 0;
    let readOnly = 0;
    for (const [type, sample] of Object.entries(submitSamples({ ...furnished, coordinator: copy }))) {
      copy.clock.advance(1);
      const text = JSON.stringify(sample)
        .replaceAll(furnished.alice.userId, ann.userId)
        .replaceAll(coordinator.root.userId, root.userId);
      done += await client.submit(type, JSON.parse(text) as object).then(
        () => 1,
        (error: unknown) => {
          if (!(error instanceof ApiError)) throw error;
          if (error.status >= 500)
            expect([error.status, error.message]).toEqual([503, expect.stringContaining('read-only')]);
          readOnly += error.status === 503 ? 1 : 0;
          return 0;
        },
      );
    }
    note(`requests that a copy has refused as read-only: ${readOnly}`);
    expect([done, await copy.events()]).toEqual([0, recorded]);
    expect(readOnly).toBeGreaterThan(15);
    // Whatever was on its way has gone when the coordinator has let go of everything.
    await copy.close();
    isOpen = false;
    expect([copy.messages().length, receiver.received.length]).toEqual(sent);
  } finally {
    if (isOpen) await copy.close();
    await receiver.close();
  }
}, 60_000);

test('what a coordinator keeps is readable by its owner only after a start, however it was left', async () => {
  const installation = await Installation.make();
  const { dataDir } = installation;
  const files = async () => {
    const entries = await readdir(dataDir, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  };
  const readable = async () => {
    const modes = await Promise.all(
      (await files()).map(async (file) => [file, (await stat(file)).mode & 0o077] as const),
    );
    return modes.filter(([, mode]) => mode !== 0).map(([file]) => file);
  };
  try {
    await stop(await installation.start());
    expect(await readable()).toEqual([]);
    const left = await files();
    expect(left.length).toBeGreaterThan(3);
    for (const mode of [0o644, 0o664, 0o666]) {
      for (const file of left) await chmod(file, mode);
      const running = await installation.start();
      expect(await readable()).toEqual([]);
      await stop(running);
      note(`files that others could read (${mode.toString(8)}): their owner's alone`);
    }
  } finally {
    await installation.remove();
  }
}, 60_000);
