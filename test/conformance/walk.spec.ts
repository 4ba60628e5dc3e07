import { createPrivateKey, randomUUID, sign, type KeyObject } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { p256 } from '@noble/curves/nist.js';
import { fingerprintOf } from '../../src/stamps/fingerprint.js';
import { stampBody, type ApiKeyPair } from '../../src/testing/index.js';
import { exchange, violations, type Exchange, type Refusal } from '../e2e/exchange.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import {
  changed,
  edges,
  hasEnumeration,
  hasForm,
  knownValues,
  mayBeEmpty,
  misshapen,
  missing,
  namedResources,
  unknownValues,
  valueAt,
  withEmptyTexts,
  withNulls,
  withoutOptional,
  written,
  wrongForms,
  wrongTypes,
  type Case,
} from './cases.js';
import { minimalFixtures, proxyFixtures, queryFixtures, submitFixtures, submitRemarks, type Body } from './fixtures.js';
import { conformancePage, tables, type Kind } from './page.js';
import { WalkRecord } from './record.js';
import {
  activity as activityTable,
  completed,
  headers as headerNames,
  maxAgeMs,
  maxAheadMs,
  pageLimit,
  refusals,
  submitEnvelope,
} from './specification/common.js';
import { proxyEndpoints } from './specification/proxy.js';
import { addressFormats, curves, pathFormats, queries } from './specification/queries.js';
import type { FieldType } from './specification/shape.js';
import { submits } from './specification/submits.js';
import { curveOf, World } from './world.js';

// Everything that the specification's tables say, tried over HTTP with real stamps. The tables are data of their own, not
// this server's declarations.

let world: World;
const record = new WalkRecord();

beforeAll(async () => {
  world = await World.start();
});

afterAll(() => world.close());

/** One request, and what is wrong with how it was answered. */
interface Trial {
  readonly name: string;
  /** The body, where it is a submit: whatever it leaves in the stream is found by it. */
  readonly text?: string;
  readonly run: () => Promise<string | undefined>;
}

const submitUrl = (path: string) => `${world.coordinator.url}/public/v1/submit/${path}`;
const queryUrl = (path: string) => `${world.coordinator.url}/public/v1/query/${path}`;
const proxyUrl = (path: string) => `${world.coordinator.url}/v1/${path}`;

const jsonHeaders = { 'content-type': 'application/json', accept: 'application/json' };

/** Posts the text with one stamp over it, or with the headers given in its place. */
function post(
  url: string,
  text: string,
  stamp: ApiKeyPair | Readonly<Record<string, string>> = world.client.key,
): Promise<Exchange> {
  const headers = 'privateKey' in stamp ? stampedBy(stamp as ApiKeyPair, text) : stamp;
  return counted(url, { method: 'POST', headers: { ...jsonHeaders, ...headers }, body: text });
}

async function counted(url: string, request: RequestInit): Promise<Exchange> {
  const answer = await exchange(url, request);
  record.answered(answer.status);
  return answer;
}

/** The walk has thousands of stamps, so OpenSSL signs where it can. */
function stampedBy(key: ApiKeyPair, text: string): Readonly<Record<string, string>> {
  if (key.curve !== 'API_KEY_CURVE_P256') return { [headerNames.stamp]: stampBody(text, key).headerValue };
  const { publicKey } = key;
  const signature = sign('sha256', Buffer.from(text), openSslKey(key)).toString('hex');
  const stamp = { publicKey, scheme: 'SIGNATURE_SCHEME_TK_API_P256', signature };
  return { [headerNames.stamp]: Buffer.from(JSON.stringify(stamp)).toString('base64url') };
}

const openSslKeys = new Map<string, KeyObject>();

function openSslKey({ publicKey, privateKey }: ApiKeyPair): KeyObject {
  const known = openSslKeys.get(publicKey);
  if (known) return known;
  const point = Buffer.from(p256.Point.fromHex(publicKey).toBytes(false));
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString('base64url'));
  const d = Buffer.from(privateKey, 'hex').toString('base64url');
  const key = createPrivateKey({ format: 'jwk', key: { kty: 'EC', crv: 'P-256', x: x!, y: y!, d } });
  openSslKeys.set(publicKey, key);
  return key;
}

/** What has gone wrong in the piece of the walk that is under way. */
let wrong: string[] = [];

/** Tests that are pieces of the walk: one that does not come to its end is missed in the page. */
const pieces = (endpoint: string) => (title: string, run: () => Promise<void>) => {
  const piece = `${endpoint}: ${title}`;
  record.plan(piece);
  test(title, async () => {
    wrong = [];
    await run();
    record.end(piece);
    expect(wrong).toEqual([]);
  });
};

/** Tries all of them, and takes note of those that went wrong. */
async function walk(endpoint: string, kind: Kind, trials: readonly Trial[], isRefused = true): Promise<void> {
  expect(trials).not.toEqual([]);
  if (isRefused) await world.recorded();
  const failed = new Set<string>();
  for (const { name, run } of trials) {
    // A trial that breaks off has failed, and those behind it are tried all the same.
    const problem = await run().catch(String);
    if (problem === undefined) continue;
    failed.add(name);
    wrong.push(`${name}: ${problem}`);
  }
  if (isRefused) {
    const names = new Map(trials.map(({ name, text }) => [text && fingerprintOf(Buffer.from(text)), name]));
    let found = 0;
    for (const { type, data } of await world.recorded()) {
      const name = names.get((data as { fingerprint?: string }).fingerprint) ?? 'one of them';
      failed.add(name);
      found += 1;
      wrong.push(`${name}: was refused, and yet recorded ${type} ${JSON.stringify(data).slice(0, 500)}`);
    }
    record.soughtInRecords(trials.filter(({ text }) => text !== undefined).length, found);
  }
  for (const { name } of trials) record.tried(endpoint, kind, !failed.has(name));
}

type Expected = (typeof refusals)[keyof typeof refusals];

/** What is wrong with a refusal; `field` is what it must name. */
function notRefused(answer: Exchange, expected: Expected | readonly Expected[], field?: string): string | undefined {
  const { status, text } = answer;
  const body = (answer.body ?? {}) as Omit<Refusal, 'status'>;
  const allowed: readonly Expected[] = [expected].flat();
  const short = text.slice(0, 300);
  if (!allowed.some((one) => one.status === status && one.code === body.code)) {
    return `expected ${allowed.map((one) => `${one.status} with code ${one.code}`).join(' or ')}, got ${status}: ${short}`;
  }
  if (typeof body.message !== 'string' || body.message === '' || !Array.isArray(body.details)) {
    return `is not in the format of errors: ${short}`;
  }
  return field === undefined || isNamed(field, body) ? undefined : `does not name ${field}: ${short}`;
}

/** A list names its elements, and an element its list; the proxy says where in its own request to the API a field stands. */
function isNamed(field: string, body: Omit<Refusal, 'status'>): boolean {
  const { message } = body;
  const last = field.split('.').at(-1)!;
  // The published words for what is wrong with an expression.
  const clause = /(condition|consensus)$/i.exec(last)?.[0].toLowerCase();
  if (clause !== undefined && message.startsWith(`invalid policy ${clause}: `)) return true;
  // A message that names no violation has the field in backticks or before the value, or by a name that is no other word.
  const told = [...message.matchAll(/`([^`]+)`|([\w.[\]]+)(?= `)|\b([a-z]+[A-Z]\w*)/g)].map((match) =>
    match.slice(1).join(''),
  );
  const own = withoutIndex(field);
  return [...violations(body).map((violation) => violation.field), ...told].some((one) => {
    const named = withoutIndex(one);
    return `.${named}`.endsWith(`.${own}`) || `.${own}`.endsWith(`.${named}`);
  });
}

const withoutIndex = (field: string) => field.replace(/\[\d+\]$/, '');

function notCompleted(answer: Exchange, endpoint: (typeof submits)[number], parameters: Body): string | undefined {
  if (answer.status !== 200) return `expected 200, got ${answer.status}: ${answer.text.slice(0, 300)}`;
  const { activity } = answer.body as { activity: Readonly<Record<string, unknown>> };
  const problems = misshapen(activityTable, activity, 'activity');
  if (problems.length > 0) return problems.join('; ');
  const wanted = {
    status: completed,
    type: endpoint.type,
    organizationId: world.coordinator.organizationId,
    intent: { [endpoint.intent]: present(parameters) },
  };
  for (const [name, value] of Object.entries(wanted)) {
    if (JSON.stringify(sorted(activity[name])) !== JSON.stringify(sorted(value))) {
      return `${name} is ${JSON.stringify(activity[name]).slice(0, 300)}, not ${JSON.stringify(value).slice(0, 300)}`;
    }
  }
  const result = activity['result'] as Body;
  if (Object.keys(result).join() !== endpoint.result) return `result has the keys ${Object.keys(result).join()}`;
  return misshapen(endpoint.results, result[endpoint.result], endpoint.result)[0];
}

/** Members that are null are absent (client protocol 2.8). */
const present = (parameters: Body): Body =>
  Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== null));

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, member]) => [name, sorted(member)]),
  );
}

/** A text of that length: unique, or what the field holds with spaces behind it where it has to be JSON. */
const textFor =
  (body: Body) =>
  (field: string, length: number, type: FieldType): string =>
    type.kind === 'string' && type.form === 'JSON'
      ? String(valueAt(body, field.split('.'))).padEnd(length)
      : length === 0
        ? ''
        : world.unique(length);

/** Cases as trials that must all be refused, with the field named. */
const refusedTrials = (
  cases: readonly Case[],
  send: (body: Body) => { text: string; answer: () => Promise<Exchange> },
) =>
  cases.map(({ name, field, body, mayBeMissing }): Trial => {
    const { text, answer } = send(body);
    const expected = mayBeMissing ? [refusals.invalid, refusals.missing] : refusals.invalid;
    return { name, text, run: async () => notRefused(await answer(), expected, field) };
  });

/** What is wrong with the stamps of a request: headers over its text. */
const badStamps = (text: string): Readonly<Record<string, Readonly<Record<string, string>>>> => {
  const { stamp, passkeyStamp } = headerNames;
  const own = stampedBy(world.client.key, text);
  const members = JSON.parse(Buffer.from(own[stamp]!, 'base64url').toString()) as Readonly<Record<string, string>>;
  const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const without = (name: string) => Object.fromEntries(Object.entries(members).filter(([member]) => member !== name));
  const assertion = world.passkey.assert({ body: text });
  return {
    'no stamp': {},
    'an empty stamp': { [stamp]: '' },
    'both stamps': { ...own, [passkeyStamp]: assertion },
    'the same stamp twice': { [stamp]: `${own[stamp]!}, ${own[stamp]!}` },
    'no base64': { [stamp]: 'not a stamp!' },
    'no JSON': { [stamp]: Buffer.from('not a stamp').toString('base64url') },
    'a JSON list': { [stamp]: encoded([]) },
    'a stamp without publicKey': { [stamp]: encoded(without('publicKey')) },
    'a stamp without scheme': { [stamp]: encoded(without('scheme')) },
    'a stamp without signature': { [stamp]: encoded(without('signature')) },
    'an unknown scheme': { [stamp]: encoded({ ...members, scheme: 'SIGNATURE_SCHEME_NONE' }) },
    'the scheme of another curve': { [stamp]: encoded({ ...members, scheme: 'SIGNATURE_SCHEME_TK_API_ED25519' }) },
    'no hex in the signature': { [stamp]: encoded({ ...members, signature: 'zz' }) },
    'a signature of nothing': { [stamp]: encoded({ ...members, signature: '3006020100020100' }) },
    'a stamp over other bytes': stampedBy(world.client.key, `${text} `),
    'the key of nobody': stampedBy(world.newKey(), text),
    'a key on secp256k1 of nobody': stampedBy(world.newKey('API_KEY_CURVE_SECP256K1'), text),
    'a key of another organization': stampedBy(world.child.key, text),
    'a passkey stamp that is no JSON': { [passkeyStamp]: 'not a stamp' },
    'a passkey stamp over other bytes': { [passkeyStamp]: world.passkey.assert({ body: `${text} ` }) },
    'the passkey of nobody': { [passkeyStamp]: new SoftwareAuthenticator().assert({ body: text }) },
  };
};

const stampTrials = (url: string, text: string): readonly Trial[] =>
  Object.entries(badStamps(text)).map(([name, headers]) => ({
    name,
    text,
    run: async () => notRefused(await post(url, text, headers), refusals.unauthenticated),
  }));

test('the specification is transcribed whole', () => {
  expect([submits.length, queries.length, proxyEndpoints.length]).toEqual([17, 3, 8]);
  expect(new Set(submits.map(({ type }) => type)).size).toBe(17);
  expect(Object.keys(submitFixtures).sort()).toEqual(submits.map(({ path }) => path).sort());
  expect(Object.keys(queryFixtures).sort()).toEqual(queries.map(({ path }) => path).sort());
  expect(Object.keys(proxyFixtures).sort()).toEqual(proxyEndpoints.map(({ path }) => path).sort());
});

describe.each(submits)('submit/$path', (endpoint) => {
  const { path, type, parameters: table } = endpoint;
  const piece = pieces(`submit/${path}`);
  const fixture = submitFixtures[path]!;
  let sample: Body;

  const textOf = (parameters: Body, more: { timestampMs?: string; organizationId?: string } = {}) =>
    world.client.submitBody(type, parameters, more);
  const sendParameters = (parameters: Body) => {
    const text = textOf(parameters);
    return { text, answer: () => post(submitUrl(path), text) };
  };
  const sendEnvelope = (envelope: Body) => {
    const text = JSON.stringify(envelope);
    return { text, answer: () => post(submitUrl(path), text) };
  };
  const accepted = (
    name: string,
    parametersOf: () => Promise<Body>,
    stamp?: (text: string) => Record<string, string>,
  ) => ({
    name,
    async run() {
      const parameters = await parametersOf();
      const text = textOf(parameters);
      return notCompleted(await post(submitUrl(path), text, stamp?.(text)), endpoint, parameters);
    },
  });
  const inParameters = (cases: readonly Case[]) =>
    cases.map((one): Case => ({ ...one, field: `parameters.${one.field}` }));
  const envelope = (): Body => ({
    ...(JSON.parse(textOf(sample)) as Body),
    generateAppProofs: false,
  });

  beforeAll(async () => {
    sample = await fixture(world);
  });

  piece('is done as it is described', async () => {
    const optionalFields = table.filter(({ required }) => !required).map(({ name }) => name);
    const full = await fixture(world);
    expect(Object.keys(full).sort()).toEqual(table.map(({ name }) => name).sort());
    const small = minimalFixtures[path] ?? fixture;
    const trials: Trial[] = [
      accepted('every field', async () => full),
      {
        name: 'with generateAppProofs',
        async run() {
          const parameters = await fixture(world);
          const asked = { ...(JSON.parse(textOf(parameters)) as Body), generateAppProofs: true };
          return notCompleted(await post(submitUrl(path), JSON.stringify(asked)), endpoint, parameters);
        },
      },
    ];
    trials.push(accepted('required fields only', async () => withoutOptional(table, await small(world))));
    if (optionalFields.length > 0) {
      trials.push(accepted('null for optional fields', async () => withNulls(table, await small(world))));
    }
    if (table.some(mayBeEmpty)) {
      trials.push(accepted('empty for optional texts', async () => withEmptyTexts(table, await small(world))));
    }
    if (optionalFields.length > 1) {
      for (const name of optionalFields) {
        const only = async () => {
          const body = await small(world);
          return { ...withoutOptional(table, body), [name]: body[name] };
        };
        trials.push(accepted(`${name} alone`, only));
      }
    }
    for (const { name, type: fieldType } of table) {
      if (fieldType.kind === 'string' && fieldType.emptyAllowed) {
        trials.push(
          accepted(`${name} is empty`, async () => ({ ...withoutOptional(table, await fixture(world)), [name]: '' })),
        );
      }
    }
    for (const { name, parameters, refused } of submitRemarks[path] ?? []) {
      trials.push(
        refused === undefined
          ? accepted(name, () => parameters(world))
          : {
              name,
              run: async () =>
                notRefused(await sendParameters(await parameters(world)).answer(), refusals.invalid, refused),
            },
      );
    }
    if (!endpoint.stampOnly) {
      trials.push(
        accepted(
          'a passkey’s stamp',
          () => fixture(world),
          (text) => ({
            [headerNames.passkeyStamp]: world.passkey.assert({ body: text }),
          }),
        ),
      );
    }
    await walk(`submit/${path}`, 'done', trials, false);
  });

  if (table.some(hasEnumeration)) {
    piece('every value of its enumerations', async () => {
      const values = knownValues(table, sample);
      const unknown = unknownValues(table, sample);
      const taken = values.map((wanted) =>
        accepted(`${wanted.at} is ${String(wanted.value)}`, () => fixture(world, wanted)),
      );
      await walk(`submit/${path}`, 'values', taken, false);
      await walk(`submit/${path}`, 'values', refusedTrials(inParameters(unknown), sendParameters));
    });
  }

  piece('every required field missing', async () => {
    const trials = [
      ...refusedTrials(missing(submitEnvelope, envelope()), sendEnvelope),
      ...refusedTrials(inParameters(missing(table, sample)), sendParameters),
    ];
    await walk(`submit/${path}`, 'missing', trials);
  });

  piece('every field of a wrong type', () =>
    walk(`submit/${path}`, 'type', [
      ...refusedTrials(wrongTypes(submitEnvelope, envelope()), sendEnvelope),
      ...refusedTrials(inParameters(wrongTypes(table, sample)), sendParameters),
    ]),
  );

  piece('every field in a wrong form', () =>
    walk(`submit/${path}`, 'form', [
      ...refusedTrials(wrongForms(submitEnvelope, envelope()), sendEnvelope),
      ...refusedTrials(inParameters(wrongForms(table, sample)), sendParameters),
    ]),
  );

  piece('every limit', async () => {
    const all = edges(table, sample, textFor(sample));
    const outside = all
      .filter(({ isWithin }) => !isWithin)
      .map(({ name, field, path: at, value }): Case => ({ name, field, body: changed(sample, at, value) }));
    const within = all
      .filter(({ isWithin }) => isWithin)
      .map(({ name, path: at, value }) => accepted(name, async () => changed(await fixture(world), at, value)));
    const now = world.coordinator.clock.now();
    const lateness = { 'as old as may be': 1 - maxAgeMs, 'as early as may be': maxAheadMs };
    const alive = Object.entries(lateness).map(([name, offset]): Trial => {
      const run = async () => {
        const parameters = await fixture(world);
        const text = textOf(parameters, { timestampMs: String(now + offset) });
        return notCompleted(await post(submitUrl(path), text), endpoint, parameters);
      };
      return { name: `timestampMs ${name}`, run };
    });
    const overdue = { 'too old': -maxAgeMs, 'too early': maxAheadMs + 1, 'of the epoch': -now };
    const dead = Object.entries(overdue).map(([name, offset]): Case => ({
      name: `timestampMs ${name}`,
      field: 'timestampMs',
      body: { ...envelope(), timestampMs: String(now + offset) },
    }));
    await walk(`submit/${path}`, 'limits', [...within, ...alive], false);
    await walk(`submit/${path}`, 'limits', [
      ...refusedTrials(inParameters(outside), sendParameters),
      ...refusedTrials(dead, sendEnvelope),
    ]);
  });

  piece('every stamp that is none', async () => {
    const text = textOf(sample);
    const passkey: Trial = {
      name: 'a passkey’s stamp, where only X-Stamp is listed',
      text,
      run: async () =>
        notRefused(
          await post(submitUrl(path), text, { [headerNames.passkeyStamp]: world.passkey.assert({ body: text }) }),
          refusals.unauthenticated,
        ),
    };
    await walk(`submit/${path}`, 'stamp', [
      ...stampTrials(submitUrl(path), text),
      ...(endpoint.stampOnly ? [passkey] : []),
    ]);
  });

  piece('what belongs to another organization', async () => {
    const ids = namedResources(table, sample).map(({ field: { names, type: fieldType }, path: at }): Trial => {
      const id = world.foreign[names!];
      const { text, answer } = sendParameters(changed(sample, at, fieldType.kind === 'list' ? [id] : id));
      return {
        name: `${written(at)} of another organization`,
        text,
        run: async () => notRefused(await answer(), [refusals.invalid, refusals.missing]),
      };
    });
    const unknown = textOf(sample, { organizationId: randomUUID() });
    const elsewhere = textOf(sample, { organizationId: world.child.organizationId });
    await walk(`submit/${path}`, 'tenant', [
      ...ids,
      {
        name: 'an organization that nobody knows',
        text: unknown,
        run: async () => notRefused(await post(submitUrl(path), unknown), refusals.missing),
      },
      {
        name: 'another organization, by somebody without rights there',
        text: elsewhere,
        run: async () =>
          notRefused(await post(submitUrl(path), elsewhere, world.stranger.key), [
            refusals.denied,
            refusals.missing,
            refusals.invalid,
          ]),
      },
    ]);
  });

  piece('its type at every other path', async () => {
    const text = textOf(sample);
    const others = submits.filter((other) => other.path !== path);
    await walk(
      `submit/${path}`,
      'path',
      others.map((other) => ({
        name: `at ${other.path}`,
        text,
        run: async () => notRefused(await post(submitUrl(other.path), text), refusals.invalid, 'type'),
      })),
    );
  });
});

describe.each(queries)('query/$path', ({ path, body: table, response }) => {
  const piece = pieces(`query/${path}`);
  const fixture = queryFixtures[path]!;
  let sample: Body;

  const whole = (body: Body): Body => ({ organizationId: world.coordinator.organizationId, ...body });
  const send = (body: Body) => {
    const text = JSON.stringify(body);
    return { text, answer: () => post(queryUrl(path), text) };
  };
  const answered = (
    name: string,
    bodyOf: () => Promise<Body>,
    stamp?: (text: string) => Readonly<Record<string, string>>,
  ): Trial => ({
    name,
    async run() {
      const text = JSON.stringify(await bodyOf());
      const answer = await post(queryUrl(path), text, stamp?.(text));
      return answer.status === 200
        ? misshapen(response, answer.body)[0]
        : `expected 200, got ${answer.status}: ${answer.text.slice(0, 300)}`;
    },
  });

  beforeAll(async () => {
    sample = whole(await fixture(world));
  });

  piece('is answered as it is described', () =>
    walk(`query/${path}`, 'done', [
      answered('every field', async () => sample),
      answered('required fields only', async () => withoutOptional(table, sample)),
      ...(table.some(({ required }) => !required)
        ? [answered('null for optional fields', async () => withNulls(table, sample))]
        : []),
      answered(
        'a passkey’s stamp',
        async () => sample,
        (text) => ({
          [headerNames.passkeyStamp]: world.passkey.assert({ body: text }),
        }),
      ),
    ]),
  );

  piece('every required field missing', () =>
    walk(`query/${path}`, 'missing', refusedTrials(missing(table, sample), send)),
  );

  piece('every field of a wrong type', () =>
    walk(`query/${path}`, 'type', refusedTrials(wrongTypes(table, sample), send)),
  );

  piece('every field in a wrong form', () =>
    walk(`query/${path}`, 'form', refusedTrials(wrongForms(table, sample), send)),
  );

  piece('every stamp that is none', () =>
    walk(`query/${path}`, 'stamp', stampTrials(queryUrl(path), JSON.stringify(sample))),
  );

  piece('what belongs to another organization', async () => {
    const ids = namedResources(table, sample).map(({ field: { names }, path: at }): Trial => ({
      name: `${written(at)} of another organization`,
      run: async () =>
        notRefused(await send(changed(sample, at, world.foreign[names!])).answer(), [
          refusals.invalid,
          refusals.missing,
        ]),
    }));
    const unknown = JSON.stringify({ ...sample, organizationId: randomUUID() });
    const own = JSON.stringify({ ...sample, organizationId: world.child.organizationId });
    await walk(`query/${path}`, 'tenant', [
      ...ids,
      {
        name: 'an organization that nobody knows',
        run: async () => notRefused(await post(queryUrl(path), unknown), refusals.missing),
      },
      {
        name: 'an organization that the caller is not of',
        run: async () => notRefused(await post(queryUrl(path), own, world.sibling.key), refusals.unauthenticated),
      },
    ]);
  });
});

describe('query/list_wallet_accounts', () => {
  const piece = pieces('query/list_wallet_accounts');
  interface Listed {
    readonly walletAccountId: string;
    readonly [member: string]: unknown;
  }
  const list = async (more: object) =>
    (await world.client.query<{ accounts: Listed[] }>('list_wallet_accounts', more)).accounts;
  const path = 'list_wallet_accounts';
  const at = (index: number) => `m/44'/0'/0'/0/${index}`;

  piece('every curve, path format and address format', async () => {
    const shapes = addressFormats.map((addressFormat) => ({ addressFormat, curve: curveOf(addressFormat) }));
    const onP256 = { addressFormat: 'ADDRESS_FORMAT_COMPRESSED', curve: 'CURVE_P256' };
    const asked = [...shapes, onP256].map((shape, index) => ({
      ...shape,
      pathFormat: pathFormats[0]!,
      path: shape.curve === 'CURVE_ED25519' ? `m/44'/0'/${index}'` : at(index),
    }));
    const accounts = await world.newWallet(asked);
    const valuesOf = (name: string) => new Set(accounts.map((account) => (account as object as Listed)[name]));
    const trials = Object.entries({ curve: curves, pathFormat: pathFormats, addressFormat: addressFormats }).flatMap(
      ([name, values]) =>
        values.map((value) => ({
          name: `${name} ${value}`,
          run: async () => (valuesOf(name).has(value) ? undefined : 'is listed by no account'),
        })),
    );
    await walk(`query/${path}`, 'values', trials, false);
  });

  piece('every limit, and the pages', async () => {
    const accounts = Array.from({ length: pageLimit.most }, (_, index) => ({
      curve: 'CURVE_SECP256K1',
      pathFormat: 'PATH_FORMAT_BIP32',
      path: at(index),
      addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
    }));
    const [first] = await world.newWallet(accounts);
    const { walletId } = first!;
    await world.submit('ACTIVITY_TYPE_CREATE_WALLET_ACCOUNTS', {
      walletId,
      accounts: [{ ...accounts[0]!, path: at(pageLimit.most) }],
    });
    const all = await list({ walletId, paginationOptions: { limit: String(pageLimit.most) } });
    const ids = (listed: readonly Listed[]) => listed.map(({ walletAccountId }) => walletAccountId).join();
    const page = (name: string, more: object, expected: readonly Listed[]): Trial => ({
      name,
      run: async () => (ids(await list({ walletId, ...more })) === ids(expected) ? undefined : 'lists other accounts'),
    });
    const limited = (limit: string): Trial => ({
      name: `limit \`${limit}\` is refused`,
      async run() {
        const { organizationId } = world.coordinator;
        const text = JSON.stringify({ organizationId, walletId, paginationOptions: { limit } });
        return notRefused(await post(queryUrl(path), text), refusals.invalid, 'paginationOptions.limit');
      },
    });
    await walk(`query/${path}`, 'limits', [
      page(`no limit lists ${pageLimit.usual}`, {}, all.slice(0, pageLimit.usual)),
      page('limit 1', { paginationOptions: { limit: '1' } }, all.slice(0, 1)),
      page('limit 99', { paginationOptions: { limit: '99' } }, all.slice(0, 99)),
      page('limit 100', { paginationOptions: { limit: '100' } }, all.slice(0, 100)),
      limited('0'),
      limited('101'),
      page('after', { paginationOptions: { after: all[3]!.walletAccountId, limit: '2' } }, all.slice(4, 6)),
      page('before', { paginationOptions: { before: all[3]!.walletAccountId } }, all.slice(0, 3)),
      {
        name: 'without walletId all accounts of the organization are listed',
        async run() {
          const wallets = new Set((await list({ paginationOptions: { limit: '100' } })).map((one) => one['walletId']));
          return wallets.size > 1 ? undefined : 'lists one wallet only';
        },
      },
      {
        name: 'walletDetails are left out unless asked for',
        async run() {
          const [plain] = await list({ walletId });
          const [detailed] = await list({ walletId, includeWalletDetails: true });
          return 'walletDetails' in plain! || !('walletDetails' in detailed!) ? 'are not' : undefined;
        },
      },
    ]);
  });
});

describe.each(proxyEndpoints)('proxy/$path', ({ path, body: table, response }) => {
  const piece = pieces(`proxy/${path}`);
  const fixture = proxyFixtures[path]!;
  const config = () => ({ [headerNames.config]: world.coordinator.root.authProxyConfigId });
  const send = (body: Body) => {
    const text = JSON.stringify(body);
    return { text, answer: () => post(proxyUrl(path), text, config()) };
  };
  let sample: Body;

  const answered = (
    name: string,
    bodyOf: () => Promise<Body>,
    headers: () => Readonly<Record<string, string>> = config,
  ): Trial => ({
    name,
    async run() {
      const answer = await post(proxyUrl(path), JSON.stringify(await bodyOf()), headers());
      return answer.status === 200
        ? misshapen(response, answer.body)[0]
        : `expected 200, got ${answer.status}: ${answer.text.slice(0, 300)}`;
    },
  });
  beforeAll(async () => {
    sample = await fixture(world);
  });

  piece('is answered as it is described', async () => {
    const small = minimalFixtures[path] ?? fixture;
    const minimal = withoutOptional(table, await small(world));
    const nulls = withNulls(table, await small(world));
    expect(Object.keys(sample).sort()).toEqual(table.map(({ name }) => name).sort());
    const trials = [
      answered('every field', () => fixture(world)),
      answered('required fields only', async () => minimal),
      ...(table.some(({ required }) => !required) ? [answered('null for optional fields', async () => nulls)] : []),
    ];
    const withoutBody = async () => {
      const answer = await counted(proxyUrl(path), { method: 'POST', headers: { ...jsonHeaders, ...config() } });
      return answer.status === 200 ? misshapen(response, answer.body)[0] : `got ${answer.status}: ${answer.text}`;
    };
    if (table.length === 0) trials.push({ name: 'no body at all', run: withoutBody });
    await walk(`proxy/${path}`, 'done', trials, false);
  });

  if (table.length > 0) {
    if (table.some(hasEnumeration)) {
      piece('every value of its enumerations', async () => {
        const values = knownValues(table, sample);
        const unknown = unknownValues(table, sample);
        const taken = values.map((wanted) =>
          answered(`${wanted.at} is ${String(wanted.value)}`, () => fixture(world, wanted)),
        );
        await walk(`proxy/${path}`, 'values', taken, false);
        await walk(`proxy/${path}`, 'values', refusedTrials(unknown, send));
      });
    }

    piece('every required field missing', () =>
      walk(`proxy/${path}`, 'missing', refusedTrials(missing(table, sample), send)),
    );

    piece('every field of a wrong type', () =>
      walk(`proxy/${path}`, 'type', refusedTrials(wrongTypes(table, sample), send)),
    );

    if (table.some(hasForm)) {
      piece('every field in a wrong form', () =>
        walk(`proxy/${path}`, 'form', refusedTrials(wrongForms(table, sample), send)),
      );
    }
  }

  piece('the header that names the configuration', async () => {
    const text = JSON.stringify(sample);
    const { config: header } = headerNames;
    const bad: Readonly<Record<string, readonly [Readonly<Record<string, string>>, Expected]>> = {
      'no header': [{}, refusals.invalid],
      'an empty header': [{ [header]: '' }, refusals.invalid],
      'no UUID': [{ [header]: 'a configuration' }, refusals.invalid],
      'two ids': [{ [header]: `${randomUUID()}, ${randomUUID()}` }, refusals.invalid],
      'the id of an organization': [{ [header]: world.coordinator.organizationId }, refusals.missing],
      'an id of nobody': [{ [header]: randomUUID() }, refusals.missing],
    };
    const trials = Object.entries(bad).map(([name, [headers, expected]]): Trial => ({
      name,
      run: async () => notRefused(await post(proxyUrl(path), text, headers), expected),
    }));
    await walk(`proxy/${path}`, 'config', trials);
  });

  piece('the origin', async () => {
    const app = 'https://app.example.com';
    const update = (allowedOrigins: readonly string[]) =>
      world.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', { allowedOrigins });
    const from = (origin: string) => () => ({ ...config(), origin });
    await walk(
      `proxy/${path}`,
      'origin',
      [answered('any, which is the default', () => fixture(world), from('https://any.example'))],
      false,
    );
    await update([app]);
    try {
      await walk(`proxy/${path}`, 'origin', [answered('an allowed one', () => fixture(world), from(app))], false);
      const text = JSON.stringify(sample);
      const others = [
        'https://evil.example',
        'https://sub.app.example.com',
        `${app}:8443`,
        'http://app.example.com',
        'null',
      ];
      const refused = [
        ...others.map((origin) => [origin, { ...config(), origin }] as const),
        ['none', config()] as const,
      ];
      const trials = refused.map(([name, headers]): Trial => ({
        name,
        run: async () => notRefused(await post(proxyUrl(path), text, headers), refusals.denied),
      }));
      await walk(`proxy/${path}`, 'origin', trials);
    } finally {
      await update(['*']);
    }
  });
});

test('docs/reference/conformance.md is what `npm run docs:conformance` makes of this walk', () => {
  expect(record.missing).toEqual([]);
  const { submits: submitTable, queries: queryTable, proxy } = tables(record);
  process.stdout.write(`\n${[submitTable, queryTable, proxy].join('\n\n')}\n`);
  const page = conformancePage(record);
  const file = new URL('../../docs/reference/conformance.md', import.meta.url);
  if (process.env['CONFORMANCE_PAGE'] === 'write') writeFileSync(file, page);
  expect(readFileSync(file, 'utf8')).toBe(page);
});
