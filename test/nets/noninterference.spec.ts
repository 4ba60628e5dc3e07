import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect, type Socket } from 'node:net';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toFunctionSelector, type AbiFunction } from 'viem';
import { base58 } from '@scure/base';
import { encryptOauth2ClientSecret, encryptOnRampSecret } from '@turnkey/crypto';
import { p256 } from '@noble/curves/nist.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import fc from 'fast-check';
import { flagsFor } from '../../src/cli/start/memory.js';
import type { StampingClient } from '../../src/client/stamping-client.js';
import { generateApiKeyPair, SeededRandomness, submitPath, type ApiKeyPair } from '../../src/testing/index.js';
import { stampBody } from '../../src/stamps/sign.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { Installation, type Run } from '../e2e/installation.js';
import { exchange } from '../e2e/exchange.js';
import { sealedTo } from '../e2e/samples.js';
import {
  doublingTypes,
  emptyPermissions,
  emptyStructs,
  keysOfPsbt,
  longAccountNames,
  longCondition,
  manyEmpties,
  manyMembers,
  nestedStructs,
  previousOutputs,
  repeatedInstruction,
  sharedOffsets,
  typedName,
} from './costly-shapes.js';
import { isLong } from '../long.js';

/**
 * What a tenant does costs others little: a victim goes about its business while a stranger, who has what a public sign-up
 * gives, and a member without any right send whatever is known or drawn to be costly. The coordinator is a process of its own,
 * which says itself how long its thread was not given back.
 */

/** How long requests are drawn for after the corpus, in milliseconds. */
const drawnMs = isLong ? 60 * 60_000 : 5_000;
/** Which round of drawn requests is the first: one that was found to be slow may be run again alone, as ROUND=1234. */
const firstRound = Number(process.env['ROUND'] ?? 0);
/**
 * Longest time that the main thread may be kept, in milliseconds of its own: what the system gives to others meanwhile does not
 * count. On a machine that is slower than the one of bench/README.md, as much longer as it is slower.
 */
const longestMs = 100 * slowness();
/** Steps that no decision and no page of rights may take: twice what a request has. */
const mostSteps = 1_000_000;
const heap = 512;
/** Most memory of the process, in MiB: its heap, and as much again for bodies, caches and threads. */
const mostMemory = 1_100;
/** How often what kept the thread too long is run again: the median of three counts, as a collection of garbage is nobody's. */
const repetitions = 2;
/** Part of what is drawn that is more than refused for its form. */
const leastWellFormed = 0.6;

/**
 * How much slower than the machine of bench/README.md this one is now; 1 if it is not. Hashing says how fast it computes, a text
 * of some megabytes how fast its memory is: machines that hash as fast as that one take more than twice as long for large bodies. At most two and a half times.
 */
function slowness(): number {
  const bytes = new Uint8Array(2 ** 20);
  const text = '"a\\"é'.repeat(500_000);
  const hashing = leastMs(() => keccak_256(bytes)) / 25;
  const reading = leastMs(() => JSON.parse(JSON.stringify({ text, copy: Buffer.from(text).toString() }))) / 45;
  return Math.min(2.5, Math.max(1, hashing, reading));
}

/** The least processor time of several runs, in milliseconds. */
function leastMs(work: () => unknown): number {
  const times = Array.from({ length: 6 }, () => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...times);
}

interface Caller {
  readonly key: ApiKeyPair;
  readonly organizationId: string;
  readonly address: string;
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

let installation: Installation;
let server: Run & { readonly url: string };
let slow: Server;
let slowUrl: string;
let tellable: Server;
let toldUrl: string;
/** What has been told to endpoints that answer at once. */
const told = { bytes: 0 };
let configId: string;
let rootUserId: string;
let root: StampingClient;
let member: Caller;
let strangers: (Caller & { readonly userId: string })[];
/** Secrets for providers, sealed: as short as they usually are, and as long as they may be. */
let oauthSecrets: { readonly short: string; readonly long: string };
let onRampKey: string;
let own: Awaited<ReturnType<typeof accountsOf>>;
let parents: typeof own;
const randomness = new SeededRandomness('noninterference');
const newKey = () => generateApiKeyPair((count) => randomness.bytes(count));
const agentKey = (key: ApiKeyPair) => ({
  apiKeyName: 'key',
  publicKey: key.publicKey,
  curveType: 'API_KEY_CURVE_P256',
});
let lastTimestamp = Date.now();

async function post(path: string, body: string, headers: Readonly<Record<string, string>>): Promise<Answer> {
  const response = await fetch(`${server.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  return { status: response.status, text: await response.text() };
}

function stamped({ key, address }: Caller, path: string, body: string): Promise<Answer> {
  const { headerName, headerValue } = stampBody(body, key);
  return post(path, body, { [headerName]: headerValue, 'x-forwarded-for': address });
}

function submit(caller: Caller, type: string, parameters: object | string): Promise<Answer> {
  lastTimestamp = Math.max(Date.now(), lastTimestamp + 1);
  const rest = JSON.stringify({ type, timestampMs: String(lastTimestamp), organizationId: caller.organizationId });
  const text = typeof parameters === 'string' ? parameters : JSON.stringify(parameters);
  return stamped(caller, submitPath(type), `${rest.slice(0, -1)},"parameters":${text}}`);
}

const query = (caller: Caller, path: string, request: object = {}) =>
  stamped(caller, `/public/v1/query/${path}`, JSON.stringify({ organizationId: caller.organizationId, ...request }));

const proxy = (path: string, body: string | object, address = '203.0.113.99') =>
  post(`/v1/${path}`, typeof body === 'string' ? body : JSON.stringify(body), {
    'x-auth-proxy-config-id': configId,
    'x-forwarded-for': address,
  });

/** Somebody whom nobody knows. */
async function signUp(address: string): Promise<Caller & { readonly userId: string }> {
  const key = newKey();
  const { text } = await proxy('signup', { userName: 'Stranger', apiKeys: [agentKey(key)] }, address);
  const { organizationId, userId } = JSON.parse(text) as { organizationId: string; userId: string };
  return { key, organizationId, userId, address };
}

const resultOf = <Result>({ text, status }: Answer): Result => {
  if (status !== 200) throw new Error(text.slice(0, 500));
  const { activity } = JSON.parse(text) as { activity: { result: object } };
  return Object.values(activity.result)[0] as Result;
};

async function accountsOf(owner: Caller) {
  const account = (curve: string, addressFormat: string, coin: number) => ({
    curve,
    pathFormat: 'PATH_FORMAT_BIP32',
    path: curve === 'CURVE_ED25519' ? `m/44'/${coin}'/0'` : `m/44'/${coin}'/0'/0/0`,
    addressFormat,
  });
  const { addresses } = resultOf<{ addresses: [string, string, string, string] }>(
    await submit(owner, 'ACTIVITY_TYPE_CREATE_WALLET', {
      walletName: `wallet ${lastTimestamp}`,
      accounts: [
        account('CURVE_SECP256K1', 'ADDRESS_FORMAT_ETHEREUM', 60),
        account('CURVE_SECP256K1', 'ADDRESS_FORMAT_BITCOIN_MAINNET_P2WPKH', 0),
        account('CURVE_SECP256K1', 'ADDRESS_FORMAT_TRON', 195),
        account('CURVE_ED25519', 'ADDRESS_FORMAT_SOLANA', 501),
      ],
    }),
  );
  const [ethereum, bitcoin, tron, solana] = addresses;
  return { ethereum, bitcoin, tron, solana };
}

interface Measured {
  /** How long its main thread was kept at most since it was asked last, in ms of its own. */
  readonly delayMs: number;
  /** What the collection of garbage took of that, by the clock on the wall. */
  readonly collectingMs: number;
  /** In MiB. */
  readonly memory: number;
  /** Decisions and pages of rights of more than `mostSteps`, since its start. */
  readonly tooManySteps: number;
  /** Of all decisions and pages of rights since its start. */
  readonly steps: number;
}

let asked = 0;

/** How the process says that it is. */
async function measured(): Promise<Measured> {
  asked += 1;
  server.child.kill('SIGUSR2');
  const ends = performance.now() + 30_000;
  let kept: { readonly delayMs: number; readonly collectingMs: number } | undefined;
  while (kept === undefined) {
    const text = await readFile(timesFile(), 'utf8').catch(() => '{}');
    const said = JSON.parse(text) as { told?: number; longestMs: number; collectingMs: number };
    if (said.told === asked) kept = { delayMs: said.longestMs, collectingMs: said.collectingMs };
    else if (performance.now() > ends) throw new Error(`the server is silent: ${server.stderr().slice(-1_000)}`);
    else await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const { text } = await exchange(`${server.url}/metrics`);
  const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  const sum = (pattern: RegExp) => [...text.matchAll(pattern)].reduce((all, [, count]) => all + Number(count), 0);
  const within = sum(new RegExp(`^countersign_steps_bucket\\{le="${mostSteps}",.*\\} (\\d+)$`, 'gm'));
  return {
    ...kept,
    memory: value('process_resident_memory_bytes') / 2 ** 20,
    tooManySteps: sum(/^countersign_steps_count\{.*\} (\d+)$/gm) - within,
    steps: sum(/^countersign_steps_sum\{.*\} (\S+)$/gm),
  };
}

const timesFile = () => join(installation.dataDir, 'main-thread.json');

beforeAll(async () => {
  // Answers nobody, or late: what slow webhooks are.
  slow = createServer((_request, response) => void setTimeout(() => response.end(), 9_000).unref());
  await new Promise<void>((listening) => slow.listen(0, '127.0.0.1', listening));
  slowUrl = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`;
  tellable = createServer((request, response) => {
    request.on('data', (part: Buffer) => (told.bytes += part.length)).on('end', () => response.end());
  });
  await new Promise<void>((listening) => tellable.listen(0, '127.0.0.1', listening));
  toldUrl = `http://127.0.0.1:${(tellable.address() as AddressInfo).port}`;
  installation = await Installation.make();
  const settings = {
    MAIN_THREAD_FILE: timesFile(),
    TRUST_PROXY: 'true',
    ALLOW_PRIVATE_NETWORK: 'true',
    PROXY_RATE_LIMIT_PER_ADDRESS: '0',
    PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
    PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
    PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
    PROXY_RATE_LIMIT_PER_CONTACT: '0',
    LOG_LEVEL: 'error',
  };
  // As `npm start` has them.
  const flags = flagsFor(2 * heap * 2 ** 20);
  server = await installation.start(settings, [
    ...flags,
    `--import=${new URL('./main-thread.mjs', import.meta.url).href}`,
  ]);
  root = await installation.client(server.url);
  configId = (await installation.root())['authProxyConfigId']!;
  rootUserId = (await installation.root())['userId']!;
  const key = newKey();
  await root.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
    users: [{ userName: 'Member', apiKeys: [agentKey(key)], authenticators: [], oauthProviders: [], userTags: [] }],
  });
  member = { key, organizationId: root.organizationId, address: '203.0.113.50' };
  // Strangers may ask all that there is to be asked about histories.
  await root.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', {
    name: 'FEATURE_NAME_SUB_ORGANIZATION_EVENTS',
    value: '',
  });
  strangers = [await signUp('203.0.113.66'), await signUp('203.0.113.67')];
  const keys = (await exchange(`${server.url}/public/v1/discovery/keys`)).body as Record<string, string>;
  onRampKey = keys['onRampEncryption']!;
  const [short, long] = await Promise.all(
    ['secret', 's'.repeat(3_900)].map((secret) => encryptOauth2ClientSecret(secret, keys['oauthSecretEncryption'])),
  );
  oauthSecrets = { short: short!, long: long! };
  own = await accountsOf(strangers[0]!);
  parents = await accountsOf({ key: root.key, organizationId: root.organizationId, address: '198.51.100.1' });
}, 60_000);

afterAll(async () => {
  await installation.remove();
  for (const one of [slow, tellable]) {
    one.closeAllConnections();
    one.close();
  }
});

/** A stranger who has something that waits for votes, and what secrets and codes are sealed to. */
interface Furnished extends Caller {
  readonly userId: string;
  readonly activityId: string;
  readonly importBundle: string;
  readonly otpId: string;
  readonly otpEncryptionTargetBundle: string;
}

/** Somebody whom nobody knows, in whose organization a second person waits for votes. */
async function furnished(address: string): Promise<Furnished> {
  const owner = await signUp(address);
  const key = newKey();
  const contact = `somebody${++lastName}@example.com`;
  const nothing = { authenticators: [], oauthProviders: [], userTags: [] };
  const second = { userName: 'Second', userEmail: contact, apiKeys: [agentKey(key)], ...nothing };
  resultOf(await submit(owner, 'ACTIVITY_TYPE_CREATE_USERS_V4', { users: [second] }));
  const two = { policyName: 'two', effect: 'EFFECT_ALLOW', consensus: 'approvers.count() >= 2', notes: '' };
  resultOf(await submit(owner, 'ACTIVITY_TYPE_CREATE_POLICY_V3', two));
  const waiting = await submit({ ...owner, key }, 'ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'tag', userIds: [] });
  const { activity } = JSON.parse(waiting.text) as { activity: { id: string; status: string } };
  expect(activity.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
  const started = await submit(owner, 'ACTIVITY_TYPE_INIT_IMPORT_PRIVATE_KEY', { userId: owner.userId });
  const { importBundle } = resultOf<{ importBundle: string }>(started);
  const otp = { otpType: 'OTP_TYPE_EMAIL', contact, appName: 'App', otpLength: 6, alphanumeric: false };
  const sent = await submit(owner, 'ACTIVITY_TYPE_INIT_OTP_V3', otp);
  const code = resultOf<{ otpId: string; otpEncryptionTargetBundle: string }>(sent);
  return { ...owner, ...code, activityId: activity.id, importBundle };
}

/** A user of the owner's organization to whom policies apply: where the root quorum asks, it decides without them. */
async function employeeOf(owner: Caller & { readonly userId: string }): Promise<typeof owner> {
  const key = newKey();
  const [user] = users(1).map((one) => ({ ...one, apiKeys: [agentKey(key)] }));
  resultOf(await submit(owner, 'ACTIVITY_TYPE_CREATE_USERS_V4', { users: [user] }));
  return { ...owner, key };
}

/** Numbers that make names different. */
let lastName = 0;

type Request = () => Promise<Answer>;

/** Sends all of them, so many at a time. */
async function sendAll(requests: readonly Request[], atOnce: number): Promise<Answer[]> {
  const answers: Answer[] = [];
  const left = requests.values();
  const worker = async () => {
    for (const request of left) answers.push(await request());
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return answers;
}

const times = (count: number, request: (at: number) => Promise<Answer>): Request[] =>
  Array.from({ length: count }, (_, at) => () => request(at));

const signTransaction = (caller: Caller, type: string, from: string, unsignedTransaction: string) =>
  submit(caller, 'ACTIVITY_TYPE_SIGN_TRANSACTION_V2', {
    signWith: from,
    type: `TRANSACTION_TYPE_${type}`,
    unsignedTransaction,
  });
const signTyped = (caller: Caller, from: string, payload: string) =>
  submit(caller, 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
    signWith: from,
    payload,
    encoding: 'PAYLOAD_ENCODING_EIP712',
    hashFunction: 'HASH_FUNCTION_NO_OP',
  });
const upload = (caller: Caller, type: 'ETHEREUM' | 'SOLANA', address: string, smartContractInterface: string) =>
  submit(caller, 'ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
    label: `label ${lastTimestamp}`,
    type: `SMART_CONTRACT_INTERFACE_TYPE_${type}`,
    smartContractAddress: address,
    notes: '',
    smartContractInterface,
  });
const rename = (owner: Caller & { readonly userId: string }, at: number) =>
  submit(owner, 'ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: owner.userId, userName: `name ${at}` });
const program = () => base58.encode(randomness.bytes(32));
const consensus = (caller: Caller, text: string) =>
  submit(caller, 'ACTIVITY_TYPE_CREATE_POLICY_V3', {
    policyName: `policy ${lastTimestamp}`,
    effect: 'EFFECT_ALLOW',
    consensus: text,
    notes: '',
  });
const policies = (caller: Caller, count: number, characters: number) =>
  submit(caller, 'ACTIVITY_TYPE_CREATE_POLICIES', {
    policies: Array.from({ length: count }, (_, at) => ({
      policyName: `policy ${lastTimestamp} ${at}`,
      effect: 'EFFECT_ALLOW',
      condition: longCondition(characters, at),
      consensus: 'approvers.count() >= 1',
      notes: '',
    })),
  });
const users = (count: number) =>
  Array.from({ length: count }, () => ({
    userName: 'u'.repeat(100),
    apiKeys: [agentKey(newKey())],
    authenticators: [],
    oauthProviders: [],
    userTags: [],
  }));
const unsignedToken = (iss: string) =>
  [
    { alg: 'RS256', kid: 'k' },
    { iss, aud: 'a', sub: 's', exp: 2e9, iat: 1 },
  ]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .concat('AAAA')
    .join('.');
const signPayload = (caller: Caller, payload: string, signWith = own.ethereum) =>
  submit(caller, 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
    signWith,
    payload,
    encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
    hashFunction: 'HASH_FUNCTION_SHA256',
  });
const token = '0x6b175474e89094c44da98b954eedeac495271d0f';

/** As long as a body may be, of characters that take the most to escape, to count and to convert. */
const longTexts: Readonly<Record<string, string>> = {
  hexadecimal: 'ab'.repeat(970_000),
  quotes: '"'.repeat(970_000),
  controls: '\u0001'.repeat(330_000),
  euros: '\u20ac'.repeat(650_000),
  faces: '\u{1f600}'.repeat(480_000),
};

/** The others of them are tried where there is time. */
const inShort = ['hexadecimal', 'quotes', 'faces'];

/** Somebody with two addresses. */
const fromTwo = (caller: Caller, at: number): Caller => ({ ...caller, address: `203.0.113.${90 + (at % 2)}` });

/** Everything that was shown to cost others: what is sent, and how many at a time. */
const corpus: Readonly<Record<string, () => Promise<Answer[]>>> = {
  'signed texts that may be full of tokens, and those who read them': async () => {
    const texts = [
      'a.'.repeat(950_000),
      `${Buffer.from('{"x":0,"y":"z"}').toString('base64url')}.`.repeat(90_000),
      JSON.stringify(Array.from({ length: 300_000 }, () => '{')),
    ];
    const ids: string[] = [];
    const signed = await sendAll(
      texts.map((payload) => async () => {
        const answer = await signPayload(strangers[0]!, payload);
        if (answer.status === 200) ids.push((JSON.parse(answer.text) as { activity: { id: string } }).activity.id);
        return answer;
      }),
      3,
    );
    const read = ids.flatMap((activityId) =>
      ['get_activity', 'list_activity_events'].map((path) => () => query(strangers[0]!, path, { activityId })),
    );
    return [...signed, ...(await sendAll(read, 3))];
  },
  'bodies of many small values': () => {
    const names = Array.from({ length: 140_000 }, (_, at) => `"k${at}":1`).join(',');
    const values = ['[]', '{}', '1', '""'].map((one) => `{"a":[${`${one},`.repeat(640_000)}1]}`.slice(0, 1_990_000));
    return sendAll(
      [...values, `{${names}}`].flatMap((text) => [
        () => proxy('signup', text),
        () => submit(strangers[0]!, 'ACTIVITY_TYPE_CREATE_USER_TAG', text),
        () => stamped(member, '/public/v1/query/list_users', text),
      ]),
      5,
    );
  },
  'codes for contacts of 2 MB, each another': () =>
    sendAll(
      times(12, (at) => proxy('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact: `${at}${'x'.repeat(2_000_000)}` })),
      6,
    ),
  'sign-ups that name many issuers': () =>
    sendAll(
      times(6, (turn) =>
        proxy('signup_v2', {
          userName: 'x',
          oauthProviders: Array.from({ length: 50 }, (_, at) => ({
            providerName: `p${at}`,
            oidcToken: unsignedToken(`${slowUrl}/${turn}/${at}`),
          })),
        }),
      ),
      6,
    ),
  'sign-ups that each name another issuer': async () => {
    const answers = await sendAll(
      times(12, (turn) =>
        proxy('signup_v2', {
          userName: 'x',
          oauthProviders: [{ providerName: 'p', oidcToken: unsignedToken(`${slowUrl}/one/${turn}`) }],
        }),
      ),
      12,
    );
    // What they have named themselves does not answer, which is no fault of the server's.
    return answers.filter(({ status, text }) => status !== 503 || !text.includes('the keys of issuer'));
  },
  'connections that send their headers a byte at a time': async () => {
    const sockets = slowConnections(200);
    for (let bytes = 0; bytes < 50; bytes++) {
      for (const socket of sockets) socket.write('x');
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const answers = await sendAll(
      times(10, () => query(member, 'whoami')),
      2,
    );
    for (const socket of sockets) socket.destroy();
    return answers;
  },
  'endpoints that answer after nine seconds': () =>
    sendAll(
      times(20, (at) =>
        submit(strangers[at % 2]!, 'ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
          url: `${slowUrl}/${at}`,
          name: `slow ${at}`,
          subscriptions: [{ eventType: 'ACTIVITY_UPDATES' }],
        }),
      ),
      4,
    ),
  'a flood through the auth proxy': () =>
    sendAll(
      times(150, () => proxy('otp_verify', { otpId: member.organizationId, otpCode: '000000000' })),
      50,
    ),
  'sign-ups with a wallet of a hundred accounts': () =>
    sendAll(
      times(6, () =>
        proxy('signup', {
          userName: 'Stranger',
          apiKeys: [agentKey(newKey())],
          wallet: {
            walletName: 'many',
            accounts: Array.from({ length: 100 }, (_, at) => ({
              curve: 'CURVE_SECP256K1',
              pathFormat: 'PATH_FORMAT_BIP32',
              path: `m/44'/60'/0'/0/${at}`,
              addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
            })),
          },
        }),
      ),
      6,
    ),
  'JSON that is nested 200 000 levels deep, everywhere': () => {
    const deep = '['.repeat(200_000) + ']'.repeat(200_000);
    const { organizationId } = member;
    return sendAll(
      [
        () => proxy('signup', `{"apiKeys":${deep}}`),
        () => submit(strangers[0]!, 'ACTIVITY_TYPE_CREATE_USER_TAG', `{"userTagName":${deep}}`),
        () => stamped(member, '/public/v1/query/list_users', `{"organizationId":"${organizationId}","x":${deep}}`),
        () => signTyped(member, parents.ethereum, nestedStructs(300_000)),
        () => upload(strangers[0]!, 'ETHEREUM', token, deep),
        () => upload(strangers[0]!, 'SOLANA', program(), deep),
      ],
      3,
    );
  },
  'typed data of 2 MB, by a member without any right': () =>
    sendAll(
      times(3, () => signTyped(member, parents.ethereum, emptyStructs(150_000))),
      3,
    ),
  'typed data of 2 MB, by its owner': () =>
    sendAll(
      times(3, () => signTyped(strangers[0]!, own.ethereum, emptyStructs(150_000))),
      3,
    ),
  'PSBTs of many keys and outputs': () => {
    const [keys, outputs] = [keysOfPsbt(12_000), previousOutputs(100_000)];
    return sendAll(
      [keys, outputs].flatMap((text) => [
        () => signTransaction(member, 'BITCOIN', parents.bitcoin, text),
        () => signTransaction(strangers[0]!, 'BITCOIN', own.bitcoin, text),
      ]),
      4,
    );
  },
  '400 000 empty permissions': () =>
    sendAll(
      times(2, (at) => {
        const [caller, from] = at ? [member, parents.tron] : [strangers[0]!, own.tron];
        return signTransaction(caller, 'TRON', from, emptyPermissions(400_000));
      }),
      2,
    ),
  'types that double at each level': () =>
    sendAll(
      [6, 12, 19, 24].map((levels) => () => upload(strangers[0]!, 'SOLANA', program(), doublingTypes(levels))),
      2,
    ),
  'names that are longer in full': () =>
    sendAll(
      [
        [3, 100],
        [30, 120],
        [1, 380_000],
      ].map(([levels, characters]) => () => {
        return upload(strangers[0]!, 'SOLANA', program(), longAccountNames(levels!, characters!));
      }),
      3,
    ),
  'values without bytes, in each of many instructions': async () => {
    const address = program();
    const uploaded = await upload(strangers[0]!, 'SOLANA', address, manyEmpties(16_382));
    const call = repeatedInstruction(own.solana, address, 240);
    return [
      uploaded,
      ...(await sendAll(
        times(3, () => signTransaction(strangers[0]!, 'SOLANA', own.solana, call)),
        3,
      )),
    ];
  },
  'offsets that lead to one empty list': async () => {
    const members = 10_000;
    const uploaded = await upload(strangers[0]!, 'ETHEREUM', token, manyMembers(members));
    const [go] = JSON.parse(manyMembers(members)) as [AbiFunction];
    const call = sharedOffsets(token, toFunctionSelector(go).slice(2), 20_000);
    return [
      uploaded,
      ...(await sendAll(
        times(3, () => signTransaction(strangers[0]!, 'ETHEREUM', own.ethereum, call.slice(2))),
        3,
      )),
    ];
  },
  'policies as large as they may be, and a list of what waits': async () => {
    const owner = await signUp('203.0.113.68');
    const employee = await employeeOf(owner);
    return [
      ...(await sendAll(
        times(8, (at) => policies(owner, 5, at < 4 ? 60_000 : 5_000)),
        2,
      )),
      await consensus(owner, 'approvers.count() >= 2'),
      ...(await sendAll(
        times(30, (at) => rename(employee, at)),
        30,
      )),
      ...(await sendAll(
        times(4, () => query(owner, 'list_activities', { paginationOptions: { limit: '100' } })),
        4,
      )),
    ];
  },
  'a consensus that counts the votes of a hundred users': async () => {
    const owner = await signUp('203.0.113.69');
    const employee = await employeeOf(owner);
    return [
      ...(await sendAll(
        times(4, () => submit(owner, 'ACTIVITY_TYPE_CREATE_USERS_V4', { users: users(50) })),
        2,
      )),
      ...(await sendAll(
        times(3, (at) => consensus(owner, `['${at}'].any(x, approvers.count() >= 50)`)),
        1,
      )),
      ...(await sendAll(
        times(6, (at) => rename(employee, at)),
        6,
      )),
      ...(await sendAll(
        times(4, () => query(owner, 'list_activities', { paginationOptions: { limit: '100' } })),
        4,
      )),
    ];
  },
  ...Object.fromEntries(
    (isLong ? Object.entries(longTexts) : Object.entries(longTexts).filter(([name]) => inShort.includes(name))).map(
      ([name, text]) => [
        `payloads of 2 MB, and lists of them: ${name}`,
        async () => [
          ...(await sendAll(
            times(8, (at) => signPayload(fromTwo(strangers[0]!, at), `${lastTimestamp}${text}`)),
            8,
          )),
          ...(await sendAll(
            times(6, (at) =>
              query(fromTwo(strangers[0]!, at), 'list_activities', { paginationOptions: { limit: '100' } }),
            ),
            6,
          )),
          ...(await sendAll(
            times(2, () => query(strangers[0]!, 'list_denials', { paginationOptions: { limit: '100' } })),
            2,
          )),
        ],
      ],
    ),
  ),
  'payloads of 2 MB, each told to ten webhooks': async () => {
    const before = told.bytes;
    const owner = { ...strangers[0]!, ...(await signUp('203.0.113.72')) };
    const { ethereum } = await accountsOf(owner);
    const endpoints = await sendAll(
      times(10, (at) =>
        submit(owner, 'ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
          url: `${toldUrl}/${at}`,
          name: `told ${at}`,
          subscriptions: [{ eventType: 'ACTIVITY_UPDATES' }],
        }),
      ),
      4,
    );
    const signed = await sendAll(
      times(4, (at) => signPayload(fromTwo(owner, at), `${lastTimestamp}${longTexts['hexadecimal']}`, ethereum)),
      4,
    );
    // Of what two of them are told; each has both, and as often as it is submitted and decided.
    const ends = performance.now() + 60_000;
    while (told.bytes - before < 2 * 10 * 4_000_000 && performance.now() < ends) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return [...endpoints, ...signed];
  },
  'questions about a history of bodies of 2 MB': async () => {
    const owner = { ...strangers[0]!, ...(await signUp('203.0.113.73')) };
    const { ethereum } = await accountsOf(owner);
    const signed = await sendAll(
      times(isLong ? 60 : 24, (at) =>
        signPayload(fromTwo(owner, at), `${lastTimestamp}${longTexts['hexadecimal']}`, ethereum),
      ),
      4,
    );
    const last = signed.findLast(({ status }) => status === 200)!;
    const { id: activityId } = (JSON.parse(last.text) as { activity: { id: string } }).activity;
    const draft = { policies: [{ policyName: 'other', effect: 'EFFECT_DENY', condition: "activity.kind == 'X'" }] };
    const asks: readonly (readonly [path: string, request: object])[] = [
      ['get_policy_evaluations', { activityId }],
      ['explain_activity', { activityId }],
      ['what_if', { draft }],
      ['get_organization_state', {}],
      ['compare_states', { from: { revision: '1' } }],
      ['list_events', { limit: '100' }],
      ['lint_policies', {}],
    ];
    const asked = asks.flatMap(([path, request]) => times(2, (at) => query(fromTwo(owner, at), path, request)));
    return [...signed, ...(await sendAll(asked, asked.length))];
  },
  'bodies of 2 MB that are only tried': async () => {
    const tried = (payload: string, signWith: string) => ({
      timestampMs: String(Date.now()),
      activity: {
        type: 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2',
        parameters: {
          signWith,
          payload,
          encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
          hashFunction: 'HASH_FUNCTION_SHA256',
        },
      },
    });
    const texts = Object.entries(longTexts).filter(([name]) => isLong || inShort.includes(name));
    return sendAll(
      texts.flatMap(([, text]) =>
        times(4, (at) =>
          query(fromTwo(strangers[0]!, at), 'dry_run', {
            ...tried(text, own.ethereum),
            ...(at === 3 ? { withProof: true } : {}),
          }),
        ),
      ),
      6,
    );
  },
  'bodies of 2 MB with the stamp of a personal message': async () => {
    const ofWallet = generateApiKeyPair((count) => randomness.bytes(count), 'API_KEY_CURVE_SECP256K1');
    const body = JSON.stringify({ organizationId: member.organizationId, x: longTexts['hexadecimal'] });
    const { headerName, headerValue } = stampBody(body, ofWallet, 'SIGNATURE_SCHEME_TK_API_SECP256K1_EIP191');
    return sendAll(
      times(8, (at) =>
        post('/public/v1/query/whoami', body, {
          [headerName]: headerValue,
          'x-forwarded-for': fromTwo(member, at).address,
        }),
      ),
      8,
    );
  },
  'lists that match nothing, and all sub-organizations, over a long history': async () => {
    const { organizationId } = member;
    const owner = { key: root.key, organizationId, address: '198.51.100.1' };
    const written = await sendAll(
      times(isLong ? 5_000 : 600, (at) => rename({ ...owner, userId: rootUserId }, at)),
      60,
    );
    const lists = await sendAll(
      [
        ...times(6, () => query(member, 'list_activities', { filterByType: ['ACTIVITY_TYPE_DELETE_POLICY'] })),
        ...times(6, () => query(member, 'list_activities', { filterByStatus: ['ACTIVITY_STATUS_REJECTED'] })),
        ...times(6, () => query(member, 'list_suborgs', {})),
        ...times(3, () => query(member, 'list_users', {})),
      ],
      7,
    );
    return [...written, ...lists];
  },
  'sixty requests at once': async () => {
    const owner = await signUp('203.0.113.70');
    const employee = await employeeOf(owner);
    await sendAll(
      times(4, () => policies(owner, 5, 12_000)),
      2,
    );
    return sendAll(
      times(60, (at) => rename(employee, at)),
      60,
    );
  },
  'a thousand payloads under a hundred policies': async () => {
    const owner = await signUp('203.0.113.71');
    const employee = await employeeOf(owner);
    const { ethereum } = await accountsOf(owner);
    for (let at = 0; at < 100; at += 50) {
      const named = Array.from({ length: 50 }, (_, index) => ({
        policyName: `policy ${at + index}`,
        effect: index % 5 === 4 ? 'EFFECT_DENY' : 'EFFECT_ALLOW',
        condition: `eth.eip_712.domain.name == '${at + index}'`,
        consensus: index % 2 === 0 ? 'approvers.count() >= 2' : 'true',
        notes: '',
      }));
      resultOf(await submit(owner, 'ACTIVITY_TYPE_CREATE_POLICIES', { policies: named }));
    }
    return sendAll(
      times(6, (at) =>
        submit(employee, 'ACTIVITY_TYPE_SIGN_RAW_PAYLOADS', {
          signWith: ethereum,
          payloads: Array.from({ length: at % 2 === 0 ? 1_000 : 250 }, (_, name) => typedName(String(name))),
          encoding: 'PAYLOAD_ENCODING_EIP712',
          hashFunction: 'HASH_FUNCTION_NO_OP',
        }),
      ),
      2,
    );
  },
};

/** Connections that are opened and then send their headers a byte at a time. */
function slowConnections(count: number): Socket[] {
  return Array.from({ length: count }, () => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write('POST /public/v1/query/whoami HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\nx-slow: ');
    return socket;
  });
}

/** What the victim does, again and again, until it is told to end. */
function victim() {
  const state = { isOver: false, answers: 0, longestMs: 0, refused: [] as string[] };
  const run = async () => {
    for (let turn = 0; !state.isOver; turn++) {
      for (const ask of [
        () => root.query('whoami'),
        () => root.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: rootUserId, userName: `victim ${turn}` }),
        () => root.query('list_activities', { paginationOptions: { limit: '5' } }),
        async () => {
          const { status, text } = await proxy('wallet_kit_config', {}, '198.51.100.1');
          if (status !== 200) throw new Error(text);
        },
      ]) {
        const begun = performance.now();
        await ask().then(
          () => (state.answers += 1),
          (error: unknown) => state.refused.push(String(error)),
        );
        state.longestMs = Math.max(state.longestMs, performance.now() - begun);
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  const running = run();
  return {
    state,
    async end() {
      state.isOver = true;
      await running;
    },
  };
}

interface Row extends Measured {
  readonly name: string;
  readonly victimMs: number;
  readonly victims: number;
  readonly statuses: string;
}

interface HeldRow extends Row {
  /** Of the time that the main thread may be kept. */
  readonly share: number;
}

/**
 * What an attack does; where it does much, as the median of several runs says, each beside the speed of the machine just
 * then, which changes on one that is shared.
 */
async function beside(name: string, attack: () => Promise<Answer[]>): Promise<HeldRow> {
  const once = async (mostMs: () => number) => {
    const row = await onceBeside(name, attack);
    return { ...row, share: row.delayMs / mostMs() };
  };
  const rows = [await once(() => longestMs)];
  if (rows[0]!.share < 1) return rows[0]!;
  for (let time = 0; time < repetitions; time++) rows.push(await once(() => Math.max(longestMs, 100 * slowness())));
  const byShare = rows.toSorted((one, other) => one.share - other.share);
  const median = byShare[Math.floor(byShare.length / 2)]!;
  const said = byShare.map(({ delayMs, share }) => `${Math.round(delayMs)} of ${Math.round(delayMs / share)}`);
  return { ...median, name: `${name} (${said.join(', ')} ms)` };
}

/** Runs an attack beside the victim, and tells what it did to it. */
async function onceBeside(name: string, attack: () => Promise<Answer[]>): Promise<Row> {
  const before = await measured();
  const one = victim();
  const answers = await attack().catch((error: unknown) => {
    throw new Error(`${name}: ${server.child.exitCode ?? server.child.signalCode}: ${server.stderr().slice(-1_000)}`, {
      cause: error,
    });
  });
  await one.end();
  const after = await measured();
  const { longestMs: victimMs, answers: victims, refused } = one.state;
  expect({ name, refused }).toEqual({ name, refused: [] });
  const failed = answers
    // An issuer of the attacker's own that does not answer is said to be away, to the attacker alone.
    .filter(({ status, text }) => status >= 500 && !(status === 503 && text.includes(`issuer \`${slowUrl}/`)))
    .map(({ status, text }) => `${status} ${text.slice(0, 300)}`);
  expect({ name, failed }).toEqual({ name, failed: [] });
  const counts = new Map<number, number>();
  for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1);
  const said = new Map(answers.flatMap(({ status, text }) => (status === 200 ? [] : [[status, text.slice(0, 160)]])));
  const statuses = [...counts].map(([status, count]) => `${status}×${count} ${said.get(status) ?? ''}`).join(' ');
  return { ...after, steps: after.steps - before.steps, name, victimMs, victims, statuses };
}

const line = ({ name, delayMs, collectingMs, memory, steps, victimMs, victims, statuses }: Row): string =>
  `${name}: thread kept ${Math.round(delayMs)} ms (${Math.round(collectingMs)} ms of garbage), victim waited ` +
  `${Math.round(victimMs)} ms (${victims} answers), ${Math.round(memory)} MiB, ${Math.round(steps)} steps; ${statuses}`;

function hold(rows: readonly HeldRow[]): void {
  console.log([`the thread may be kept ${Math.round(longestMs)} ms`, ...rows.map(line)].join('\n'));
  expect(rows.filter(({ share }) => !(share < 1)).map(({ name }) => name)).toEqual([]);
  expect(rows.filter(({ tooManySteps }) => tooManySteps > 0).map(({ name }) => name)).toEqual([]);
  expect(rows.filter(({ memory }) => !(memory < mostMemory)).map(({ name }) => name)).toEqual([]);
  // Whatever is going on, the victim's answers keep coming: each of its rounds has four.
  expect(rows.filter(({ victims }) => victims < 4).map(({ name }) => name)).toEqual([]);
}

test('what was shown to freeze others does so no more', async () => {
  const sockets = slowConnections(50);
  const rows: HeldRow[] = [];
  const only = process.env['ATTACK'];
  for (const [name, attack] of Object.entries(corpus)) {
    if (only === undefined || name.includes(only)) rows.push(await beside(name, attack));
  }
  for (const socket of sockets) socket.destroy();
  hold(rows);
}, 600_000);

/** The published schema of a request body. */
interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly maxItems?: number;
  readonly minItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly required?: readonly string[];
  readonly format?: string;
  readonly pattern?: string;
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
}

interface Document {
  readonly paths: Readonly<
    Record<
      string,
      { readonly post?: { readonly requestBody?: { readonly content: Record<string, { schema: Schema }> } } }
    >
  >;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** Bytes that are left for a body: half of the largest, as texts are escaped. */
interface Room {
  bytes: number;
  /** Values that a request may have, less some for what surrounds them. */
  values: number;
}

/** The stranger whose requests are drawn: another in each round, as some delete what they have. */
let drawing: Furnished;

/** A passkey as its first use shows it, with as long a statement as may be. */
function attestation(large: boolean): object {
  const statement = Buffer.concat([Buffer.from('a16178', 'hex'), Buffer.from('590f00', 'hex'), Buffer.alloc(0xf00)]);
  const attest = () => ({ format: 'packed', statement });
  return new SoftwareAuthenticator().register(large ? { attest } : {}).attestation;
}

/** Values by the names of members where the document does not say all that there is to be said. */
const known: Readonly<Record<string, (schema: Schema, large: () => boolean) => unknown>> = {
  organizationId: () => drawing.organizationId,
  activityId: () => drawing.activityId,
  publicKey: () => newKey().publicKey,
  targetPublicKey: () => uncompressed(),
  clientPublicKey: () => newKey().publicKey,
  userId: () => drawing.userId,
  userIds: () => [drawing.userId],
  rootQuorumThreshold: () => 1,
  threshold: () => 1,
  policyName: () => `policy ${++lastName}`,
  signWith: () => own.ethereum,
  payload: () => 'ab'.repeat(32),
  encoding: () => 'PAYLOAD_ENCODING_HEXADECIMAL',
  hashFunction: () => 'HASH_FUNCTION_NO_OP',
  path: () => "m/44'/60'/0'/0/0",
  limit: () => '100',
  before: cursor,
  after: cursor,
  // Points of a history have exactly one member.
  revision: () => '1',
  position: () => undefined,
  time: ({ maxLength }) => (maxLength === 40 ? undefined : "time.now > Timestamp('2000-01-01T00:00:00Z')"),
  at: () => ({ revision: '1' }),
  from: ({ type }) => (type === 'integer' ? 1 : { revision: '1' }),
  to: () => ({ revision: '2' }),
  url: () => `${slowUrl}/drawn`,
  contact: () => 'somebody@example.com',
  userEmail: () => 'somebody@example.com',
  userPhoneNumber: () => '+13214567890',
  expirationSeconds: () => '600',
  sendFromEmailAddress: () => 'somebody@example.com',
  replyToEmailAddress: () => 'somebody@example.com',
  bearerTokenTargetPublicKey: () => uncompressed(),
  email: () => 'somebody@example.com',
  phoneNumber: () => '+13214567890',
  oidcToken: () => unsignedToken(`${slowUrl}/drawn`),
  fingerprint: () => `sha256:${'ab'.repeat(32)}`,
  condition: () => 'true',
  consensus: () => 'approvers.count() >= 1',
  effect: () => 'EFFECT_ALLOW',
  timestampMs: () => undefined,
  attestation: (_schema, large) => attestation(large()),
  otpId: () => drawing.otpId,
  encryptedOtpBundle: (_schema, large) =>
    sealedTo(
      drawing.otpEncryptionTargetBundle,
      JSON.stringify({ otp_code: '0'.repeat(large() ? 1_000 : 6), public_key: newKey().publicKey }),
    ),
  encryptedClientSecret: (_schema, large) => oauthSecrets[large() ? 'long' : 'short'],
  encryptedSecretApiKey: (_schema, large) => encryptOnRampSecret('s'.repeat(large() ? 3_000 : 20), onRampKey),
  encryptedPrivateApiKey: (_schema, large) => encryptOnRampSecret('s'.repeat(large() ? 3_000 : 20), onRampKey),
  encryptedBundle: (_schema, large) =>
    sealedTo(drawing.importBundle, large() ? 'a '.repeat(100_000) : Buffer.alloc(32, 1)),
};

/** Where a page begins: behind something that is there, or nowhere in particular. */
function cursor({ format }: Schema, large: () => boolean): unknown {
  if (!large()) return undefined;
  return format !== 'uuid' ? '1' : large() ? drawing.userId : drawing.activityId;
}

const uncompressed = () => p256.Point.fromHex(newKey().publicKey).toHex(false);

/** A value that a schema allows, as large as it may be where `large` says so. */
function drawn(schema: Schema, document: Document, large: () => boolean, room: Room, name = '', depth = 0): unknown {
  if (Object.hasOwn(known, name)) {
    const value = known[name]!(schema, large);
    room.bytes -= JSON.stringify(value)?.length ?? 0;
    return value;
  }
  if (schema.$ref !== undefined) {
    return drawn(document.components.schemas[schema.$ref.split('/').at(-1)!]!, document, large, room, name, depth);
  }
  const [chosen] = schema.oneOf ?? schema.anyOf ?? schema.allOf ?? [];
  if (chosen) return drawn(chosen, document, large, room, name, depth);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[large() ? schema.enum.length - 1 : 0];
  room.bytes -= 8;
  room.values -= 1;
  if (schema.type === 'array') {
    // As many as are published, whether or not all of them together are taken.
    const most = large() ? Math.min(schema.maxItems ?? 100, depth > 2 ? 10 : 2_000) : (schema.minItems ?? 1);
    const list: unknown[] = [];
    while (list.length < most && room.bytes > 0 && room.values > 0) {
      list.push(drawn(schema.items ?? {}, document, large, room, name, depth + 1));
    }
    return list;
  }
  if (schema.type === 'object') {
    const required = new Set(schema.required);
    const members = Object.entries(schema.properties ?? {}).filter(([key]) => required.has(key) || large());
    return Object.fromEntries(
      members.map(([key, member]) => {
        room.bytes -= key.length;
        return [key, drawn(member, document, large, room, key, depth + 1)];
      }),
    );
  }
  if (schema.type === 'integer' || schema.type === 'number') {
    return large() ? (schema.maximum ?? 2 ** 31 - 1) : (schema.minimum ?? 1);
  }
  if (schema.type === 'boolean') return true;
  // Of somebody else, or of nobody: a list must not have one twice.
  if (schema.format === 'uuid') {
    const of = (++lastName).toString(16).padStart(12, '0');
    return name.endsWith('Ids') || large() ? `00000000-0000-4000-8000-${of}` : member.organizationId;
  }
  if (schema.format === 'idn-email') return 'somebody@example.com';
  if (schema.pattern?.startsWith('^\\+')) return '+13214567890';
  if (schema.pattern?.includes('[0-9]+$') || schema.pattern?.includes('\\d')) return large() ? '86400' : '100';
  const longest = Math.min(schema.maxLength ?? 4_096, Math.max(1, room.bytes));
  const length = Math.max(schema.minLength ?? 0, large() ? longest : 6);
  room.bytes -= length;
  return 'ab'.repeat(Math.ceil(length / 2)).slice(0, length - (length % 2));
}

const mostValues = 9_000;

type Kind = 'as it is' | 'doubled' | 'nested' | 'repeated';

/** What becomes of parameters that are well formed: texts doubled or full of what nests, elements repeated, all as published. */
function neighbour(value: unknown, schema: Schema, document: Document, kind: Kind, times: number): unknown {
  if (schema.$ref !== undefined) {
    return neighbour(value, document.components.schemas[schema.$ref.split('/').at(-1)!]!, document, kind, times);
  }
  if (typeof value === 'string') {
    const isFree = schema.format === undefined && schema.pattern === undefined && !schema.enum && !schema.const;
    const most = Math.min(schema.maxLength ?? 256, 2 ** 20);
    if (!isFree || value.length === 0) return value;
    if (kind === 'doubled') return value.repeat(Math.max(1, Math.min(2 ** times, Math.floor(most / value.length))));
    const levels = Math.min(2 ** times, Math.floor(most / 2));
    return kind === 'nested' && most > 4_096 ? '['.repeat(levels) + ']'.repeat(levels) : value;
  }
  if (Array.isArray(value)) {
    const items = schema.items ?? {};
    const list = value.map((item) => neighbour(item, items, document, kind, times));
    const room = Math.floor(2 ** 20 / Math.max(1, JSON.stringify(list).length));
    const values = Math.floor(mostValues / Math.max(1, JSON.stringify(list).split(/[,[{]/).length));
    const often = Math.min(2 ** times, room, values, Math.floor((schema.maxItems ?? 100) / Math.max(1, list.length)));
    return kind === 'repeated' ? Array.from({ length: Math.max(1, often) }, () => list).flat() : list;
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      neighbour(item, schema.properties?.[name] ?? {}, document, kind, times),
    ]),
  );
}

/** Whether it was more than refused for its form. */
const isWellFormed = ({ status, text }: Answer) =>
  status !== 400 || !/"message":"(?:invalid request: |request body )/.test(text);

test(
  'nor does what is drawn: every path, up to every published limit, doubled, nested, repeated',
  async () => {
    const document = (await exchange(`${server.url}/openapi.json`)).body as Document;
    const paths = Object.keys(document.paths).filter((path) => /^(?:\/public\/v1\/(?:submit|query)|\/v1)\//.test(path));
    const submits = paths.filter((path) => path.includes('/submit/'));
    const schemaOf = (path: string) =>
      Object.values(document.paths[path]!.post?.requestBody?.content ?? {})[0]?.schema ?? {};
    const request = fc.record({
      larges: fc.array(fc.boolean(), { minLength: 5, maxLength: 40 }),
      bytes: fc.constantFrom(1_000, 60_000, 1_000_000),
      kind: fc.constantFrom<Kind>('as it is', 'doubled', 'nested', 'repeated'),
      times: fc.integer({ min: 1, max: 20 }),
      isMember: fc.boolean(),
    });
    const ends = performance.now() + drawnMs;
    const worst: HeldRow[] = [];
    let mostMiB = 0;
    const seen = new Set<string>();
    const refused = new Map<string, string>();
    let [sent, wellFormed] = [0, 0];
    for (let round = firstRound; round === firstRound || performance.now() < ends; round++) {
      drawing = await furnished('203.0.113.71');
      const some = fc.sample(request, { numRuns: 24, seed: 20_261_122 + round });
      const send = async ({ larges, bytes, kind, times: power, isMember }: (typeof some)[number], at: number) => {
        const path = paths[(round * 24 + at) % paths.length]!;
        seen.add(path);
        const schema = schemaOf(path);
        let count = 0;
        const large = () => larges[count++ % larges.length]!;
        const body = drawn(schema, document, large, { bytes, values: mostValues }) as Record<string, unknown>;
        const caller = isMember ? member : drawing;
        const change = (value: unknown, of: Schema) => neighbour(value, of, document, kind, power);
        if (path.endsWith('/dry_run')) {
          const tried = submits[(round + at) % submits.length]!;
          const { type, parameters } = drawn(schemaOf(tried), document, large, { bytes, values: mostValues }) as {
            readonly type: string;
            readonly parameters: unknown;
          };
          const changed = change(parameters, propertyOf(schemaOf(tried), 'parameters', document));
          Object.assign(body, { timestampMs: String(Date.now()), activity: { type, parameters: changed } });
        }
        const answer = await sendDrawn(caller, path, body, change);
        sent += 1;
        if (isWellFormed(answer)) wellFormed += 1;
        else refused.set(path, answer.text.slice(0, 200));
        return answer;
      };
      const row = await beside(`drawn, round ${round}`, () =>
        sendAll(
          times(24, (at) => send(some[at]!, at)),
          8,
        ),
      );
      mostMiB = Math.max(mostMiB, row.memory);
      // An hour is long: what it finds is said at once.
      if (isLong && row.delayMs > longestMs / 3) process.stderr.write(`${line(row)}\n`);
      worst.push(row);
      worst.sort((one, other) => other.delayMs - one.delayMs).splice(5);

      async function sendDrawn(
        caller: Caller,
        path: string,
        body: Record<string, unknown>,
        change: (value: unknown, schema: Schema) => unknown,
      ): Promise<Answer> {
        const { organizationId } = caller;
        const whole = schemaOf(path);
        if (path.startsWith('/v1/')) return proxy(path.slice(4), JSON.stringify(change(body, whole)), caller.address);
        if (path.includes('/query/')) {
          return stamped(caller, path, JSON.stringify({ ...(change(body, whole) as object), organizationId }));
        }
        const timestampMs = String((lastTimestamp = Math.max(Date.now(), lastTimestamp + 1)));
        const parameters = change(body['parameters'], propertyOf(whole, 'parameters', document));
        return stamped(caller, path, JSON.stringify({ ...body, timestampMs, organizationId, parameters }));
      }
    }
    const share = wellFormed / sent;
    console.log(
      `noninterference: ${sent} drawn requests to ${seen.size} of ${paths.length} paths, ` +
        `${Math.round(share * 100)} % of them more than refused for their form, ${Math.round(mostMiB)} MiB at most`,
    );
    if (process.env['REFUSED']) console.log([...refused].map((one) => one.join(' ')).join('\n'));
    hold(worst);
    expect(share).toBeGreaterThan(leastWellFormed);
  },
  drawnMs + 300_000,
);

function propertyOf(schema: Schema, name: string, document: Document): Schema {
  if (schema.$ref !== undefined) {
    return propertyOf(document.components.schemas[schema.$ref.split('/').at(-1)!]!, name, document);
  }
  const [chosen] = schema.oneOf ?? schema.anyOf ?? schema.allOf ?? [];
  return chosen ? propertyOf(chosen, name, document) : (schema.properties?.[name] ?? {});
}
