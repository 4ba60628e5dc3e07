import { isUtf8 } from 'node:buffer';
import { CoordinatorError } from '../domain/errors.js';
import { unreadable, type PolicyValue } from '../domain/policy/types.js';
import { OutOfSteps, type Steps } from '../domain/steps.js';
import { mayBeSegwitPreimage, mayBeTaprootPreimage, readLegacyPreimage, type LegacyPreimage } from './bitcoin.js';
import { authorizationPolicyValue, isRlpList, readAuthorizationPreimage } from './ethereum.js';
import type { HashFunction } from './payloads.js';
import type { ReadTransaction, TransactionToRead } from './reading.js';
import { mayBeLegacyMessage } from './solana.js';
import { mayBeRawData } from './tron.js';

/** How a key signs, if any chain that policies know takes its signatures. */
export type SignatureScheme = 'ECDSA' | 'BIP-340' | 'ED25519';

type Chain = TransactionToRead['chain'];

/** A transaction whose signature a payload gives. */
export type SignedContent = ReadTransaction | { readonly chain: 'BITCOIN_PREIMAGE'; readonly preimage: LegacyPreimage };

/** What a signed payload is, or may be, apart from plain bytes. */
export interface PayloadContent {
  /** Values by namespace, as policies see them. */
  readonly resources?: Readonly<Record<string, PolicyValue>>;
  readonly transactions?: readonly SignedContent[];
}

/** `total` is the length of all payloads of the request, in bytes. */
interface HowSigned {
  readonly hashFunction: HashFunction;
  readonly scheme: SignatureScheme;
  readonly total: number;
}

const ofDigest = 'a digest does not show what it is a digest of';
const ofHashes = 'the payload holds only hashes of what it signs';
const undecoded = 'the payload may be a transaction, and cannot be decoded as one';
const outOfSteps = 'the payloads of this request take too many steps to read';

// EIP-191: 0x19, and the version 0x01 of EIP-712. EIP-7702: the magic of an authorization.
const EIP191_PREFIX = 0x19;
const TYPED_DATA_VERSION = 0x01;
const AUTHORIZATION_MAGIC = 0x05;
/** RLP: the first byte of a list. EIP-2718: types are below 0x80; the network has 1 to 4. */
const FIRST_LIST_PREFIX = 0xc0;
const HIGHEST_ENVELOPE_TYPE = 0x7f;
const HIGHEST_KNOWN_TYPE = 0x04;
const SHA256_LENGTH = 32;

/**
 * What the signature of a payload is valid for, as far as policies have a namespace for it: `bytes` are those before
 * they are hashed. Undefined for bytes that are nothing like that. `read` decodes a transaction as `sign_transaction`
 * does.
 */
export function contentOf(
  bytes: Uint8Array,
  how: HowSigned,
  steps: Steps,
  read: (chain: Chain, bytes: Uint8Array) => ReadTransaction,
): PayloadContent | undefined {
  const { hashFunction, scheme } = how;
  const asTransaction = (chain: Chain, hidden: () => PayloadContent) =>
    orHidden(() => ({ transactions: [read(chain, bytes)] }), hidden);
  try {
    if (hashFunction === 'HASH_FUNCTION_NOT_APPLICABLE') {
      if (!mayBeSolana(bytes)) return undefined;
      const hidden = () => hiddenTx('solana', undecoded);
      // No later version can be decoded; trying to would take as many steps as decoding one.
      return bytes[0]! > VERSION_FLAG ? hidden() : asTransaction('SOLANA', hidden);
    }
    if (hashFunction === 'HASH_FUNCTION_NO_OP') return hiddenFrom(scheme, ofDigest);
    if (hashFunction === 'HASH_FUNCTION_SHA256') {
      const tron = scheme === 'ECDSA' && mayBeRawData(bytes) ? asTransaction('TRON', () => tronIn(bytes)) : undefined;
      return together(tron, bitcoinIn(bytes, how, steps));
    }
    if (scheme !== 'ECDSA') return undefined;
    const [first, second] = bytes;
    if (first === EIP191_PREFIX && second === TYPED_DATA_VERSION) return hiddenEthereum(ofHashes);
    if (first === AUTHORIZATION_MAGIC && isListPrefix(second)) return authorizationIn(bytes, steps);
    return mayBeEthereum(bytes, steps) ? asTransaction('ETHEREUM', () => hiddenTx('eth', undecoded)) : undefined;
  } catch (error) {
    if (error instanceof OutOfSteps) return hiddenFrom(scheme, outOfSteps);
    throw error;
  }
}

/** Everything that a key signs and policies have a namespace for. */
function hiddenFrom(scheme: SignatureScheme, why: string): PayloadContent {
  if (scheme === 'ED25519') return hiddenTx('solana', why);
  if (scheme === 'BIP-340') return hiddenTx('bitcoin', why);
  return together(hiddenEthereum(why), hiddenTx('tron', why), hiddenTx('bitcoin', why))!;
}

function hiddenTx(root: 'eth' | 'solana' | 'bitcoin' | 'tron', why: string): PayloadContent {
  return { resources: { [root]: { tx: unreadable(why) } } };
}

function hiddenEthereum(why: string): PayloadContent {
  const hidden = unreadable(why);
  return { resources: { eth: { tx: hidden, eip_712: hidden, eip_7702_authorization: hidden } } };
}

function together(...contents: readonly (PayloadContent | undefined)[]): PayloadContent | undefined {
  const some = contents.filter((content) => content !== undefined);
  if (some.length <= 1) return some[0];
  const resources = Object.assign({}, ...some.map((one) => one.resources)) as Record<string, PolicyValue>;
  const transactions = some.flatMap((one) => one.transactions ?? []);
  return { resources, ...(transactions.length === 0 ? {} : { transactions }) };
}

/** @throws {OutOfSteps} */
function orHidden(read: () => PayloadContent, hidden: () => PayloadContent): PayloadContent {
  try {
    return read();
  } catch (error) {
    if (error instanceof OutOfSteps || !(error instanceof CoordinatorError)) throw error;
    return hidden();
  }
}

const isListPrefix = (byte: number | undefined): boolean => (byte ?? 0) >= FIRST_LIST_PREFIX;

/** Text in UTF-8 may begin like a list, so it counts as one only if it is one to its last byte. */
function mayBeEthereum(bytes: Uint8Array, steps: Steps): boolean {
  const [first = 0, second] = bytes;
  if (isListPrefix(first)) return !isUtf8(bytes) || isRlpList(bytes, steps);
  if (first >= 1 && first <= HIGHEST_KNOWN_TYPE) return true;
  return first <= HIGHEST_ENVELOPE_TYPE && isListPrefix(second) && isRlpList(bytes.subarray(1), steps);
}

function authorizationIn(bytes: Uint8Array, steps: Steps): PayloadContent {
  return orHidden(
    () => {
      const read = readAuthorizationPreimage(bytes.subarray(1), steps);
      return { resources: { eth: { eip_7702_authorization: authorizationPolicyValue(read) } } };
    },
    () => ({ resources: { eth: { tx: unreadable(undecoded), eip_7702_authorization: unreadable(undecoded) } } }),
  );
}

const VERSION_FLAG = 0x80;
/** Solana documentation, "Off-chain message signing": its first byte is no version of a transaction. */
const OFF_CHAIN_DOMAIN = Buffer.from('\xffsolana offchain', 'latin1');

function mayBeSolana(message: Uint8Array): boolean {
  if ((message[0] ?? 0) < VERSION_FLAG) return mayBeLegacyMessage(message);
  // No version that is in use, or soon could be, begins a text in UTF-8.
  return !isUtf8(message) && !beginsWith(message, OFF_CHAIN_DOMAIN);
}

/** What begins like raw data may be a contract that cannot be read here; a text may begin with a line feed. */
function tronIn(bytes: Uint8Array): PayloadContent {
  const isText = isUtf8(bytes) && !beginsWith(bytes, Uint8Array.of(0x0a, 0x02));
  return isText ? {} : hiddenTx('tron', undecoded);
}

/** Bitcoin hashes twice, so the first of both hashes may be sent under SHA-256. */
function bitcoinIn(bytes: Uint8Array, { scheme, total }: HowSigned, steps: Steps): PayloadContent | undefined {
  if (bytes.length === SHA256_LENGTH) return hiddenTx('bitcoin', ofDigest);
  if (mayBeTaprootPreimage(bytes)) return hiddenTx('bitcoin', ofHashes);
  if (scheme !== 'ECDSA') return undefined;
  if (mayBeSegwitPreimage(bytes)) return hiddenTx('bitcoin', ofHashes);
  const hidden = () => (beginsWithVersion(bytes) ? hiddenTx('bitcoin', undecoded) : {});
  return orHidden(() => {
    const preimage = readLegacyPreimage(bytes, total, steps);
    if ('partial' in preimage) return hiddenTx('bitcoin', preimage.partial);
    return { transactions: [{ chain: 'BITCOIN_PREIMAGE', preimage }] };
  }, hidden);
}

/** 1 to 3, as every transaction in use. */
function beginsWithVersion(bytes: Uint8Array): boolean {
  const [version = 0] = bytes;
  return version >= 1 && version <= 3 && beginsWith(bytes.subarray(1), new Uint8Array(3));
}

function beginsWith(bytes: Uint8Array, prefix: Uint8Array): boolean {
  return Buffer.compare(bytes.subarray(0, prefix.length), prefix) === 0;
}
