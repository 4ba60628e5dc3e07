import { connect, type Socket } from 'node:net';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toFunctionSelector, type AbiFunction } from 'viem';
import { base58 } from '@scure/base';
import fc from 'fast-check';
import type { StampingClient } from '../../src/client/stamping-client.js';
import { generateApiKeyPair, SeededRandomness, submitPath, type ApiKeyPair } from '../../src/testing/index.js';
import { stampBody } from '../../src/stamps/sign.js';
import { Installation, type Run } from '../e2e/installation.js';
import { exchange } from '../e2e/exchange.js';
import {
  doublingTypes,
  emptyPermissions,
  emptyStructs,
  keysOfPsbt,
  longAccountNames,
  longCondition,
  manyMembers,
  nestedStructs,
  previousOutputs,
  sharedOffsets,
} from './costly-shapes.js';

/**
 * What a tenant does costs others little: a victim goes about its business while a stranger, who has what a public sign-up
 * gives, and a member without any right send whatever is known or drawn to be costly. The coordinator is a process of its own,
 * which says itself how long its thread was not given back.
 */

const isLong = process.env['LONG'] === '1';
/** How long requests are drawn for after the corpus, in milliseconds. */
const drawnMs = isLong ? 60 * 60_000 : 5_000;
/** Longest time that the thread may be kept, in milliseconds: many times what it is on a machine of its own, where it is printed. */
const longestMs = 2_500;
const heap = 512;
/** Most memory of the process, in MiB: its heap, and as much again for bodies, caches and threads. */
const mostMemory = 1_600;

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
let configId: string;
let rootUserId: string;
let root: StampingClient;
let member: Caller;
let strangers: Caller[];
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

/** How the process says that it is: since it was asked last, how long its thread was kept at most, in ms; its memory in MiB. */
async function measured(): Promise<{ readonly delayMs: number; readonly memory: number }> {
  const { text } = await exchange(`${server.url}/metrics`);
  const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  return {
    delayMs: value('nodejs_eventloop_lag_max_seconds') * 1_000,
    memory: value('process_resident_memory_bytes') / 2 ** 20,
  };
}

beforeAll(async () => {
  // Answers nobody, or late: what slow webhooks are.
  slow = createServer((_request, response) => void setTimeout(() => response.end(), 9_000).unref());
  await new Promise<void>((listening) => slow.listen(0, '127.0.0.1', listening));
  slowUrl = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`;
  installation = await Installation.make();
  server = await installation.start({
    NODE_OPTIONS: `--max-old-space-size=${heap}`,
    TRUST_PROXY: 'true',
    ALLOW_PRIVATE_NETWORK: 'true',
    PROXY_RATE_LIMIT_PER_ADDRESS: '0',
    PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
    PROXY_RATE_LIMIT_PER_CONTACT: '0',
    LOG_LEVEL: 'error',
  });
  root = await installation.client(server.url);
  configId = (await installation.root())['authProxyConfigId']!;
  rootUserId = (await installation.root())['userId']!;
  const key = newKey();
  await root.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
    users: [{ userName: 'Member', apiKeys: [agentKey(key)], authenticators: [], oauthProviders: [], userTags: [] }],
  });
  member = { key, organizationId: root.organizationId, address: '203.0.113.50' };
  strangers = [await signUp('203.0.113.66'), await signUp('203.0.113.67')];
  own = await accountsOf(strangers[0]!);
  parents = await accountsOf({ key: root.key, organizationId: root.organizationId, address: '198.51.100.1' });
}, 60_000);

afterAll(async () => {
  await installation.remove();
  slow.closeAllConnections();
  slow.close();
});

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
const policies = (caller: Caller, count: number, characters: number, consensus = 'approvers.count() >= 1') =>
  submit(caller, 'ACTIVITY_TYPE_CREATE_POLICIES', {
    policies: Array.from({ length: count }, (_, at) => ({
      policyName: `policy ${lastTimestamp} ${at}`,
      effect: 'EFFECT_ALLOW',
      condition: longCondition(characters, at),
      consensus,
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
const token = '0x6b175474e89094c44da98b954eedeac495271d0f';

/** How many payloads of 2 MB are signed, and how many lists of them are asked for at a time. */
const twoMegabytes = { payloads: 12, lists: 6 };

/** Everything that was shown to cost others: what is sent, and how many at a time. */
const corpus: Readonly<Record<string, () => Promise<Answer[]>>> = {
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
            oidcToken: [
              { alg: 'RS256', kid: 'k' },
              { iss: `${slowUrl}/${turn}/${at}`, aud: 'a', sub: 's', exp: 2e9, iat: 1 },
            ]
              .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
              .concat('AAAA')
              .join('.'),
          })),
        }),
      ),
      6,
    ),
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
    return [
      ...(await sendAll(
        times(8, (at) => policies(owner, 5, at < 4 ? 60_000 : 2_000)),
        2,
      )),
      ...(await sendAll(
        times(30, (at) => rename(owner, at)),
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
    return [
      ...(await sendAll(
        times(4, () => submit(owner, 'ACTIVITY_TYPE_CREATE_USERS_V4', { users: users(50) })),
        2,
      )),
      await policies(owner, 3, 200, `['x'].any(x, approvers.count() >= 50)`),
      ...(await sendAll(
        times(6, (at) => rename(owner, at)),
        6,
      )),
      ...(await sendAll(
        times(4, () => query(owner, 'list_activities', { paginationOptions: { limit: '100' } })),
        4,
      )),
    ];
  },
  'payloads of 2 MB, and lists of them': async () => [
    ...(await sendAll(
      times(twoMegabytes.payloads, (at) =>
        submit(strangers[0]!, 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
          signWith: own.ethereum,
          payload: `${at.toString(16).padStart(4, '0')}${'ab'.repeat(970_000)}`,
          encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
          hashFunction: 'HASH_FUNCTION_SHA256',
        }),
      ),
      4,
    )),
    ...(await sendAll(
      times(twoMegabytes.lists, () => query(strangers[0]!, 'list_activities', { paginationOptions: { limit: '100' } })),
      6,
    )),
    ...(await sendAll(
      times(2, () => query(strangers[0]!, 'list_denials', { paginationOptions: { limit: '100' } })),
      2,
    )),
  ],
  'lists that match nothing, and all sub-organizations': () =>
    sendAll(
      [
        ...times(6, () => query(member, 'list_activities', { filterByType: ['ACTIVITY_TYPE_DELETE_POLICY'] })),
        ...times(6, () => query(member, 'list_activities', { filterByStatus: ['ACTIVITY_STATUS_REJECTED'] })),
        ...times(6, () => query(member, 'list_suborgs', {})),
        ...times(3, () => query(member, 'list_users', {})),
      ],
      7,
    ),
  'sixty requests at once': async () => {
    const owner = await signUp('203.0.113.70');
    await sendAll(
      times(4, () => policies(owner, 5, 12_000)),
      2,
    );
    return sendAll(
      times(60, (at) => rename(owner, at)),
      60,
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

interface Row {
  readonly name: string;
  readonly delayMs: number;
  readonly memory: number;
  readonly victimMs: number;
  readonly victims: number;
  readonly statuses: string;
}

/** Runs an attack beside the victim, and tells what it did to it. */
async function beside(name: string, attack: () => Promise<Answer[]>): Promise<Row> {
  await measured();
  const one = victim();
  const answers = await attack().catch((error: unknown) => {
    throw new Error(`${name}: ${server.child.exitCode ?? server.child.signalCode}: ${server.stderr().slice(-1_000)}`, {
      cause: error,
    });
  });
  await one.end();
  const { delayMs, memory } = await measured();
  const { longestMs: victimMs, answers: victims, refused } = one.state;
  expect({ name, refused }).toEqual({ name, refused: [] });
  const failed = answers
    .filter(({ status }) => status >= 500)
    .map(({ status, text }) => `${status} ${text.slice(0, 300)}`);
  expect({ name, failed }).toEqual({ name, failed: [] });
  const counts = new Map<number, number>();
  for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1);
  const said = new Map(answers.flatMap(({ status, text }) => (status === 200 ? [] : [[status, text.slice(0, 160)]])));
  const statuses = [...counts].map(([status, count]) => `${status}×${count} ${said.get(status) ?? ''}`).join(' ');
  return { name, delayMs, memory, victimMs, victims, statuses };
}

function hold(rows: readonly Row[]): void {
  const text = rows.map(
    ({ name, delayMs, memory, victimMs, victims, statuses }) =>
      `${name}: thread kept ${Math.round(delayMs)} ms, victim waited ${Math.round(victimMs)} ms (${victims} answers), ` +
      `${Math.round(memory)} MiB; ${statuses}`,
  );
  console.log(text.join('\n'));
  expect(rows.filter(({ delayMs }) => !(delayMs < longestMs)).map(({ name }) => name)).toEqual([]);
  expect(rows.filter(({ memory }) => !(memory < mostMemory)).map(({ name }) => name)).toEqual([]);
  // Whatever is going on, the victim's answers keep coming: each of its rounds has four.
  expect(rows.filter(({ victims }) => victims < 4).map(({ name }) => name)).toEqual([]);
}

test('what was shown to freeze others does so no more', async () => {
  const sockets = slowConnections(50);
  const rows: Row[] = [];
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
  readonly maxLength?: number;
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
}

/** A value that a schema allows, as large as it may be where `large` says so. */
function drawn(schema: Schema, document: Document, large: () => boolean, room: Room, depth = 0): unknown {
  if (schema.$ref !== undefined) {
    return drawn(document.components.schemas[schema.$ref.split('/').at(-1)!]!, document, large, room, depth);
  }
  const [chosen] = schema.oneOf ?? schema.anyOf ?? schema.allOf ?? [];
  if (chosen) return drawn(chosen, document, large, room, depth);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[large() ? schema.enum.length - 1 : 0];
  room.bytes -= 8;
  if (schema.type === 'array') {
    const most = large() ? Math.min(schema.maxItems ?? 100_000, depth > 2 ? 10 : 100_000) : 1;
    const list: unknown[] = [];
    while (list.length < most && room.bytes > 0) list.push(drawn(schema.items ?? {}, document, large, room, depth + 1));
    return list;
  }
  if (schema.type === 'object') {
    const members = Object.entries(schema.properties ?? {});
    return Object.fromEntries(
      members.map(([name, member]) => {
        room.bytes -= name.length;
        return [name, drawn(member, document, large, room, depth + 1)];
      }),
    );
  }
  if (schema.type === 'integer' || schema.type === 'number') return large() ? 2 ** 31 : 1;
  if (schema.type === 'boolean') return true;
  if (schema.format === 'uuid') return member.organizationId;
  if (schema.pattern?.includes('[0-9]') || schema.pattern?.includes('\\d')) return large() ? '9'.repeat(15) : '1';
  const length = large() ? Math.min(schema.maxLength ?? 1_000_000, Math.max(1, room.bytes)) : 6;
  room.bytes -= length;
  return 'ab'.repeat(Math.ceil(length / 2)).slice(0, length);
}

/** What becomes of a request that is well formed: some of it doubled, nested or repeated. */
function neighbour(value: unknown, kind: 'as it is' | 'doubled' | 'nested' | 'repeated', times: number): unknown {
  // As often as goes into a body.
  const often = (length: number) => Math.max(1, Math.min(2 ** times, Math.floor(2 ** 20 / Math.max(1, length))));
  if (typeof value === 'string') return kind === 'doubled' ? value.repeat(often(value.length)) : value;
  if (Array.isArray(value)) {
    if (kind === 'repeated' && value.length > 0) {
      const [first] = value as unknown[];
      return Array.from({ length: often(JSON.stringify(first).length) }, () => first);
    }
    return value.map((item) => neighbour(item, kind, times));
  }
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, item]) => [name, neighbour(item, kind, times)] as const);
  const changed = Object.fromEntries(members) as unknown;
  if (kind !== 'nested') return changed;
  return Object.fromEntries(
    members.map(([name, item]) => [name, Array.from({ length: times * 4 }).reduce((inner: unknown) => [inner], item)]),
  );
}

test(
  'nor does what is drawn: every path, up to every published limit, doubled, nested, repeated',
  async () => {
    const document = (await exchange(`${server.url}/openapi.json`)).body as Document;
    const paths = Object.keys(document.paths).filter((path) => /^(?:\/public\/v1\/(?:submit|query)|\/v1)\//.test(path));
    const request = fc.record({
      turn: fc.nat(),
      larges: fc.array(fc.boolean(), { minLength: 5, maxLength: 40 }),
      bytes: fc.constantFrom(1_000, 60_000, 1_000_000),
      kind: fc.constantFrom('as it is' as const, 'doubled' as const, 'nested' as const, 'repeated' as const),
      times: fc.integer({ min: 1, max: 12 }),
      isMember: fc.boolean(),
    });
    const ends = performance.now() + drawnMs;
    const rows: Row[] = [];
    const seen = new Set<string>();
    for (let round = 0; round === 0 || performance.now() < ends; round++) {
      const some = fc.sample(request, { numRuns: 24, seed: 20_261_122 + round });
      const send = ({ turn: _, larges, bytes, kind, times: power, isMember }: (typeof some)[number], at: number) => {
        const path = paths[(round * 24 + at) % paths.length]!;
        seen.add(path);
        const schema = Object.values(document.paths[path]!.post?.requestBody?.content ?? {})[0]?.schema ?? {};
        let count = 0;
        const value = neighbour(
          drawn(schema, document, () => larges[count++ % larges.length]!, { bytes }),
          kind,
          power,
        );
        const caller = isMember ? member : strangers[0]!;
        const own = { timestampMs: String((lastTimestamp = Math.max(Date.now(), lastTimestamp + 1))) };
        const { organizationId } = caller;
        const body = JSON.stringify(path.startsWith('/v1/') ? value : { ...(value as object), ...own, organizationId });
        const text = body.length > 2 * 2 ** 20 ? body.slice(0, 2 * 2 ** 20 - 1) : body;
        return path.startsWith('/v1/') ? proxy(path.slice(4), text, caller.address) : stamped(caller, path, text);
      };
      rows.push(
        await beside(`drawn, round ${round}`, () =>
          sendAll(
            times(24, (at) => send(some[at]!, at)),
            8,
          ),
        ),
      );
    }
    const worst = rows.toSorted((one, other) => other.delayMs - one.delayMs);
    console.log(`noninterference: ${rows.length * 24} drawn requests to ${seen.size} of ${paths.length} paths`);
    hold(worst.slice(0, 5));
  },
  drawnMs + 300_000,
);
