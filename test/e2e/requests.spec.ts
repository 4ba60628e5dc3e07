import { createPrivateKey, sign } from 'node:crypto';
import { connect } from 'node:net';
import { Agent, request as httpRequest } from 'node:http';
import fc from 'fast-check';
import { stampBody, startCoordinator, type ApiKeyPair, type TestCoordinator } from '../../src/testing/index.js';
import { anyText, exchange, refusal, violations, type Exchange, type Refusal } from './exchange.js';
import { registry, stampedPaths } from './routes.js';
import { furnish, querySamples, sampleSettings, submitSamples, type Furnished } from './samples.js';
import { isLong } from '../long.js';

const tagPath = '/public/v1/submit/create_user_tag';
const tagType = 'ACTIVITY_TYPE_CREATE_USER_TAG';

let coordinator: TestCoordinator;
let organizationId: string;
let now: number;

beforeAll(async () => {
  coordinator = await startCoordinator({ settings: sampleSettings });
  organizationId = coordinator.organizationId;
  now = coordinator.clock.now();
});

afterAll(() => coordinator.close());

/** Stamps these bytes well and posts them, whatever they are. */
function post(path: string, body: string | Uint8Array): Promise<Exchange> {
  const { headerName, headerValue } = stampBody(body, coordinator.client.key);
  const bytes = typeof body === 'string' ? body : new Uint8Array(body);
  return exchange(`${coordinator.url}${path}`, { method: 'POST', body: bytes, headers: { [headerName]: headerValue } });
}

async function refused(path: string, body: string | Uint8Array): Promise<Refusal> {
  const { status, body: answer } = await post(path, body);
  expect(status).toBeGreaterThanOrEqual(400);
  return { status, ...(answer as Omit<Refusal, 'status'>) };
}

let serial = 0;
const tagBody = (changes: object = {}) => ({
  type: tagType,
  timestampMs: String(now),
  organizationId,
  parameters: { userTagName: `tag ${serial++}`, userIds: [] },
  ...changes,
});

const invalid = { status: 400, code: 3, turnkeyErrorCode: 'REQUEST_INVALID' };

describe('a body that is no good JSON object', () => {
  const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  test.each<[string, string | Uint8Array, RegExp]>([
    ['not JSON', 'type=1', /is not JSON: /],
    ['half', '{"type":', /is not JSON: /],
    ['followed by something', '{"a":1}{"b":2}', /is not JSON: /],
    ['followed by a NUL', '{"a":1}\0', /is not JSON: /],
    ['with a comment', '{"a":1/* */}', /is not JSON: /],
    ['with a trailing comma', '{"a":1,}', /is not JSON: /],
    ['with NaN', '{"a":NaN}', /is not JSON: /],
    ['empty', '', /is empty/],
    ['white', ' \n', /is not JSON: /],
    ['a list', '[{}]', /must be a JSON object/],
    ['a string', '"{}"', /must be a JSON object/],
    ['null', 'null', /must be a JSON object/],
    ['behind a byte order mark', '\u{feff}{"a":1}', /byte order mark/],
    ['UTF-16', Buffer.from('{"a":1}', 'utf16le'), /is not JSON: /],
    ['not UTF-8', Buffer.from('7b2261223a22ff227d', 'hex'), /is not valid UTF-8/],
    ['UTF-8 of a surrogate', Buffer.from('7b2261223a22eda080227d', 'hex'), /is not valid UTF-8/],
    ['overlong UTF-8', Buffer.from('7b2261223a22c080227d', 'hex'), /is not valid UTF-8/],
    ['a member twice', '{"a":1,"a":1}', /has the member `a` twice/],
    ['a member twice, once escaped', '{"a":1,"\\u0061":2}', /has the member `a` twice/],
    ['a member twice, deep inside', '{"a":[{"b":{"c":1,"d":2,"c":3}}]}', /has the member `c` twice/],
    ['__proto__', '{"__proto__":{"type":"x"}}', /`__proto__`/],
    ['__proto__, escaped', '{"a":{"\\u005f_proto__":1}}', /`__proto__`/],
    ['too deep', deep(33), /deeper than 32 levels/],
    ['far too deep', '['.repeat(100_000), /deeper than 32 levels/],
    ['half a surrogate pair', '{"a":"\\ud800"}', /half of a surrogate pair/],
    ['half a surrogate pair in a name', '{"\\uDC00":1}', /half of a surrogate pair/],
  ])('is refused: %s', async (_name, body, message) => {
    for (const path of [tagPath, '/public/v1/query/whoami']) {
      const { status, code, turnkeyErrorCode, message: text } = await refused(path, body);
      expect({ status, code, turnkeyErrorCode }).toEqual(invalid);
      expect(text).toMatch(/^request body /);
      expect(text).toMatch(message);
    }
  });

  test('32 levels are no obstacle, and neither is a whole surrogate pair', async () => {
    expect((await refused(tagPath, deep(32))).message).toContain('type: is required');
    const { status, body } = await post(tagPath, JSON.stringify(tagBody()).replace('tag ', '\\ud83d\\ude00 '));
    expect(status).toBe(200);
    expect(JSON.stringify(body)).toContain('😀 ');
  });

  test('two escapes of one value are two requests with one meaning', async () => {
    const body = JSON.stringify(tagBody());
    const [one, other] = await Promise.all([post(tagPath, body), post(tagPath, body.replace('"tag ', '"\\u0074ag '))]);
    // The name is taken by whichever came first: the second is decided on its own, and refused.
    expect([one.status, other.status].sort()).toEqual([200, 400]);
  });

  test('is refused when it has more than 2 MiB', async () => {
    const limit = 2 * 1024 * 1024;
    const ofSize = (size: number) => `{"a":"${'x'.repeat(size - 8)}"}`;
    expect(await refused(tagPath, ofSize(limit + 1))).toMatchObject({
      ...invalid,
      message: 'request body is larger than 2 MiB',
    });
    expect((await refused(tagPath, ofSize(limit))).message).toContain('type: is required');
    // Without a stamp the size is refused as well, before anything is verified.
    const unstamped = await exchange(`${coordinator.url}${tagPath}`, { method: 'POST', body: ofSize(limit + 1) });
    expect(unstamped.status).toBe(400);
  });

  test('is read to its end when it has more than 2 MiB: whoever is still sending reads why, on a connection that goes on', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number | undefined>();
    const send = (parts: number) =>
      new Promise<{ readonly status: number | undefined; readonly text: string }>((resolve, reject) => {
        const part = Buffer.alloc(1024 * 1024, 'x');
        const headers = { 'content-length': parts * part.length };
        const sent = httpRequest(`${coordinator.url}${tagPath}`, { method: 'POST', agent, headers }, (answer) => {
          let text = '';
          answer.setEncoding('utf8').on('data', (more: string) => (text += more));
          answer.once('end', () => resolve({ status: answer.statusCode, text }));
        });
        sent.once('error', reject).once('socket', (socket) => ports.add(socket.localPort));
        // The first part has long arrived when the last is sent.
        const next = (left: number): void => {
          if (left === 0) sent.end();
          else sent.write(part, () => setTimeout(next, 20, left - 1));
        };
        next(parts);
      });
    for (let time = 0; time < 2; time++) {
      const { status, text } = await send(5);
      expect([status, text]).toEqual([400, expect.stringContaining('request body is larger than 2 MiB')]);
    }
    expect(ports.size).toBe(1);
    agent.destroy();
  });

  test('is not waited for when it has more than 32 MiB: it is refused by its headers', async () => {
    const said = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(new URL(coordinator.url).port), '127.0.0.1');
      const end = (what: string) => {
        clearTimeout(late);
        socket.destroy();
        resolve(what);
      };
      const late = setTimeout(end, 10_000, 'nothing');
      socket.on('error', reject);
      socket.once('data', (data) => end(String(data)));
      socket.write(`POST ${tagPath} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${33 * 1024 * 1024}\r\n\r\n{`);
    });
    expect(said).toMatch(/^HTTP\/1\.1 400 /);
    expect(said).toContain('request body is larger than 2 MiB');
  });
});

describe('fields around the parameters', () => {
  test.each<[string, object, string, RegExp]>([
    ['no type', { type: undefined }, 'type', /^is required$/],
    ['a type that is no text', { type: 7 }, 'type', /^must be a string/],
    ['an unknown type', { type: 'ACTIVITY_TYPE_NOTHING' }, 'type', /not an activity type.*`ACTIVITY_TYPE_NOTHING`/],
    ['a type of Object.prototype', { type: 'constructor' }, 'type', /not an activity type/],
    [
      'a type of another path',
      { type: 'ACTIVITY_TYPE_DELETE_USERS' },
      'type',
      /must be sent to \/public\/v1\/submit\/delete_users/,
    ],
    ['no organization', { organizationId: undefined }, 'organizationId', /^is required$/],
    ['an organization that is no UUID', { organizationId: 'acme' }, 'organizationId', /^must be a UUID, got `acme`$/],
    ['an organization that is a number', { organizationId: 7 }, 'organizationId', /^must be a UUID, got `7`$/],
    ['no timestamp', { timestampMs: undefined }, 'timestampMs', /^is required$/],
    ['a timestamp that is a number', { timestampMs: 1_767_225_600_000 }, 'timestampMs', /^must be a decimal string/],
    ['a timestamp that is no number', { timestampMs: 'now' }, 'timestampMs', /^must be a decimal string.*`now`/],
    ['an empty timestamp', { timestampMs: '' }, 'timestampMs', /^must be a decimal string/],
    ['a negative timestamp', { timestampMs: '-1' }, 'timestampMs', /^must be a decimal string/],
    ['an exponent', { timestampMs: '1e30' }, 'timestampMs', /^must be a decimal string/],
    ['a fraction', { timestampMs: '1767225600000.0' }, 'timestampMs', /^must be a decimal string/],
    ['a timestamp with spaces', { timestampMs: ' 1767225600000' }, 'timestampMs', /^must be a decimal string/],
    ['hexadecimal', { timestampMs: '0x19B76DAA800' }, 'timestampMs', /^must be a decimal string/],
    ['other digits', { timestampMs: '١٧٦٧٢٢٥٦٠٠٠٠٠' }, 'timestampMs', /^must be a decimal string/],
    ['a very long timestamp', { timestampMs: '1'.repeat(40) }, 'timestampMs', /^must be a decimal string/],
    ['an unknown field', { nonce: 1 }, 'nonce', /^is not a field of this request$/],
    ['no parameters', { parameters: undefined }, 'parameters', /^is required$/],
    ['parameters that are null', { parameters: null }, 'parameters', /^is required$/],
    ['parameters that are a list', { parameters: [] }, 'parameters', /^must be an object$/],
    ['proofs that are text', { generateAppProofs: 'true' }, 'generateAppProofs', /^must be true or false, got `true`$/],
  ])('are refused: %s', async (_name, changes, field, description) => {
    const answer = await refused(tagPath, JSON.stringify(tagBody(changes)));
    expect(answer).toMatchObject(invalid);
    expect(violations(answer)).toEqual([{ field, description: anyText }]);
    expect(violations(answer)[0]!.description).toMatch(description);
    expect(answer.message).toContain(`invalid request: ${field}: `);
  });

  test.each([
    ['one hour old', -3_600_000, false],
    ['a millisecond less than one hour old', -3_600_000 + 1, true],
    ['five minutes ahead', 300_000, true],
    ['a millisecond more than five minutes ahead', 300_000 + 1, false],
  ])('a request that is %s', async (_name, offset, isTaken) => {
    const body = JSON.stringify(tagBody({ timestampMs: String(now + offset) }));
    if (isTaken) {
      expect((await post(tagPath, body)).status).toBe(200);
      return;
    }
    const answer = await refused(tagPath, body);
    expect(answer).toMatchObject({ status: 400, code: 3, turnkeyErrorCode: 'INVALID_TIME' });
    expect(answer.message).toContain(`\`${now + offset}\``);
    expect(answer.message).toContain(`${Math.abs(offset)} ms`);
    expect(answer.message).toContain(String(now));
  });

  test.each(['0', String(Math.floor(Date.UTC(2026, 0, 1) / 1000)), String(Number.MAX_SAFE_INTEGER)])(
    'time %s is far from now, and both clocks are named',
    async (timestampMs) => {
      const answer = await refused(tagPath, JSON.stringify(tagBody({ timestampMs })));
      expect(answer).toMatchObject({ status: 400, code: 3, turnkeyErrorCode: 'INVALID_TIME' });
      expect(answer.message).toContain(`\`${timestampMs}\``);
    },
  );

  test('an organization that does not exist is named in the refusal', async () => {
    const nobody = '00000000-0000-4000-8000-000000000000';
    const expected = {
      status: 404,
      code: 5,
      turnkeyErrorCode: 'ORGANIZATION_NOT_FOUND',
      message: `no organization found with the given ID \`${nobody}\``,
    };
    expect(await refused(tagPath, JSON.stringify(tagBody({ organizationId: nobody })))).toMatchObject(expected);
    expect(await refused('/public/v1/query/whoami', JSON.stringify({ organizationId: nobody }))).toMatchObject(
      expected,
    );
  });

  test('an organization in capital letters is the same organization', async () => {
    const named = { organizationId: organizationId.toUpperCase() };
    const submitted = await post(tagPath, JSON.stringify(tagBody(named)));
    expect(submitted).toMatchObject({ status: 200, body: { activity: { organizationId } } });
    const answered = await post('/public/v1/query/whoami', JSON.stringify(named));
    expect(answered).toMatchObject({ status: 200, body: { organizationId } });
  });

  test('null is absent, in front of the parameters and inside', async () => {
    const answer = await post(
      tagPath,
      JSON.stringify(
        tagBody({ generateAppProofs: null, extra: null, parameters: { userTagName: 'nulls', userIds: null, x: null } }),
      ),
    );
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ activity: { intent: { createUserTagIntent: { userTagName: 'nulls' } } } });
    expect(answer.text).not.toContain('"userIds":null');
    const { activity } = answer.body as { activity: { intent: object } };
    expect(activity.intent).toEqual({ createUserTagIntent: { userTagName: 'nulls' } });
  });
});

describe('parameters', () => {
  const policy = { policyName: 'p', effect: 'EFFECT_ALLOW', notes: '' };
  const user = { userName: 'u', apiKeys: [], authenticators: [], oauthProviders: [], userTags: [] };
  test.each<[string, string, object, readonly [string, RegExp][]]>([
    ['missing', 'CREATE_USER_TAG', {}, [['parameters.userTagName', /^is required$/]]],
    ['unknown', 'CREATE_USER_TAG', { userTagName: 'a', color: 1 }, [['parameters.color', /^is not a field/]]],
    [
      'constructor',
      'CREATE_USER_TAG',
      { userTagName: 'a', constructor: 1 },
      [['parameters.constructor', /^is not a field/]],
    ],
    ['toString', 'CREATE_USER_TAG', { userTagName: 'a', toString: {} }, [['parameters.toString', /^is not a field/]]],
    ['of a wrong type', 'CREATE_USER_TAG', { userTagName: ['a'] }, [['parameters.userTagName', /^must be a string/]]],
    ['too long', 'CREATE_USER_TAG', { userTagName: 'a'.repeat(256) }, [['parameters.userTagName', /has 256$/]]],
    ['empty', 'CREATE_USER_TAG', { userTagName: '' }, [['parameters.userTagName', /has 0$/]]],
    ['with a control character', 'CREATE_USER_TAG', { userTagName: 'a\nb' }, [['parameters.userTagName', /control/]]],
    ['no list', 'DELETE_USERS', { userIds: 'x' }, [['parameters.userIds', /^must be a list/]]],
    [
      'an empty list',
      'DELETE_USERS',
      { userIds: [] },
      [['parameters.userIds', /^must have 1 to 100 elements, has 0$/]],
    ],
    ['no UUIDs', 'DELETE_USERS', { userIds: ['x'] }, [['parameters.userIds', /^must be a list of UUIDs/]]],
    [
      'a UUID twice',
      'DELETE_USERS',
      { userIds: ['00000000-0000-4000-8000-000000000000', '00000000-0000-4000-8000-000000000000'] },
      [['parameters.userIds', /must not list an id twice/]],
    ],
    [
      'no such enum',
      'CREATE_POLICY_V3',
      { ...policy, effect: 'ALLOW' },
      [['parameters.effect', /EFFECT_DENY, got `ALLOW`$/]],
    ],
    [
      'several',
      'CREATE_POLICY_V3',
      { effect: 1 },
      [
        ['parameters.policyName', /^is required$/],
        ['parameters.effect', /got `1`$/],
      ],
    ],
    [
      'nested',
      'CREATE_USERS_V4',
      { users: [user, { ...user, userName: 1 }] },
      [['parameters.users[1].userName', /^must be a string/]],
    ],
    [
      'nested unknown',
      'CREATE_USERS_V4',
      { users: [{ ...user, rank: 1 }] },
      [['parameters.users[0].rank', /^is not a field/]],
    ],
    [
      'nested deeper',
      'CREATE_USERS_V4',
      { users: [{ ...user, apiKeys: [{ apiKeyName: 'k', publicKey: 'xyz', curveType: 'API_KEY_CURVE_P256' }] }] },
      [['parameters.users[0].apiKeys[0].publicKey', /hexadecimal/]],
    ],
    [
      'no number',
      'UPDATE_ROOT_QUORUM',
      { threshold: '1', userIds: [] },
      [
        ['parameters.threshold', /whole number/],
        ['parameters.userIds', /1 to/],
      ],
    ],
    [
      'a fraction',
      'UPDATE_ROOT_QUORUM',
      { threshold: 1.5, userIds: ['00000000-0000-4000-8000-000000000000'] },
      [['parameters.threshold', /whole number/]],
    ],
    [
      'no fingerprint',
      'APPROVE_ACTIVITY',
      { fingerprint: 'sha256:00' },
      [['parameters.fingerprint', /sha256: and 64/]],
    ],
  ])('%s: the error names the field', async (_name, kind, parameters, expected) => {
    const answer = await refusal(coordinator.client.submit(`ACTIVITY_TYPE_${kind}`, parameters));
    expect(answer).toMatchObject(invalid);
    const found = violations(answer);
    expect(found.map(({ field }) => field)).toEqual(expected.map(([field]) => field));
    found.forEach(({ description }, index) => expect(description).toMatch(expected[index]![1]));
  });

  test('a question with a field that it does not have is refused', async () => {
    const answer = await refusal(coordinator.client.query<object>('whoami', { userId: 'x' }));
    expect(answer).toMatchObject(invalid);
    expect(violations(answer)).toEqual([{ field: 'userId', description: 'is not a field of this request' }]);
  });
});

describe('paths', () => {
  test.each([
    '/public/v1/submit/nothing',
    '/public/v1/query/nothing',
    '/public/v1/query/constructor',
    '/public/v1/submit/toString',
    '/public/v1/query/create_user_tag',
    '/public/v1/submit/whoami',
    '/public/v2/query/whoami',
    '/public/v1/query/whoami/',
    '/PUBLIC/V1/QUERY/WHOAMI',
    '/',
  ])('%s is not there', async (path) => {
    const answer = await refused(path, JSON.stringify({ organizationId }));
    expect(answer).toMatchObject({ status: 404, code: 5, details: [], turnkeyErrorCode: '' });
  });

  test.each(['GET', 'PUT', 'DELETE', 'PATCH'])('%s is refused on a path that takes POST', async (method) => {
    for (const path of [tagPath, '/public/v1/query/whoami']) {
      const { status, body } = await exchange(`${coordinator.url}${path}`, { method });
      expect(status).toBe(404);
      expect(body).toMatchObject({ code: 5, message: 'path not found: see /docs for the available endpoints' });
    }
  });

  test.each(['/public/v1/query/%', '/public/v1/query/%zz', `/public/v1/query/${'a'.repeat(300)}`])(
    'a path that cannot be read (%#) is refused in the format of every other error',
    async (path) => {
      const { status, body } = await exchange(`${coordinator.url}${path}`, { method: 'POST', body: '{}' });
      expect([400, 404]).toContain(status);
      expect(body).toEqual({ code: anyCode, message: anyText, details: anyList, turnkeyErrorCode: anyText });
    },
  );

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=latin1'])(
    'the content type `%s` does not matter: the bytes do',
    async (contentType) => {
      const body = JSON.stringify({ organizationId });
      const { headerName, headerValue } = stampBody(body, coordinator.client.key);
      const headers = { [headerName]: headerValue, 'content-type': contentType };
      const { status } = await exchange(`${coordinator.url}/public/v1/query/whoami`, { method: 'POST', body, headers });
      expect(status).toBe(200);
    },
  );
});

const anyCode: unknown = expect.any(Number);
const anyList: unknown = expect.any(Array);

/** Names of our classes and files, which are nobody's business. */
const ours = new RegExp(
  [
    ...[...registry.versions.values()].map(({ intent }) => intent.name),
    'SubmitEnvelope',
    'CoordinatorError',
    'ValidationError',
    'TypeError',
    'RangeError',
    'SqliteError',
    'node_modules',
    'node:internal',
    String.raw`\.(?:ts|js):\d+`,
    String.raw`\n\s+at `,
    String.raw`\[object `,
    'undefined',
  ].join('|'),
);

/** Random bodies of the next test. */
const count = isLong ? 10_000 : 600;

test('random bodies of right and nearly right shape never cause a 5xx, and never reveal internals', async () => {
  const furnished = await furnish(coordinator);
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const privateKey = nodeKey(coordinator.client.key);
  const requests = [...fc.sample(nearlyRight(furnished), { numRuns: count, seed: 20_260_101 })];
  const statuses = new Map<number, number>();
  const { port } = new URL(coordinator.url);

  const one = (path: string, body: string) =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const { publicKey } = coordinator.client.key;
      // Stamped with OpenSSL: ten thousand of them take a second.
      const signature = sign('sha256', Buffer.from(body), privateKey).toString('hex');
      const stamp = Buffer.from(JSON.stringify({ publicKey, scheme: 'SIGNATURE_SCHEME_TK_API_P256', signature }));
      const outgoing = httpRequest(
        { agent, host: '127.0.0.1', port, path, method: 'POST', headers: { 'x-stamp': stamp.toString('base64url') } },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => (text += chunk));
          response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
        },
      );
      outgoing.on('error', reject);
      outgoing.end(body);
    });

  const work = async () => {
    for (let next = requests.pop(); next; next = requests.pop()) {
      const { path, body } = next;
      const { status, text } = await one(path, body);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status >= 500) throw new Error(`${status} for ${path} ${body}: ${text}`);
      if (status === 200) continue;
      const told = ours.exec(text.replaceAll(body.slice(0, 64), ''))?.[0];
      if (told !== undefined && !body.includes(told)) throw new Error(`tells \`${told}\` for ${path} ${body}: ${text}`);
    }
  };
  await Promise.all(Array.from({ length: 64 }, work));
  agent.destroy();
  // It is only a test of the refusals if some requests pass and most do not.
  expect(statuses.get(200)).toBeGreaterThan(count / 40);
  expect(statuses.get(400)).toBeGreaterThan(count / 4);
  expect(await coordinator.client.query('whoami')).toMatchObject({ organizationId });
}, 120_000);

/** The samples of every path, with something in them changed, left out, or added. */
function nearlyRight(furnished: Furnished): fc.Arbitrary<{ path: string; body: string }> {
  const intents = Object.entries(submitSamples(furnished))
    // What would take the root user's own rights away would end the test.
    .filter(([type]) => type !== 'ACTIVITY_TYPE_UPDATE_ROOT_QUORUM')
    .map(([type, parameters]) => ({
      path: `/public/v1/submit/${registry.versions.get(type)!.kind.toLowerCase()}`,
      body: (salt: number): object => ({ type, timestampMs: String(now + salt), organizationId, parameters }),
    }));
  const questions = Object.entries(querySamples(furnished)).map(([path, sample]) => ({
    path: `/public/v1/query/${path}`,
    body: (): object => ({ organizationId, ...sample }),
  }));
  const junk = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.constantFrom(null, '', ' ', 0, -1, 1e308, true, [], {}, [null], '00000000-0000-4000-8000-000000000000'),
    fc.constantFrom('constructor', 'toString', '__proto__x', 'sha256:', "'; DROP TABLE users; --", '\u0000', '\uffff'),
  );
  const change = fc.record({
    at: fc.nat(),
    how: fc.constantFrom('replace', 'replace', 'drop', 'rename', 'add', 'wrap', 'keep'),
    junk,
    name: fc.oneof(
      fc.constantFrom('constructor', 'hasOwnProperty', 'length', 'then', 'toJSON'),
      fc.string({ maxLength: 12 }),
    ),
  });
  return fc
    .record({
      template: fc.constantFrom(...intents, ...questions),
      salt: fc.integer({ min: -1_000_000, max: 200_000 }),
      changes: fc.array(change, { maxLength: 2 }),
      anything: fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.json() }),
      wrongPath: fc.oneof(
        { weight: 19, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: fc.constantFrom(...stampedPaths) },
      ),
    })
    .map(({ template, salt, changes, anything, wrongPath }) => ({
      path: wrongPath ?? template.path,
      body: anything ?? JSON.stringify(changes.reduce<unknown>(changed, template.body(salt))),
    }));
}

interface Change {
  readonly at: number;
  readonly how: 'replace' | 'drop' | 'rename' | 'add' | 'wrap' | 'keep';
  readonly junk: unknown;
  readonly name: string;
}

/** The value with one of its members, however deep, changed. */
function changed(value: unknown, { at, how, junk, name }: Change): unknown {
  const places: [Record<string, unknown>, string][] = [];
  const copy = structuredClone(value);
  const walk = (node: unknown) => {
    if (typeof node !== 'object' || node === null) return;
    if (Array.isArray(node)) {
      node.forEach(walk);
      return;
    }
    for (const key of Object.keys(node)) {
      places.push([node as Record<string, unknown>, key]);
      walk((node as Record<string, unknown>)[key]);
    }
  };
  walk(copy);
  const place = places[at % Math.max(1, places.length)];
  if (!place) return copy;
  const [holder, key] = place;
  switch (how) {
    case 'replace':
      holder[key] = junk;
      break;
    case 'drop':
      delete holder[key];
      break;
    case 'rename':
      Object.defineProperty(holder, name, { value: holder[key], enumerable: true, configurable: true, writable: true });
      if (name !== key) delete holder[key];
      break;
    case 'add':
      Object.defineProperty(holder, name, { value: junk, enumerable: true, configurable: true, writable: true });
      break;
    case 'wrap':
      holder[key] = [holder[key]];
      break;
    case 'keep':
      break;
  }
  return copy;
}

/** The same key for OpenSSL. */
function nodeKey({ privateKey, publicKey }: ApiKeyPair) {
  const compressed = Buffer.from(publicKey, 'hex');
  const der = Buffer.concat([
    Buffer.from('303102010104', 'hex'),
    Buffer.from([0x20]),
    Buffer.from(privateKey, 'hex'),
    Buffer.from('a00a06082a8648ce3d030107', 'hex'),
  ]);
  expect(compressed.length).toBe(33);
  return createPrivateKey({ key: der, format: 'der', type: 'sec1' });
}
