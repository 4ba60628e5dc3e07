import { Writable } from 'node:stream';
import {
  ApiError,
  startCoordinator,
  submitPath,
  type StampingClient,
  type TestCoordinator,
} from '../../src/testing/index.js';
import { registry } from '../e2e/routes.js';
import { furnish, querySamples, sampleSettings, submitSamples, type Furnished } from '../e2e/samples.js';

// Every activity is submitted, by who may and by who may not, with secrets that the test sees as they go out and come in.
// Then a member whom no policy names reads all there is to read, and finds none that still proves something (R3).

/** What must not be read, by what it is and where it came from. */
const secrets = new Map<string, string>();
/** Types whose sample was done. */
const done = new Set<string>();
const worlds: TestCoordinator[] = [];
let logged = '';
const log = new Writable({
  write(chunk: Buffer, _encoding, next) {
    logged += String(chunk);
    next();
  },
});

afterAll(() => Promise.all(worlds.map((world) => world.close())));

async function newWorld(): Promise<{ coordinator: TestCoordinator; furnished: Furnished; reader: StampingClient }> {
  const settings = { ...sampleSettings, PROXY_RATE_LIMIT_PER_CONTACT: '0' };
  const coordinator = await startCoordinator({ seed: `sweep ${worlds.length}`, settings, logLevel: 'debug', log });
  worlds.push(coordinator);
  const { client: reader } = await coordinator.createUser('Reader');
  return { coordinator, furnished: await furnish(coordinator), reader };
}

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
async function submit(client: StampingClient, type: string, parameters: object, what: string): Promise<number> {
  const body = client.submitBody(type, parameters);
  know(`the request of ${what}`, parameters);
  try {
    const { body: answer } = await client.post<{ activity: { result: object; status: string } }>(
      submitPath(type),
      body,
    );
    know(`the result of ${what}`, answer.activity.result);
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

/** A session of one's own and an invitation to oneself: nobody is denied them. */
const undenied = ['stamp_login', 'create_read_write_session', 'create_read_only_session', 'accept_invitation'];

/** All that the reader reads. */
async function readAll({ coordinator, furnished, reader }: Awaited<ReturnType<typeof newWorld>>): Promise<string> {
  const parts: unknown[] = [];
  const ask = async (path: string, request: object) => {
    const answer = await reader.query<Record<string, unknown>>(path, request).catch((error: unknown) => {
      if (error instanceof ApiError) return error.body;
      throw error;
    });
    parts.push(answer);
    return answer as Record<string, unknown>;
  };
  for (const [path, request] of Object.entries(querySamples(furnished))) await ask(path, request);
  for (const organizationId of [coordinator.organizationId, furnished.child.organizationId]) {
    for (let after: string | undefined = undefined, more = true; more;) {
      const paginationOptions = { limit: '100', ...(after === undefined ? {} : { after }) };
      const { activities = [] } = (await ask('list_activities', { organizationId, paginationOptions })) as {
        activities?: { id: string }[];
      };
      for (const { id: activityId } of activities) {
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
  const read: string[] = [];
  for (const [name, versions] of registry.paths) {
    const { type } = versions[0]!;
    const attempt = async () => {
      const { coordinator, furnished, reader } = world;
      const { alice, invited, child } = furnished;
      const samples: Readonly<Record<string, object>> = submitSamples(furnished);
      const who: Readonly<Record<string, StampingClient>> = {
        approve_activity: alice.client,
        reject_activity: alice.client,
        accept_invitation: invited.client,
        delete_sub_organization: child,
      };
      if (!who[name] && !undenied.includes(name)) {
        await submit(reader, type, samples[type]!, `${name}, denied`);
        // It could be done once more, by whoever has the code; it is used up below.
        const denials = JSON.stringify(await reader.query('list_denials'));
        const shown = codesIn(samples[type]!).filter((code) => denials.includes(code));
        expect([name, shown]).toEqual([name, []]);
      }
      return submit(who[name] ?? coordinator.client, type, samples[type]!, name);
    };
    if ((await attempt()) !== 200) {
      read.push(await readAll(world));
      world = await newWorld();
      if ((await attempt()) !== 200) continue;
    }
    done.add(name);
  }
  read.push(await readAll(world));

  expect([...registry.paths.keys()].filter((name) => !done.has(name))).toEqual(['remove_organization_feature']);
  const kinds = new Set([...secrets.keys()].map((key) => key.split(' ')[0]));
  expect([...kinds].sort()).toEqual(['code', 'session', 'token']);
  const everything = read.join('\n');
  expect(everything.length).toBeGreaterThan(500_000);
  // Live tokens are there without what proves them.
  expect(everything).toContain('"redacted":true');
  // A code that was used by then is history, as the events are.
  const found = [...secrets].filter(([what, secret]) => !what.startsWith('code') && everything.includes(secret));
  expect(found.map(([what]) => what)).toEqual([]);
  expect([...secrets].filter(([, secret]) => secret.length > 9 && logged.includes(secret))).toEqual([]);
  expect(logged.length).toBeGreaterThan(1_000);
  const recorded = JSON.stringify((await worlds[0]!.events()).map(({ data }) => data));
  const bearer = [...secrets].filter(([what, secret]) => /result|session/.test(what) && recorded.includes(secret));
  expect(bearer.map(([what]) => what)).toEqual([]);
}, 120_000);
