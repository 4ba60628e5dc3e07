import { Writable } from 'node:stream';
import {
  ApiError,
  SeededRandomness,
  send,
  startCoordinator,
  submitPath,
  type StampingClient,
  type TestCoordinator,
} from '../../src/testing/index.js';
import { clientSecret } from '../e2e/identity-provider.js';
import { deviations } from '../docs/event-validator.js';
import { registry } from '../e2e/routes.js';
import { furnish, identities, querySamples, sampleSettings, submitSamples, type Furnished } from '../e2e/samples.js';
import { findIn } from '../e2e/secrets.js';
import { Exports, verifiedOf } from '../history/exported.js';
import { until } from '../e2e/until.js';
import { WebhookReceiver } from '../e2e/webhook-receiver.js';

// Every activity is submitted, by who may and by who may not, with secrets that the test sees as they go out and come in.
// Then all who may read read all there is to read: a member whom no policy names, by a key and by a session that only reads,
// and the user of a sub-organization. Beside it there are webhooks, the log, and mail to others. None of it holds anything
// that still proves something (R3).

/** What must not be read, by what it is and where it came from. */
const secrets = new Map<string, string>();
/** Types whose sample was done. */
const done = new Set<string>();
const worlds: TestCoordinator[] = [];
/** Messages of each world that its furnishing has answered. */
const answered: number[] = [];
let logged = '';
const log = new Writable({
  write(chunk: Buffer, _encoding, next) {
    logged += String(chunk);
    next();
  },
});

let receiver: WebhookReceiver;
beforeAll(async () => {
  receiver = await WebhookReceiver.start();
});
afterAll(async () => {
  await Promise.all(worlds.map((world) => world.close()));
  await receiver.close();
});

interface SweptWorld {
  readonly coordinator: TestCoordinator;
  readonly furnished: Furnished;
  readonly reader: StampingClient;
  /** Ids of activities that the webhook is to be told of. */
  readonly told: string[];
}

async function newWorld(): Promise<SweptWorld> {
  const settings = {
    ...sampleSettings,
    PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
    PROXY_RATE_LIMIT_PER_CONTACT: '0',
  };
  const seed = `sweep ${worlds.length}`;
  const coordinator = await startCoordinator({ seed, settings, logLevel: 'debug', log });
  worlds.push(coordinator);
  const { client: reader } = await coordinator.createUser('Reader');
  const furnished = await furnish(coordinator);
  answered.push(coordinator.messages().length);
  await coordinator.client.submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
    url: `${receiver.url}/told`,
    name: 'told',
    subscriptions: [{ eventType: 'ACTIVITY_UPDATES', isActive: true }],
  });
  plant('the key-encryption key', new SeededRandomness(`kek of ${seed}`).bytes(32));
  plant('the root user’s key', Buffer.from(coordinator.client.key.privateKey, 'hex'));
  plant('a member’s key', Buffer.from(reader.key.privateKey, 'hex'));
  return { coordinator, furnished, reader, told: [] };
}

/** What nobody but its owner may ever read, in any form. */
const planted = new Map<string, Uint8Array>([
  ['an imported private key', Buffer.alloc(32, 1)],
  ['the secret of an OAuth 2.0 application', Buffer.from(clientSecret)],
]);
const mnemonics = ['test test test test test test test test test test test junk'];
const plant = (what: string, secret: Uint8Array) => planted.set(`${what} ${planted.size}`, secret);

/** Signatures of tokens, proofs of sessions and codes, wherever they stand in a request or an answer. */
function know(what: string, value: unknown, name = ''): void {
  if (typeof value === 'string') {
    const token = /^[\w-]+\.[\w-]+\.([\w-]{40,})$/.exec(value)?.[1];
    // A session token says who somebody is and proves nothing: requests are stamped with the key in it.
    if (token !== undefined && name !== 'session') secrets.set(`token in ${what}`, token);
    const proof = name === 'session' ? /^[\w-]+\.([\w-]{43})$/.exec(value)?.[1] : undefined;
    if (proof !== undefined) secrets.set(`session of ${what}`, proof);
  } else if (typeof value === 'object' && value !== null) {
    for (const [member, inside] of Object.entries(value)) know(what, inside, member);
  }
}

/** Sends a body, and knows the secrets in it and in what it is answered with. */
async function submit(
  client: StampingClient,
  type: string,
  parameters: object,
  what: string,
  told: string[],
): Promise<number> {
  const body = client.submitBody(type, parameters, { generateAppProofs: true });
  know(`the request of ${what}`, parameters);
  for (const sealed of sealedIn(parameters)) secrets.set(`sealed ${secrets.size} in ${what}`, sealed);
  try {
    const { body: answer } = await client.post<{ activity: { id: string; result: object; status: string } }>(
      submitPath(type),
      body,
    );
    know(`the result of ${what}`, answer.activity.result);
    told.push(answer.activity.id);
    return 200;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    for (const code of codesIn(parameters)) secrets.set(`code in ${what}`, code);
    return error.status;
  }
}

/** What somebody was sent, by us or by an OAuth 2.0 provider. */
function codesIn(parameters: object): readonly string[] {
  const { otpCode, authCode, codeVerifier } = parameters as Readonly<Record<string, string | undefined>>;
  return [otpCode, authCode, codeVerifier].filter((code) => code !== undefined);
}

/** What is sealed to the installation, which would open it for any organization. */
function sealedIn(parameters: object): readonly string[] {
  const { encryptedClientSecret, encryptedSecretApiKey, encryptedPrivateApiKey } = parameters as Readonly<
    Record<string, string | undefined>
  >;
  return [encryptedClientSecret, encryptedSecretApiKey, encryptedPrivateApiKey].filter((one) => one !== undefined);
}

/** A session of one's own and an invitation to oneself: nobody is denied them. */
const undenied = ['stamp_login', 'create_read_write_session', 'create_read_only_session', 'accept_invitation'];

/** All that the reader reads. */
async function readAll(world: SweptWorld): Promise<Readonly<Record<string, string>>> {
  const { coordinator, furnished, reader } = world;
  const { result } = await reader.submit('ACTIVITY_TYPE_CREATE_READ_ONLY_SESSION', {});
  const { session } = Object.values(result)[0] as { session: string };
  know('its own session', { session });
  const home = [coordinator.organizationId, furnished.child.organizationId];
  const bySession: Ask = async (path, request) => {
    const body = JSON.stringify({ organizationId: coordinator.organizationId, ...request });
    const url = `${coordinator.url}/public/v1/query/${path}`;
    return (await send<Record<string, unknown>>(url, body, { 'x-session': session })).body;
  };
  return {
    'a member by a key': await readBy((path, request) => reader.query(path, request), home, furnished),
    'a member by a session': await readBy(bySession, home.slice(0, 1), furnished, 5),
    'a sub-organization': await readBy(
      (path, request) => furnished.child.query(path, request),
      home.slice(1),
      furnished,
    ),
  };
}

type Ask = (path: string, request: object) => Promise<Record<string, unknown>>;

/** What somebody reads who may ask so, in those organizations; the events of every activity, or of every so many. */
async function readBy(
  query: Ask,
  organizationIds: readonly string[],
  furnished: Furnished,
  every = 1,
): Promise<string> {
  const parts: unknown[] = [];
  const ask: Ask = async (path, request) => {
    const answer = await query(path, request).catch((error: unknown) => {
      if (error instanceof ApiError) return { ...error.body };
      throw error;
    });
    parts.push(answer);
    return answer;
  };
  for (const [path, request] of Object.entries(querySamples(furnished))) await ask(path, request);
  for (const organizationId of organizationIds) {
    for (let after: string | undefined = undefined, more = true; more;) {
      const paginationOptions = { limit: '100', ...(after === undefined ? {} : { after }) };
      const { activities = [] } = (await ask('list_activities', { organizationId, paginationOptions })) as {
        activities?: { id: string }[];
      };
      for (const { id: activityId } of activities.filter((_, index) => index % every === 0)) {
        await ask('list_activity_events', { organizationId, activityId });
        await ask('list_app_proofs', { organizationId, activityId });
      }
      after = activities.at(-1)?.id;
      more = activities.length === 100;
    }
    await ask('list_denials', { organizationId, paginationOptions: { limit: '100' } });
  }
  return JSON.stringify(parts);
}

test('nothing that a member reads, and no log line, holds a secret that still proves something', async () => {
  let world = await newWorld();
  const read: Record<string, string> = {};
  const readWorld = async () => {
    await until('the webhook is told', () => {
      const bodies = receiver.at('/told').map(({ body }) => body);
      return world.told.every((id) => bodies.some((body) => body.includes(id)));
    });
    for (const [who, text] of Object.entries(await readAll(world))) read[who] = `${read[who] ?? ''}\n${text}`;
  };
  for (const [name, versions] of registry.paths) {
    const { type } = versions[0]!;
    const attempt = async () => {
      const { coordinator, furnished, reader, told } = world;
      const { alice, invited, child } = furnished;
      const samples: Readonly<Record<string, object>> = submitSamples(furnished);
      const who: Readonly<Record<string, StampingClient>> = {
        approve_activity: alice.client,
        reject_activity: alice.client,
        accept_invitation: invited.client,
        delete_sub_organization: child,
        release_contact: coordinator.clientFor(coordinator.client.key, child.organizationId),
      };
      if (!who[name] && !undenied.includes(name)) {
        await submit(reader, type, samples[type]!, `${name}, denied`, told);
        // It could be done once more, by whoever has the code; it is used up below.
        const denials = JSON.stringify(await reader.query('list_denials'));
        const shown = codesIn(samples[type]!).filter((code) => denials.includes(code));
        expect([name, shown]).toEqual([name, []]);
      }
      return submit(who[name] ?? coordinator.client, type, samples[type]!, name, told);
    };
    if ((await attempt()) !== 200) {
      await readWorld();
      world = await newWorld();
      if ((await attempt()) !== 200) continue;
    }
    done.add(name);
  }
  await readWorld();

  expect([...registry.paths.keys()].filter((name) => !done.has(name))).toEqual(['remove_organization_feature']);
  const kinds = new Set([...secrets.keys()].map((key) => key.split(' ')[0]));
  expect([...kinds].sort()).toEqual(['code', 'sealed', 'session', 'token']);
  const webhooks = receiver.at('/told').map(({ body }) => JSON.stringify(JSON.parse(body)));
  const messages = worlds.flatMap((one) => one.messages());
  const events = (await Promise.all(worlds.map((one) => one.recorded()))).flat();
  // What every verb records is as its schema says (docs/reference/events.schema.json).
  expect([...new Set(events.flatMap(deviations))]).toEqual([]);
  const recorded = JSON.stringify(events.map(({ data }) => data));
  const places: Record<string, string> = { ...read, webhooks: webhooks.join('\n'), log: logged };
  const lengths = Object.entries(places).map(([place, text]) => [place, text.length] as const);
  const sizes = lengths.map(([place, length]) => `${place} ${Math.round(length / 1_000)} kB`);
  process.stdout.write(
    `No secret in history: ${done.size} verbs, ${secrets.size} tokens, sessions, codes and sealed secrets, ${messages.length} messages; ` +
      `${sizes.join(', ')}, recorded ${Math.round(recorded.length / 1_000)} kB\n`,
  );
  expect(read['a member by a key']!.length).toBeGreaterThan(500_000);
  for (const [place, length] of lengths) expect([place, length > 10_000]).toEqual([place, true]);
  // Live tokens are there without what proves them.
  for (const place of ['a member by a key', 'a member by a session', 'webhooks']) {
    expect([place, places[place]!.includes('"redacted":true')]).toEqual([place, true]);
  }
  // A code that was used by then is history, as the events are; a log holds none.
  const found = Object.entries(places).flatMap(([place, text]) =>
    [...secrets]
      .filter(
        ([what, secret]) => (place === 'log' ? secret.length > 9 : !what.startsWith('code')) && text.includes(secret),
      )
      .map(([what]) => `${what}, in ${place}`),
  );
  expect(found).toEqual([]);
  const bearer = [...secrets].filter(([what, secret]) => /result|session/.test(what) && recorded.includes(secret));
  expect(bearer.map(([what]) => what)).toEqual([]);

  // What is mailed is for its recipient: a code that nobody has sent back, and the key of an invitation.
  const used = new Set([...secrets].filter(([what]) => what.startsWith('code')).map(([, code]) => code));
  const codes = worlds
    .flatMap((one, index) => one.messages().slice(answered[index]))
    .flatMap(({ text }) => /^\s*([0-9A-Z]{6,9})(?=\s*$| is your code)/m.exec(text)?.[1] ?? []);
  const unused = codes.filter((code) => !used.has(code));
  expect(unused.length).toBeGreaterThan(0);
  // An export holds no more than those who read, and goes on in a test as it was.
  const files = await Exports.open();
  for (const [index, one] of worlds.entries()) {
    const whole = await files.of(one, one.organizationId);
    places[`export ${index}`] = whole.text;
    const live = [...secrets].filter(([what, secret]) => !what.startsWith('code') && whole.text.includes(secret));
    expect(live.map(([what]) => what)).toEqual([]);
    const redacted = await files.of(one, one.organizationId, { redact: true });
    expect(redacted).toMatchObject({ otherwise: [], unknownMembers: [] });
    for (const { file } of [whole, redacted]) {
      await using again = await startCoordinator({ history: file });
      expect((await verifiedOf(again)).findings).toEqual([]);
    }
  }
  await files.close();
  const everywhere = { ...places, recorded };
  const told = Object.entries(everywhere).flatMap(([place, text]) =>
    unused.filter((code) => text.includes(`"${code}"`)).map((code) => `code ${code}, in ${place}`),
  );
  expect(told).toEqual([]);
  for (const { text } of messages) {
    const privateKey = /privateKey=([0-9a-f]{64})/.exec(text)?.[1];
    if (privateKey !== undefined) plant('the key of an invitation', Buffer.from(privateKey, 'hex'));
    expect([...secrets].filter(([what, secret]) => !what.startsWith('code') && text.includes(secret))).toEqual([]);
  }
  for (const token of identities.tokens) plant('an access token', Buffer.from(token));
  expect([...planted.keys()].filter((what) => what.startsWith('the key of an invitation')).length).toBeGreaterThan(1);
  const written = Object.entries(everywhere).map(([place, text]) => ({ place, content: Buffer.from(text) }));
  expect(findIn(written, planted, mnemonics)).toEqual([]);
  // A secret is found in whichever of these places it stands.
  const leak = new Map([['a leak', new SeededRandomness('leak').bytes(32)]]);
  const leaking = written.map(({ place, content }) => ({
    place,
    content: Buffer.concat([content, Buffer.from(Buffer.from(leak.get('a leak')!).toString('hex'))]),
  }));
  expect(findIn(leaking, leak, [])).toEqual(written.map(({ place }) => `a leak as hex in ${place}`));
  // What everybody may read is found where they read it: the places are not empty of what was recorded.
  const shown = new Map([['a public key', Buffer.from(world.reader.key.publicKey)]]);
  expect(findIn(written, shown, [])).toEqual(
    expect.arrayContaining(['a public key as it is in a member by a key', 'a public key as it is in recorded']),
  );
}, 240_000);
