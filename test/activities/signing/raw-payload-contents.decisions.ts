import { schnorr } from '@noble/curves/secp256k1.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { base58 } from '@scure/base';
import { RLP } from 'micro-eth-signer/core/rlp.js';
import { hashAuthorization } from 'viem/utils';
import { serializeTransaction, toPrefixedMessage } from 'viem';
import { signRawPayload } from '../../../src/activities/signing/sign-raw-payload.js';
import { signRawPayloads } from '../../../src/activities/signing/sign-raw-payloads.js';
import { signTransaction } from '../../../src/activities/signing/sign-transaction.js';
import { Doubt, type PolicyValue } from '../../../src/domain/policy/types.js';
import { unsignedSolana } from '../../../src/transactions/unsigned-solana.js';
import { unsignedTron } from '../../../packages/analyze/src/trial/unsigned-tron.js';
import { Signers } from './signers.js';

type Key = 'ethereum' | 'taproot' | 'spark' | 'solana' | 'p256';
const keys: Readonly<Record<Key, Parameters<Signers['addWallet']>[1][number]>> = {
  ethereum: { curve: 'CURVE_SECP256K1', path: "m/44'/60'/0'/0/0", addressFormat: 'ADDRESS_FORMAT_ETHEREUM' },
  taproot: { curve: 'CURVE_SECP256K1', path: "m/86'/0'/0'/0/0", addressFormat: 'ADDRESS_FORMAT_BITCOIN_MAINNET_P2TR' },
  spark: { curve: 'CURVE_SECP256K1', path: "m/8797555'/0'/0'", addressFormat: 'ADDRESS_FORMAT_SPARK_MAINNET' },
  solana: { curve: 'CURVE_ED25519', path: "m/44'/501'/0'/0'", addressFormat: 'ADDRESS_FORMAT_SOLANA' },
  p256: { curve: 'CURVE_P256', path: "m/0'/0", addressFormat: 'ADDRESS_FORMAT_COMPRESSED' },
};
const namespaces = [
  'eth.tx',
  'eth.eip_712',
  'eth.eip_7702_authorization',
  'solana.tx',
  'tron.tx',
  'bitcoin.tx',
] as const;
type Namespace = (typeof namespaces)[number];
type Expected = Partial<Record<Namespace, 'read' | 'unreadable'>>;

const to = `0x${'11'.repeat(20)}` as const;
const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.replace(/^0x/, ''), 'hex'));
const concat = (...parts: readonly Uint8Array[]): Uint8Array => Uint8Array.from(Buffer.concat(parts));
const text = (value: string): Uint8Array => Uint8Array.from(Buffer.from(value));
const [SHA256, KECCAK256, NO_OP, NONE] = ['SHA256', 'KECCAK256', 'NO_OP', 'NOT_APPLICABLE'];

const common = { to, value: 1n, nonce: 3, gas: 21_000n, chainId: 1 } as const;
const legacy = bytes(serializeTransaction({ ...common, type: 'legacy', gasPrice: 1n }));
const eip1559 = bytes(serializeTransaction({ ...common, type: 'eip1559', maxFeePerGas: 1n, maxPriorityFeePerGas: 1n }));
const authorization = concat(Uint8Array.of(5), RLP.encode([1n, bytes(to), 7n]));
const typedDataPreimage = concat(bytes('1901'), new Uint8Array(64).fill(7));

const number32 = (value: number) => bytes(value.toString(16).padStart(8, '0')).toReversed();
/** Before segwit: one input whose script is in its place, and one output. */
const legacyPreimage = (sighashType: number, version = 2) =>
  concat(
    number32(version),
    Uint8Array.of(1),
    new Uint8Array(32).fill(9),
    number32(4),
    Uint8Array.of(3, 0x51, 0x52, 0x53),
    number32(0xfffffffd),
    Uint8Array.of(1),
    bytes('1027000000000000'),
    Uint8Array.of(22, 0, 20),
    new Uint8Array(20).fill(1),
    number32(800_000),
    number32(sighashType),
  );
const segwitPreimage = concat(
  number32(2),
  new Uint8Array(100).fill(9),
  Uint8Array.of(25),
  new Uint8Array(25 + 52).fill(8),
);
const taprootTag = sha256(text('TapSighash'));
const taprootMessage = concat(Uint8Array.of(0, 1), new Uint8Array(173).fill(5));
const sighashTypes = [0, 2, 3, 0x41, 0x81, 0x82, 0x83];

const hidden = {
  'eth.tx': 'unreadable',
  'eth.eip_712': 'unreadable',
  'eth.eip_7702_authorization': 'unreadable',
  'tron.tx': 'unreadable',
  'bitcoin.tx': 'unreadable',
} as const;

describe('policies read a raw payload as', () => {
  let signers: Signers;
  let signWith: Readonly<Record<Key, string>>;
  let tron: Uint8Array;
  let message: Uint8Array;
  let versionZero: Uint8Array;
  let serialized: Uint8Array;

  beforeAll(async () => {
    signers = await Signers.open();
    const { accounts } = await signers.addWallet(100, Object.values(keys));
    signWith = Object.fromEntries(Object.keys(keys).map((key, at) => [key, accounts[at]!.address])) as typeof signWith;
    tron = bytes(
      unsignedTron({
        refBlockBytes: 'abcd',
        refBlockHash: '0123456789abcdef',
        expiration: 1_700_000_060_000n,
        timestamp: 1_700_000_000_000n,
        data: '',
        feeLimit: 0n,
        permissionId: 0n,
        type: 'TransferContract',
        fields: {
          owner_address: 'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb',
          to_address: 'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb',
          amount: 5n,
        },
      }),
    );
    const sent = {
      feePayer: signWith.solana,
      recentBlockhash: base58.encode(new Uint8Array(32).fill(4)),
      instructions: [{ programKey: base58.encode(new Uint8Array(32).fill(8)), data: Uint8Array.of(1), accounts: [] }],
    };
    serialized = bytes(unsignedSolana(sent));
    message = serialized.slice(65);
    const table = { tableKey: base58.encode(new Uint8Array(32).fill(3)), writableIndexes: [1], readonlyIndexes: [] };
    versionZero = bytes(unsignedSolana({ ...sent, tables: [table] })).slice(65);
  });

  function outcomes(resources: Readonly<Record<string, PolicyValue>>): Expected {
    const read = namespaces.flatMap((name) => {
      const [root, field] = name.split('.') as [string, string];
      const value = (resources[root] as Readonly<Record<string, PolicyValue>> | undefined)?.[field];
      if (value === undefined) return [];
      return [[name, value instanceof Doubt ? value.kind : 'read']];
    });
    return Object.fromEntries(read) as Expected;
  }

  const request = (key: Key, payload: Uint8Array, hash: string) => ({
    signWith: signWith[key],
    payload: Buffer.from(payload).toString('hex'),
    encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
    hashFunction: `HASH_FUNCTION_${hash}`,
  });

  it.each<[string, Key, () => Uint8Array, string, Expected]>([
    ['an Ethereum transaction', 'ethereum', () => legacy, KECCAK256, { 'eth.tx': 'read' }],
    ['a typed Ethereum transaction', 'ethereum', () => eip1559, KECCAK256, { 'eth.tx': 'read' }],
    ['an authorization', 'ethereum', () => authorization, KECCAK256, { 'eth.eip_7702_authorization': 'read' }],
    ['a Tron transaction', 'ethereum', () => tron, SHA256, { 'tron.tx': 'read' }],
    ['a Bitcoin transaction', 'ethereum', () => legacyPreimage(1), SHA256, { 'bitcoin.tx': 'read' }],
    [
      'a Bitcoin transaction of any version',
      'ethereum',
      () => legacyPreimage(1, 7e8),
      SHA256,
      { 'bitcoin.tx': 'read' },
    ],
    ['a Solana message', 'solana', () => message, NONE, { 'solana.tx': 'read' }],
    ['a Solana message of version 0', 'solana', () => versionZero, NONE, { 'solana.tx': 'read' }],

    ['a digest', 'ethereum', () => keccak_256(legacy), NO_OP, hidden],
    ['a digest for BIP-340', 'taproot', () => keccak_256(legacy), NO_OP, { 'bitcoin.tx': 'unreadable' }],
    ['a digest for BIP-340, by a Spark address', 'spark', () => sha256(tron), NO_OP, { 'bitcoin.tx': 'unreadable' }],
    [
      'the preimage of typed data',
      'ethereum',
      () => typedDataPreimage,
      KECCAK256,
      {
        'eth.tx': 'unreadable',
        'eth.eip_712': 'unreadable',
        'eth.eip_7702_authorization': 'unreadable',
      },
    ],
    ['the first of two hashes', 'ethereum', () => sha256(legacyPreimage(1)), SHA256, { 'bitcoin.tx': 'unreadable' }],
    ['a preimage of BIP-143', 'ethereum', () => segwitPreimage, SHA256, { 'bitcoin.tx': 'unreadable' }],
    [
      'a preimage of BIP-341',
      'taproot',
      () => concat(taprootTag, taprootTag, taprootMessage),
      SHA256,
      {
        'bitcoin.tx': 'unreadable',
      },
    ],
    ['a message of BIP-341', 'taproot', () => taprootMessage, SHA256, { 'bitcoin.tx': 'unreadable' }],
    ...sighashTypes.map((type): [string, Key, () => Uint8Array, string, Expected] => [
      `a part of a Bitcoin transaction, sighash type ${type}`,
      'ethereum',
      () => legacyPreimage(type),
      SHA256,
      { 'bitcoin.tx': 'unreadable' },
    ]),

    [
      'an Ethereum transaction and more',
      'ethereum',
      () => concat(legacy, Uint8Array.of(0)),
      KECCAK256,
      {
        'eth.tx': 'unreadable',
      },
    ],
    [
      'a typed one and more',
      'ethereum',
      () => concat(eip1559, Uint8Array.of(0)),
      KECCAK256,
      { 'eth.tx': 'unreadable' },
    ],
    ['one of fewer fields', 'ethereum', () => RLP.encode([1n, 2n, 3n]), KECCAK256, { 'eth.tx': 'unreadable' }],
    [
      'one of an unknown type',
      'ethereum',
      () => concat(Uint8Array.of(0x71), legacy),
      KECCAK256,
      {
        'eth.tx': 'unreadable',
      },
    ],
    [
      'a signed one',
      'ethereum',
      () => RLP.encode([3n, 1n, 21000n, bytes(to), 1n, '', 27n, 5n, 6n]),
      KECCAK256,
      {
        'eth.tx': 'unreadable',
      },
    ],
    [
      'an authorization and more',
      'ethereum',
      () => concat(authorization, Uint8Array.of(0)),
      KECCAK256,
      {
        'eth.tx': 'unreadable',
        'eth.eip_7702_authorization': 'unreadable',
      },
    ],
    [
      'a Tron transaction and more',
      'ethereum',
      () => concat(tron, bytes('9a0101ff')),
      SHA256,
      {
        'tron.tx': 'unreadable',
      },
    ],
    [
      'a Solana message and more',
      'solana',
      () => concat(message, Uint8Array.of(0)),
      NONE,
      {
        'solana.tx': 'unreadable',
      },
    ],
    [
      'a Solana message of a later version',
      'solana',
      () => concat(Uint8Array.of(0x81), message),
      NONE,
      {
        'solana.tx': 'unreadable',
      },
    ],
    [
      'a Solana message that another key signs',
      'solana',
      () => message.map((byte, at) => (at === 4 ? 1 : byte)),
      NONE,
      {
        'solana.tx': 'unreadable',
      },
    ],

    ['plain text', 'ethereum', () => text('hello'), KECCAK256, {}],
    ['text that does not begin in ASCII', 'ethereum', () => text('Äpfel, 苹果'), KECCAK256, {}],
    ['text as long as its first byte would say', 'ethereum', () => text('Äpf'), KECCAK256, {}],
    ['text', 'ethereum', () => text('\nhello'), SHA256, {}],
    ['a transaction under the hash of another chain', 'ethereum', () => eip1559, SHA256, {}],
    ['a Tron transaction under the hash of another chain', 'ethereum', () => tron, KECCAK256, {}],
    ['a digest that is hashed again', 'ethereum', () => keccak_256(legacy).fill(7, 0, 2), KECCAK256, {}],
    ['a personal message', 'ethereum', () => bytes(toPrefixedMessage('hello')), KECCAK256, {}],
    ['a Solana text', 'solana', () => text('sign in to the shop'), NONE, {}],
    ['a Solana text that begins with control characters', 'solana', () => text('\n\t\thello'.repeat(50)), NONE, {}],
    ['an off-chain message', 'solana', () => concat(bytes('ff'), text('solana offchain'), message), NONE, {}],
    ['bytes of a key that no such chain has', 'p256', () => legacy, KECCAK256, {}],
    ['a digest of a key that no such chain has', 'p256', () => keccak_256(legacy), NO_OP, {}],
    ['bytes for BIP-340', 'taproot', () => legacy, KECCAK256, {}],
  ])('%s', (_name, key, payload, hash, expected) => {
    const intent = request(key, payload(), hash);
    expect(outcomes(signers.resources(signRawPayload, intent))).toEqual(expected);
    const { payload: one, ...rest } = intent;
    expect(Object.values(signers.payloads(signRawPayloads, { ...rest, payloads: [one] })).map(outcomes)).toEqual([
      expected,
    ]);
  });

  it('the very values that sign_transaction shows', () => {
    const asTransaction = (key: Key, type: string, unsigned: Uint8Array) =>
      signers.resources(signTransaction, {
        signWith: signWith[key],
        type: `TRANSACTION_TYPE_${type}`,
        unsignedTransaction: Buffer.from(unsigned).toString('hex'),
      });
    const asPayload = (key: Key, payload: Uint8Array, hash: string) =>
      signers.resources(signRawPayload, request(key, payload, hash));
    expect(asPayload('ethereum', eip1559, KECCAK256)).toEqual(asTransaction('ethereum', 'ETHEREUM', eip1559));
    expect(asPayload('solana', message, NONE)).toEqual(asTransaction('solana', 'SOLANA', serialized));
    expect(asPayload('ethereum', tron, SHA256)['tron']).toHaveProperty('tx.contract.0.amount', 5n);
    const { eth } = asPayload('ethereum', authorization, KECCAK256);
    expect(eth).toEqual({ eip_7702_authorization: { address: to, chain_id: 1n, nonce: 7n } });
    expect(hashAuthorization({ address: to, chainId: 1, nonce: 7 })).toBe(
      `0x${Buffer.from(keccak_256(authorization)).toString('hex')}`,
    );
  });

  it('what a legacy Bitcoin signature covers', () => {
    const { bitcoin } = signers.resources(signRawPayload, request('ethereum', legacyPreimage(1), SHA256));
    expect(bitcoin).toEqual({
      tx: {
        version: '2',
        inputs: [{ tx_id: '09'.repeat(32), vout: 4n, sequence: 0xfffffffdn }],
        outputs: [expect.objectContaining({ value: 10_000n, script_pubkey: `0014${'01'.repeat(20)}` })],
        locktime: { amount: 800_000n, type: 'Blocks' },
        fee: expect.any(Doubt) as unknown,
      },
    });
  });

  it('text, where its bytes are those of a transaction', () => {
    const raw = RLP.encode([1n, 2n, 3n, '', 4n, '', 5n, '', '']);
    const payload = Buffer.from(raw).toString('latin1');
    expect(Buffer.from(payload).equals(Buffer.from(raw))).toBe(false);
    // Only ASCII is the same in UTF-8: a list of less than 0x80 bytes begins with a byte above it.
    const intent = { ...request('solana', message, NONE), encoding: 'PAYLOAD_ENCODING_TEXT_UTF8' };
    const ascii = Buffer.from(message.map((byte) => byte & 0x7f)).toString();
    expect(outcomes(signers.resources(signRawPayload, { ...intent, payload: ascii }))).toEqual({
      'solana.tx': 'unreadable',
    });
  });

  it('each of several by itself, and those that hide the same as one', () => {
    const intent = {
      signWith: signWith.ethereum,
      payloads: [text('one'), legacy, text('two'), eip1559, legacy, legacy.slice(1, -1), legacy.slice(0, -1)].map(
        (one) => Buffer.from(one).toString('hex'),
      ),
      encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
      hashFunction: 'HASH_FUNCTION_KECCAK256',
    };
    const read = Object.entries(signers.payloads(signRawPayloads, intent));
    expect(read.map(([name, resources]) => [name, outcomes(resources)['eth.tx']])).toEqual([
      ['parameters.payloads[0]', undefined],
      ['parameters.payloads[1]', 'read'],
      ['parameters.payloads[3]', 'read'],
      ['parameters.payloads[5]', 'unreadable'],
    ]);
  });

  it('unreadable, where there is too much to read, and signs it all the same', async () => {
    const data = '00'.repeat(900);
    const payloads = Array.from({ length: 1_000 }, (_, nonce) => {
      const large = { ...common, nonce, data: `0x${data}` as const, type: 'legacy', gasPrice: 1n } as const;
      return serializeTransaction({ ...large, data: `0x${data.repeat(12)}` }).slice(2);
    });
    const intent = {
      signWith: signWith.ethereum,
      payloads,
      encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
      hashFunction: 'HASH_FUNCTION_KECCAK256',
    };
    const read = Object.values(signers.payloads(signRawPayloads, intent)).map((one) => outcomes(one)['eth.tx']);
    expect(new Set(read)).toEqual(new Set(['read', 'unreadable']));
    const { signatures } = await signers.prepare(signRawPayloads, intent);
    expect(signatures).toHaveLength(payloads.length);
  });

  it('a preimage that really is signed for taproot', async () => {
    const preimage = concat(taprootTag, taprootTag, taprootMessage);
    const { r, s } = await signers.sign(signRawPayload, request('taproot', preimage, SHA256));
    const digest = schnorr.utils.taggedHash('TapSighash', taprootMessage);
    const byDigest = await signers.sign(signRawPayload, request('taproot', digest, NO_OP));
    expect([r, s]).toEqual([byDigest.r, byDigest.s]);
  });
});
