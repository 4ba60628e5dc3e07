import { invalidField } from '../../domain/errors.js';
import type { AddressFormat, BitcoinNetwork, BitcoinScript, Curve } from '../../domain/key-formats.js';
import type { ContractInterface } from '../../domain/organization/contract-interfaces.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { signingKeyOf, type SigningKey } from '../../domain/organization/signing-keys.js';
import { testNetworkOf } from '../../domain/policy/decoded/bitcoin.js';
import type { PolicyValue, RequestPart } from '../../domain/policy/types.js';
import type { Steps } from '../../domain/steps.js';
import { addressOf } from '../../keyring/addresses.js';
import { assembleBitcoin, bitcoinPolicyValue } from '../../transactions/bitcoin.js';
import { assembleEthereum, ethereumPolicyValue, recipientOf } from '../../transactions/ethereum.js';
import type { SignedContent } from '../../transactions/payload-contents.js';
import {
  read,
  type ReadTransaction,
  type TransactionToRead,
  type UploadedInterface,
} from '../../transactions/reading.js';
import { assembleSolana, programsOf, solanaPolicyValue } from '../../transactions/solana.js';
import { assembleTron, tronPolicyValue } from '../../transactions/tron.js';
import type { ToReadAhead } from '../define-activity.js';
import type { RawSignature } from '../../ports/keyring.js';
import { Readings } from '../readings.js';
import { keyResources, type BytesToSign } from './signing-params.js';

/** Chains as the clients name them (docs/protocol.md, versions). */
export const transactionTypes = [
  'TRANSACTION_TYPE_ETHEREUM',
  'TRANSACTION_TYPE_SOLANA',
  'TRANSACTION_TYPE_TRON',
  'TRANSACTION_TYPE_BITCOIN',
  'TRANSACTION_TYPE_TEMPO',
] as const;

export type TransactionType = (typeof transactionTypes)[number];

export interface TransactionIntent {
  readonly signWith: string;
  readonly unsignedTransaction: string;
  readonly type: TransactionType;
}

/** A decoded transaction, for one key. */
interface UnderstoodTransaction {
  readonly parts: readonly BytesToSign[];
  /** Takes one signature for each of the parts; returns hex as the published clients expect it for this chain. */
  assemble(signatures: readonly RawSignature[]): string;
}

interface Chain {
  readonly name: TransactionToRead['chain'];
  readonly curve: Curve;
  /** Address formats by which a key may be named, besides its id. */
  readonly formats: RegExp;
}

const chains: Readonly<Record<Exclude<TransactionType, 'TRANSACTION_TYPE_TEMPO'>, Chain>> = {
  TRANSACTION_TYPE_ETHEREUM: {
    name: 'ETHEREUM',
    curve: 'CURVE_SECP256K1',
    formats: /^ADDRESS_FORMAT_(?:ETHEREUM|COMPRESSED|UNCOMPRESSED)$/,
  },
  TRANSACTION_TYPE_SOLANA: {
    name: 'SOLANA',
    curve: 'CURVE_ED25519',
    formats: /^ADDRESS_FORMAT_(?:SOLANA|COMPRESSED)$/,
  },
  TRANSACTION_TYPE_TRON: {
    name: 'TRON',
    curve: 'CURVE_SECP256K1',
    formats: /^ADDRESS_FORMAT_(?:TRON|COMPRESSED|UNCOMPRESSED)$/,
  },
  TRANSACTION_TYPE_BITCOIN: {
    name: 'BITCOIN',
    curve: 'CURVE_SECP256K1',
    formats: /^ADDRESS_FORMAT_(?:BITCOIN_\w+|COMPRESSED|UNCOMPRESSED)$/,
  },
};

/** The decoded transaction, for the signing key. */
function understood(read: ReadTransaction, key: SigningKey): UnderstoodTransaction {
  const { addressFormat } = key;
  const publicKey = Buffer.from(key.publicKey, 'hex');
  switch (read.chain) {
    case 'ETHEREUM': {
      const { transaction, digest } = read;
      return {
        parts: [{ bytes: digest, addressFormat }],
        assemble: ([signature]) => assembleEthereum(transaction, signature!),
      };
    }
    case 'SOLANA': {
      const { transaction, signerIndex } = read;
      return {
        parts: [{ bytes: transaction.message, addressFormat }],
        assemble: ([signature]) => assembleSolana(transaction, signerIndex!, signature!),
      };
    }
    case 'TRON': {
      const { transaction, digest } = read;
      return {
        parts: [{ bytes: digest, addressFormat }],
        assemble: ([signature]) => assembleTron(transaction, signature!),
      };
    }
    case 'BITCOIN': {
      const { transaction, inputs } = read;
      return {
        parts: inputs.map(({ digest, script }) => ({
          bytes: digest,
          // A signature does not depend on the network.
          addressFormat: `ADDRESS_FORMAT_BITCOIN_MAINNET_${script}` as const,
        })),
        assemble: (signatures) =>
          assembleBitcoin(
            transaction,
            publicKey,
            inputs.map((input, at) => ({ input, signature: signatures[at]! })),
          ),
      };
    }
  }
}

/** What policies see of transactions that this key signs, by namespace (docs/protocol.md, policy namespaces). */
export function describer(
  key: SigningKey,
  organization: OrganizationView,
): (signed: SignedContent) => Readonly<Record<string, PolicyValue>> {
  let from: string | undefined;
  return (signed) =>
    transactionValue(
      signed,
      () => (from ??= addressOf('ADDRESS_FORMAT_ETHEREUM', key.curve, Buffer.from(key.publicKey, 'hex'))),
      () => bitcoinNetworkOf(key, organization),
    );
}

/** The same for those who know only how the key is named: without the sender, and with the network of that name. */
export function keylessDescriber(signWith: string): (signed: SignedContent) => Readonly<Record<string, PolicyValue>> {
  return (signed) =>
    transactionValue(
      signed,
      () => '',
      () => testNetworkOf(signWith) ?? 'MAINNET',
    );
}

function transactionValue(
  signed: SignedContent,
  from: () => string,
  network: () => BitcoinNetwork,
): Readonly<Record<string, PolicyValue>> {
  switch (signed.chain) {
    case 'ETHEREUM':
      return { eth: { tx: ethereumPolicyValue(signed.transaction, from(), signed.call) } };
    case 'SOLANA':
      return { solana: { tx: solanaPolicyValue(signed.transaction, signed.calls) } };
    case 'TRON':
      return { tron: { tx: tronPolicyValue(signed.transaction) } };
    case 'BITCOIN':
      return { bitcoin: { tx: bitcoinPolicyValue(signed.transaction, network()) } };
    case 'BITCOIN_PREIMAGE':
      return { bitcoin: { tx: bitcoinPolicyValue(signed.preimage, network()) } };
  }
}

/** @throws {CoordinatorError} INVALID_ARGUMENT */
function chainOf(type: TransactionType): Chain {
  if (type !== 'TRANSACTION_TYPE_TEMPO') return chains[type];
  const others = Object.keys(chains).join(', ');
  throw invalidField('parameters.type', `\`${type}\` is not supported here, only ${others}`);
}

const readings = new Readings<TransactionIntent, TransactionToRead>();

/** What to read, once it is clear that this key can sign it, and the name to cache it by. */
function toRead(
  { type, unsignedTransaction }: TransactionIntent,
  key: SigningKey,
  organization: OrganizationView,
): { readonly name: string; readonly job: TransactionToRead } {
  const { name: chain, curve, formats } = chainOf(type);
  if (key.curve !== curve) {
    throw invalidField(
      'parameters.signWith',
      `${type} needs a key on ${curve}, \`${key.signWith}\` is on ${key.curve}`,
    );
  }
  if (key.addressFormat !== undefined && !formats.test(key.addressFormat)) {
    throw invalidField(
      'parameters.signWith',
      `\`${key.signWith}\` is an ${key.addressFormat}, which ${type} does not have: name the key by an address of that ` +
        'chain, or by its public key',
    );
  }
  const { publicKey, addressFormat } = key;
  const called = () => {
    const addresses: ReadonlySet<string | undefined> =
      chain === 'SOLANA' ? programsOf(unsignedTransaction) : new Set([recipientOf(unsignedTransaction)]);
    return (address: string) => addresses.has(address);
  };
  const uploaded = chain === 'TRON' || chain === 'BITCOIN' ? [] : calledInterfaces(chain, called, organization);
  const interfaces = uploaded.map(({ address, json }): UploadedInterface => ({ address, json }));
  const owner = organization.parentOrganizationId ?? organization.organizationId;
  const script = chain === 'BITCOIN' ? bitcoinFormat(addressFormat)?.script : undefined;
  const name = [publicKey, script ?? '', ...uploaded.map(({ id }) => id)].join(' ');
  return { name, job: { kind: 'transaction', chain, unsignedTransaction, publicKey, script, interfaces, owner } };
}

/**
 * The decoded transaction, and the key that signs it.
 * @throws {CoordinatorError} NOT_FOUND without the key; INVALID_ARGUMENT if the key does not fit the chain or has
 * nothing to sign, if the transaction cannot be decoded, and for TRANSACTION_TYPE_TEMPO
 */
export function readTransaction(
  intent: TransactionIntent,
  organization: OrganizationView,
): { readonly key: SigningKey; readonly transaction: UnderstoodTransaction } {
  const key = signingKeyOf(organization, intent.signWith);
  const { name, job } = toRead(intent, key, organization);
  return { key, transaction: understood(readings.of(intent, name, job), key) };
}

/**
 * What a separate thread has to read before the other functions here are called. @throws {CoordinatorError} as
 * `readTransaction`
 */
export function transactionAhead(
  intent: TransactionIntent,
  organization: OrganizationView,
  steps: Steps,
): ToReadAhead | undefined {
  const { name, job } = toRead(intent, signingKeyOf(organization, intent.signWith), organization);
  return readings.ahead(intent, name, job, steps);
}

/** What policies see of the key and of the transaction. @throws {CoordinatorError} as `readTransaction` does */
export function transactionResources(
  intent: TransactionIntent,
  organization: OrganizationView,
): Readonly<Record<string, PolicyValue>> {
  const key = signingKeyOf(organization, intent.signWith);
  const { name, job } = toRead(intent, key, organization);
  return { ...keyResources(key), ...describer(key, organization)(readings.of(intent, name, job)) };
}

/** What is signed, whoever signs it; see `content` of `define-activity.ts`. @throws {CoordinatorError} */
export function transactionContent(
  { type, unsignedTransaction, signWith }: TransactionIntent,
  interfaces: readonly UploadedInterface[],
): readonly RequestPart[] {
  const { name: chain } = chainOf(type);
  const transaction = read({ kind: 'transaction', chain, unsignedTransaction, interfaces, owner: '' });
  return [{ name: 'parameters.unsignedTransaction', resources: keylessDescriber(signWith)(transaction) }];
}

function bitcoinFormat(
  format: AddressFormat | undefined,
): { readonly network: BitcoinNetwork; readonly script: BitcoinScript } | undefined {
  const [, network, script] = /^ADDRESS_FORMAT_BITCOIN_([A-Z]+)_(\w+)$/.exec(format ?? '') ?? [];
  return network && script ? { network: network as BitcoinNetwork, script: script as BitcoinScript } : undefined;
}

/**
 * The network whose addresses policies see. A PSBT names none, and a signature is valid on every one: it is mainnet for
 * a key that has an address there, whichever name was used for it, and for one that has no address at all.
 */
function bitcoinNetworkOf(
  { owner, publicKey, addressFormat }: SigningKey,
  { walletAccounts }: OrganizationView,
): BitcoinNetwork {
  const formats =
    owner.kind === 'private-key'
      ? owner.privateKey.addresses.map(({ format }) => format)
      : [...walletAccounts.values()]
          .filter((one) => one.walletId === owner.wallet.walletId && one.publicKey === publicKey)
          .map((one) => one.addressFormat);
  const [network, ...others] = new Set(formats.flatMap((format) => bitcoinFormat(format)?.network ?? []));
  if (network === undefined || network === 'MAINNET' || others.includes('MAINNET')) return 'MAINNET';
  return others.length === 0 ? network : (bitcoinFormat(addressFormat)?.network ?? 'MAINNET');
}

/** The interfaces of the contracts or programs that are called, oldest first; others need not be read. */
export function calledInterfaces(
  chain: 'ETHEREUM' | 'SOLANA',
  called: () => (address: string) => boolean,
  { contractInterfaces }: OrganizationView,
): readonly (UploadedInterface & { readonly id: string })[] {
  const type = `SMART_CONTRACT_INTERFACE_TYPE_${chain}`;
  const uploaded = [...contractInterfaces.values()].filter((one) => one.type === type);
  if (uploaded.length === 0) return [];
  const isCalled = called();
  const addressOf = ({ smartContractAddress }: ContractInterface) =>
    chain === 'ETHEREUM' ? smartContractAddress.toLowerCase() : smartContractAddress;
  return uploaded
    .filter((one) => isCalled(addressOf(one)))
    .map((one) => ({ id: one.smartContractInterfaceId, address: addressOf(one), json: one.smartContractInterface }));
}
