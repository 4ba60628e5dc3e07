import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { tellFlushed } from '../files/flushed.js';
import { TypingUser } from './typed.js';

let coordinator: TestCoordinator;
let user: TypingUser;

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'profiles', at: new Date() });
});

afterAll(() => coordinator.close());

beforeEach(async () => {
  user = await TypingUser.sitDown();
  await mkdir(user.path('data'));
  await writeFile(user.path('data', 'root.json'), JSON.stringify({ ...coordinator.root, apiUrl: coordinator.url }));
});

afterEach(() => user.leaves());

const fileOf = (name: string): string => user.path('.config', 'countersign', 'profiles', `${name}.json`);
const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;

/** Every API key of the root user that is registered. */
async function registeredKeys(): Promise<readonly string[]> {
  const { apiKeys } = await coordinator.client.query<{ apiKeys: { credential: { publicKey: string } }[] }>(
    'get_api_keys',
    {
      userId: coordinator.root.userId,
    },
  );
  return apiKeys.map(({ credential }) => credential.publicKey);
}

test('login creates a key, registers it, and prints neither private key', async () => {
  const { code, out, error } = await user.types(['login', '--data-dir', 'data']);
  expect({ code, error }).toEqual({ code: 0, error: '' });
  expect(out).toMatch(
    /^Logged in to http:\S+ as Root user of Root organization\.\nA new API key was registered: [0-9a-f]{66}\n/,
  );
  const kept = JSON.parse(await readFile(fileOf('default'), 'utf8')) as Record<string, string>;
  expect(Object.keys(kept).toSorted()).toEqual(
    ['address', 'apiKeyId', 'curve', 'organizationId', 'privateKey', 'publicKey', 'userId'].toSorted(),
  );
  expect(kept['privateKey']).not.toBe(coordinator.root.apiPrivateKey);
  expect(await registeredKeys()).toContain(kept['publicKey']);

  const said = [out, (await user.types(['profiles'])).out, (await user.types(['profiles', '--json'])).out];
  said.push((await user.types(['whoami'])).out, (await user.types(['whoami', '--json'])).out);
  for (const text of said) {
    expect(text).not.toContain(kept['privateKey']);
    expect(text).not.toContain(coordinator.root.apiPrivateKey);
  }
  expect(said.at(-2)).toMatch(/^User {10}Root user \(/);

  const gone = await user.json(['logout', '--yes']);
  expect(gone).toEqual({ profile: 'default', removed: true, keyDeleted: true });
  expect(await registeredKeys()).not.toContain(kept['publicKey']);
  expect(await user.types(['whoami'])).toEqual({
    code: 2,
    out: '',
    error: 'error: no profile is named `default` (there are none yet): create it with countersign login\n',
  });
});

test('a profile is on the disk before it has its name, and then the name', async () => {
  await user.json(['login', '--data-dir', 'data']);
  const flushed: string[] = [];
  await tellFlushed(
    user.path('.config', 'countersign', 'profiles'),
    (one) => flushed.push(one),
    () => user.json(['login', '--data-dir', 'data', '--yes']),
  );
  expect(flushed).toEqual(['default.json.new', 'folder with default.json']);
});

test('only its user may read a profile, and one that others can read is not used', async () => {
  await user.json(['login', '--data-dir', 'data']);
  await user.json(['login', '--data-dir', 'data', '--yes']);
  const folder = user.path('.config', 'countersign');
  expect(
    await Promise.all([folder, user.path('.config', 'countersign', 'profiles'), fileOf('default')].map(modeOf)),
  ).toEqual([0o700, 0o700, 0o600]);
  // Nothing is left of how they were written.
  expect((await readdir(folder, { recursive: true })).toSorted()).toEqual([
    'current',
    'profiles',
    'profiles/default.json',
  ]);
  await chmod(fileOf('default'), 0o640);
  expect(await user.types(['whoami'])).toEqual({
    code: 2,
    out: '',
    error: `error: ${fileOf('default')} contains a private key, and others can read it: run chmod 600 ${fileOf('default')}\n`,
  });
  await chmod(fileOf('default'), 0o600);
  const before = JSON.parse(await readFile(fileOf('default'), 'utf8')) as Record<string, string>;
  for (const [text, words] of [
    ['not json at all', /is not a profile that this version can read/],
    [JSON.stringify({ ...before, privateKey: undefined }), /is not a profile that this version can read/],
    [JSON.stringify({ ...before, publicKey: coordinator.root.apiPublicKey }), /its two keys do not match/],
  ] as const) {
    await writeFile(fileOf('default'), text);
    const { code, error } = await user.types(['whoami']);
    expect({ code, error }).toEqual({ code: 2, error: expect.stringMatching(words) as string });
    expect(error).not.toContain(before['privateKey']);
  }
  await user.json(['login', '--profile', 'good', '--data-dir', 'data']);
  const { out } = await user.types(['profiles']);
  expect(out).toMatch(/\n\* good +http:[^\n]+\n/);
  expect(out).toMatch(/\n {2}default +cannot be used\n/);
  expect(out).toMatch(/\n\S+default\.json: its two keys do not match; log in again\n$/);
  const { profiles } = await user.json<{ profiles: object[] }>(['profiles']);
  expect(profiles).toMatchObject([
    { name: 'default', problem: expect.stringMatching(/do not match/) as string },
    { name: 'good', isCurrent: true },
  ]);
  await rm(fileOf('good'));
});

describe('a profile that cannot be written', () => {
  beforeEach(() => mkdir(fileOf('default'), { recursive: true }));

  const refusal = (rest: string) =>
    `error: ${fileOf('default')} cannot be written (EISDIR): make room, or allow this user to write there, and log in again${rest}\n`;

  test('leaves no key registered', async () => {
    const before = await registeredKeys();
    expect(await user.types(['login', '--data-dir', 'data', '--yes'])).toEqual({
      code: 1,
      out: '',
      error: refusal('; the key that was registered for it is deleted again'),
    });
    expect(await registeredKeys()).toEqual(before);
    const { activities } = await coordinator.client.query('list_activities', { paginationOptions: { limit: '2' } });
    expect(activities.map(({ type }) => type)).toEqual([
      'ACTIVITY_TYPE_DELETE_API_KEYS',
      'ACTIVITY_TYPE_CREATE_API_KEYS_V2',
    ]);
  });

  test('with a key that nobody is to register needs nothing else', async () => {
    const place = ['--address', coordinator.url, '--organization', coordinator.organizationId];
    expect(await user.types(['login', '--new-key', ...place, '--yes'])).toMatchObject({ code: 1, error: refusal('') });
  });

  test('says which key is left where the coordinator does not let it be deleted, or waits for votes', async () => {
    const { privateKey, publicKey } = coordinator.newKey();
    await coordinator.client.perform('ACTIVITY_TYPE_CREATE_USERS_V4', {
      users: [
        {
          userName: 'Ann',
          apiKeys: [{ apiKeyName: 'hers', publicKey, curveType: 'API_KEY_CURVE_P256' }],
          authenticators: [],
          oauthProviders: [],
          userTags: [],
        },
      ],
    });
    const policy = (policyName: string, effect: 'EFFECT_ALLOW' | 'EFFECT_DENY', kind: string, consensus: string) =>
      coordinator.client.perform('ACTIVITY_TYPE_CREATE_POLICY_V3', {
        policyName,
        effect,
        condition: `activity.kind == '${kind}'`,
        consensus,
        notes: '',
      });
    await writeFile(user.path('key'), privateKey);
    const place = ['--address', coordinator.url, '--organization', coordinator.organizationId];
    const logsIn = () => user.types(['login', '--key-file', 'key', ...place, '--yes']);

    await policy('keys stay', 'EFFECT_DENY', 'DELETE_API_KEYS', 'true');
    const left = await logsIn();
    expect(left.code).toBe(1);
    const key = /; the key ([0-9a-f]{66}) stays registered, and nobody has it, as deleting it failed: /.exec(
      left.error,
    );
    const registered = await coordinator.client.query('get_api_keys', {});
    expect(registered.apiKeys.map(({ credential }) => credential.publicKey)).toContain(key?.[1]);

    await policy('two for keys', 'EFFECT_ALLOW', 'CREATE_API_KEYS', 'approvers.count() >= 2');
    const waits = await logsIn();
    expect(waits.code).toBe(1);
    const fingerprint = /waits for approvals, and nobody has it: countersign reject (sha256:[0-9a-f]{64})\n$/.exec(
      waits.error,
    );
    const { activities } = await coordinator.client.query('list_activities', {
      filterByStatus: ['ACTIVITY_STATUS_CONSENSUS_NEEDED'],
    });
    expect(activities.map((activity) => activity.fingerprint)).toEqual([fingerprint?.[1]]);
  });
});

test('a key is read from a file or standard input, and no error shows any of it', async () => {
  const secret = coordinator.root.apiPrivateKey;
  const place = ['--address', coordinator.url, '--organization', coordinator.organizationId];
  const kept = await user.json(['login', '--key-file', '-', '--keep-key', ...place], { input: `${secret}\n` });
  expect(kept).toMatchObject({ publicKey: coordinator.root.apiPublicKey, username: 'Root user' });
  expect(JSON.stringify(kept)).not.toContain(secret);
  await writeFile(user.path('key.json'), JSON.stringify({ privateKey: secret }));
  await user.json(['login', '--profile', 'second', '--key-file', 'key.json', ...place]);
  expect((await user.types(['profiles'])).out).toMatch(/^ {2}PROFILE +ADDRESS .*\n {2}default .*\n\* second /);
  await user.json(['profiles', 'use', 'default']);
  expect((await user.json<{ publicKey: string }>(['whoami'])).publicKey).toBe(coordinator.root.apiPublicKey);
  const env = { COUNTERSIGN_PROFILE: 'second' };
  expect((await user.json<{ publicKey: string }>(['whoami'], { env })).publicKey).not.toBe(
    coordinator.root.apiPublicKey,
  );

  const half = secret.slice(0, 63);
  const bad = await user.types(['login', '--profile', 'third', '--key-file', '-', ...place], { input: half });
  expect(bad).toEqual({
    code: 2,
    out: '',
    error: expect.stringMatching(/standard input contains no P-256 private key/) as string,
  });
  expect(bad.error).not.toContain(half.slice(0, 8));
  await writeFile(user.path('key.json'), `{"privateKey": "${half}"`);
  const broken = await user.types(['login', '--profile', 'third', '--key-file', 'key.json', ...place]);
  expect(broken).toMatchObject({ code: 2, error: expect.stringMatching(/contains no P-256 private key/) as string });
  expect(broken.error).not.toContain(half.slice(0, 8));
});

test('a new user creates the key, and somebody else registers it', async () => {
  await user.json(['login', '--data-dir', 'data']);
  const place = ['--address', coordinator.url, '--organization', coordinator.organizationId];
  const asked = await user.types(['login', '--profile', 'alice', '--new-key', ...place]);
  const publicKey = /^Your public key is\n\n {2}([0-9a-f]{66})\n/.exec(asked.out)?.[1];
  expect(asked).toMatchObject({ code: 0, error: '' });
  expect(asked.out).toContain(`countersign users create <your name> --public-key ${publicKey}`);
  expect(await user.types(['whoami', '--profile', 'alice'])).toMatchObject({ code: 5, out: '' });
  await coordinator.client.perform('ACTIVITY_TYPE_CREATE_USERS_V4', {
    users: [
      {
        userName: 'Alice',
        apiKeys: [{ apiKeyName: 'hers', publicKey: publicKey!, curveType: 'API_KEY_CURVE_P256' }],
        authenticators: [],
        oauthProviders: [],
        userTags: [],
      },
    ],
  });
  expect(await user.json(['whoami', '--profile', 'alice'])).toMatchObject({ username: 'Alice' });
});

test('an e-mailed code makes the key a session key', async () => {
  const { subOrganizationId, rootUserIds } = await coordinator.client.perform(
    'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8',
    {
      subOrganizationName: 'Of Dana',
      rootUsers: [
        { userName: 'Dana', userEmail: 'dana@example.com', apiKeys: [], authenticators: [], oauthProviders: [] },
      ],
      rootQuorumThreshold: 1,
    },
  );
  const { authProxyConfigId } = coordinator.root;
  const words = [
    'login',
    '--email',
    'dana@example.com',
    '--address',
    coordinator.url,
    '--organization',
    subOrganizationId,
  ];
  const reply = async (): Promise<string> => {
    await coordinator.settled();
    const { text } = coordinator.messages().at(-1)!;
    return /(?:^|\s)([0-9A-Z]{6,9})(?:\s|$)/.exec(text)![1]!;
  };
  const { code, out, error } = await user.types([...words, '--auth-proxy-config', authProxyConfigId], { reply });
  expect({ code, error }).toEqual({ code: 0, error: 'Code sent to dana@example.com: ' });
  expect(out).toMatch(/^Logged in to http:\S+ as Dana of Of Dana, until 2/);
  expect(await user.json(['whoami'])).toMatchObject({ userId: rootUserIds?.[0], username: 'Dana' });
});

test('invalid input is refused with what to type instead, and nothing is replaced silently', async () => {
  await user.json(['login', '--data-dir', 'data']);
  const before = await readFile(fileOf('default'), 'utf8');
  for (const [words, line] of [
    [
      ['login', '--data-dir', 'data'],
      /^Replace the profile `default`, and the key in it\? \[y\/N\] \nerror: not confirmed: add --yes/,
    ],
    [['login', '--data-dir', 'data', '--new-key'], /^error: --new-key and --data-dir: choose one way/],
    [['login', '--profile', '../x', '--new-key'], /^error: `\.\.\/x` cannot be the name of a profile/],
    [
      ['login', '--profile', 'x', '--new-key', '--address', 'ftp://x', '--organization', 'y'],
      /^error: --address ftp:\/\/x: must be a URL/,
    ],
    [['login', '--profile', 'x', '--key-file', 'none'], /^error: \S+none cannot be read/],
    [
      ['login', '--profile', 'x', '--email', 'x@y', '--address', 'http://x', '--organization', 'y'],
      /^error: add --auth-proxy-config/,
    ],
    [['profiles', 'use', 'nobody'], /^error: no profile is named `nobody` \(existing ones: default\)/],
    [['logout'], /^Remove the profile `default` .*\nerror: not confirmed/],
    [['login', '--kep-key'], /^error: unknown option '--kep-key'\n\(Did you mean --keep-key\?\)/],
  ] as const) {
    const { code, out, error } = await user.types(words);
    expect({ words, code, out, error }).toEqual({
      words,
      code: 2,
      out: '',
      error: expect.stringMatching(line) as string,
    });
  }
  expect(await user.types(['logout'], { input: 'n\n' })).toMatchObject({ code: 0, out: 'Nothing was changed.\n' });
  expect(await readFile(fileOf('default'), 'utf8')).toBe(before);
});

test('a missing server, or one of another kind, is not mistaken for a refusal', async () => {
  const place = ['--organization', coordinator.organizationId, '--key-file', 'data/root.json'];
  const gone = await user.types(['login', '--address', 'http://127.0.0.1:9', ...place]);
  expect(gone).toMatchObject({
    code: 6,
    out: '',
    error: expect.stringMatching(/^error: .*is it running\?\n$/) as string,
  });
  const other = await user.types(['login', '--address', `${coordinator.url}/docs`, ...place]);
  expect(other).toMatchObject({ out: '' });
  expect(other.code).toBe(5);
});

test('login with a new key says where to find what it does not know of the coordinator', async () => {
  const newcomer = await TypingUser.sitDown();
  try {
    expect(await newcomer.types(['login', '--new-key'])).toMatchObject({
      code: 2,
      error: expect.stringMatching(
        /add --address, its URL, such as http:\/\/.*`countersign start` prints it/,
      ) as string,
    });
    expect(await newcomer.types(['login', '--new-key', '--address', 'http://127.0.0.1:8080'])).toMatchObject({
      code: 2,
      error: expect.stringMatching(/add --organization, its id \(`organizationId` in root\.json/) as string,
    });
  } finally {
    await newcomer.leaves();
  }
});
