import { invalidField } from '../../domain/errors.js';
import type { AddressFormat, BitcoinNetwork, BitcoinScript, Curve } from '../../domain/key-formats.js';
import type { ContractInterface } from '../../domain/organization/contract-interfaces.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { signingKeyOf, type SigningKey } from '../../domain/organization/signing-keys.js';
import type { PolicyValue } from '../../domain/policy/types.js';
import { addressOf } from '../../keyring/addresses.js';
import {
  assembleBitcoin,
  bitcoinPolicyValue,
  bitcoinSigningInputs,
  parseUnsignedBitcoin,
} from '../../transactions/bitcoin.js';
import {
  parseContractInterface,
  type EthereumInterface,
  type SolanaInterface,
} from '../../transactions/contract-interface.js';
import {
  assembleEthereum,
  ethereumDigest,
  ethereumPolicyValue,
  parseUnsignedEthereum,
} from '../../transactions/ethereum.js';
import {
  assembleSolana,
  parseUnsignedSolana,
  solanaPolicyValue,
  solanaSigningInput,
} from '../../transactions/solana.js';
import { assembleTron, parseUnsignedTron, tronDigest, tronPolicyValue } from '../../transactions/tron.js';
import type { RawSignature } from '../ports.js';
import { keyResources, oncePerKey, type BytesToSign } from './signing-params.js';

/** Chains as the clients name them (client protocol 6.3, sign_transaction). */
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

/** A transaction that was understood, for one key. */
interface ReadTransaction {
  readonly parts: readonly BytesToSign[];
  /** Takes one signature for each of the parts; gives hex as the published clients expect it of this chain. */
  assemble(signatures: readonly RawSignature[]): string;
  /** By namespace, as policies read it (client protocol 9.3). */
  resources(organization: OrganizationView): Readonly<Record<string, PolicyValue>>;
}

interface Chain {
  readonly curve: Curve;
  /** Address formats that a key may be named by, beside its id. */
  readonly formats: RegExp;
  /** @throws {CoordinatorError} INVALID_ARGUMENT when it cannot be read, or this key has nothing to sign in it */
  read(unsignedTransaction: string, key: SigningKey): ReadTransaction;
}

const chains: Readonly<Record<Exclude<TransactionType, 'TRANSACTION_TYPE_TEMPO'>, Chain>> = {
  TRANSACTION_TYPE_ETHEREUM: {
    curve: 'CURVE_SECP256K1',
    formats: /^ADDRESS_FORMAT_(?:ETHEREUM|COMPRESSED|UNCOMPRESSED)$/,
    read(unsignedTransaction, { curve, publicKey, addressFormat }) {
      const transaction = parseUnsignedEthereum(unsignedTransaction);
      const from = addressOf('ADDRESS_FORMAT_ETHEREUM', curve, Buffer.from(publicKey, 'hex'));
      return {
        parts: [{ bytes: ethereumDigest(transaction), addressFormat }],
        assemble: ([signature]) => assembleEthereum(transaction, signature!),
        resources: (organization) => ({
          eth: { tx: ethereumPolicyValue(transaction, from, ethereumInterfaces(organization, transaction.to)) },
        }),
      };
    },
  },
  TRANSACTION_TYPE_SOLANA: {
    curve: 'CURVE_ED25519',
    formats: /^ADDRESS_FORMAT_(?:SOLANA|COMPRESSED)$/,
    read(unsignedTransaction, { publicKey, addressFormat }) {
      const transaction = parseUnsignedSolana(unsignedTransaction);
      const { message, signerIndex } = solanaSigningInput(transaction, Buffer.from(publicKey, 'hex'));
      const programs = new Set(transaction.instructions.map(({ programKey }) => programKey));
      return {
        parts: [{ bytes: message, addressFormat }],
        assemble: ([signature]) => assembleSolana(transaction, signerIndex, signature!),
        resources: (organization) => ({
          solana: { tx: solanaPolicyValue(transaction, solanaInterfaces(organization, programs)) },
        }),
      };
    },
  },
  TRANSACTION_TYPE_TRON: {
    curve: 'CURVE_SECP256K1',
    formats: /^ADDRESS_FORMAT_(?:TRON|COMPRESSED|UNCOMPRESSED)$/,
    read(unsignedTransaction, { addressFormat }) {
      const transaction = parseUnsignedTron(unsignedTransaction);
      return {
        parts: [{ bytes: tronDigest(transaction), addressFormat }],
        assemble: ([signature]) => assembleTron(transaction, signature!),
        resources: () => ({ tron: { tx: tronPolicyValue(transaction) } }),
      };
    },
  },
  TRANSACTION_TYPE_BITCOIN: {
    curve: 'CURVE_SECP256K1',
    formats: /^ADDRESS_FORMAT_(?:BITCOIN_\w+|COMPRESSED|UNCOMPRESSED)$/,
    read(unsignedTransaction, key) {
      const transaction = parseUnsignedBitcoin(unsignedTransaction);
      const publicKey = Buffer.from(key.publicKey, 'hex');
      const inputs = bitcoinSigningInputs(transaction, publicKey, bitcoinFormat(key.addressFormat)?.script);
      return {
        parts: inputs.map(({ digest, script }) => ({
          bytes: digest,
          // The network does not matter to a signature.
          addressFormat: `ADDRESS_FORMAT_BITCOIN_MAINNET_${script}` as const,
        })),
        assemble: (signatures) =>
          assembleBitcoin(
            transaction,
            publicKey,
            inputs.map((input, at) => ({ input, signature: signatures[at]! })),
          ),
        resources: (organization) => ({
          bitcoin: { tx: bitcoinPolicyValue(transaction, bitcoinNetworkOf(key, organization)) },
        }),
      };
    },
  },
};

const readOnce = oncePerKey(({ type, unsignedTransaction }: TransactionIntent, key: SigningKey): ReadTransaction => {
  if (type === 'TRANSACTION_TYPE_TEMPO') {
    const others = Object.keys(chains).join(', ');
    throw invalidField('parameters.type', `\`${type}\` is not supported here, only ${others}`);
  }
  const { curve, formats, read } = chains[type];
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
  return read(unsignedTransaction, key);
});

/**
 * The transaction, understood, and the key that is to sign it.
 * @throws {CoordinatorError} NOT_FOUND without the key; INVALID_ARGUMENT when the key does not fit the chain or has nothing
 * to sign, when the transaction cannot be read, and for TRANSACTION_TYPE_TEMPO
 */
export function readTransaction(
  intent: TransactionIntent,
  organization: OrganizationView,
): { readonly key: SigningKey; readonly transaction: ReadTransaction } {
  const key = signingKeyOf(organization, intent.signWith);
  return { key, transaction: readOnce(intent, key) };
}

/** What policies read of the key and of the transaction. @throws {CoordinatorError} as `readTransaction` does */
export function transactionResources(
  intent: TransactionIntent,
  organization: OrganizationView,
): Readonly<Record<string, PolicyValue>> {
  const { key, transaction } = readTransaction(intent, organization);
  return { ...keyResources(key, organization), ...transaction.resources(organization) };
}

function bitcoinFormat(
  format: AddressFormat | undefined,
): { readonly network: BitcoinNetwork; readonly script: BitcoinScript } | undefined {
  const [, network, script] = /^ADDRESS_FORMAT_BITCOIN_([A-Z]+)_(\w+)$/.exec(format ?? '') ?? [];
  return network && script ? { network: network as BitcoinNetwork, script: script as BitcoinScript } : undefined;
}

/**
 * The network whose addresses policies read. A PSBT names none, and a signature is as good on every one: it is mainnet for
 * a key that has an address there, whatever name it was called by, and for one that has no address at all.
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

const ethereumParsed = new WeakMap<ContractInterface, EthereumInterface>();
const solanaParsed = new WeakMap<ContractInterface, SolanaInterface>();

/** Those of one contract, the oldest first; the others need not be read. */
function ethereumInterfaces({ contractInterfaces }: OrganizationView, to: string | undefined) {
  return [...contractInterfaces.values()]
    .filter(({ type, smartContractAddress }) => type === ethereumType && smartContractAddress.toLowerCase() === to)
    .map((uploaded) => ({
      address: uploaded.smartContractAddress,
      interface: parsedOnce(ethereumParsed, uploaded, (json) => parseContractInterface('ETHEREUM', json)),
    }));
}

function solanaInterfaces({ contractInterfaces }: OrganizationView, programs: ReadonlySet<string>) {
  return [...contractInterfaces.values()]
    .filter(({ type, smartContractAddress }) => type === solanaType && programs.has(smartContractAddress))
    .map((uploaded) => ({
      address: uploaded.smartContractAddress,
      interface: parsedOnce(solanaParsed, uploaded, (json) => parseContractInterface('SOLANA', json)),
    }));
}

const ethereumType = 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM';
const solanaType = 'SMART_CONTRACT_INTERFACE_TYPE_SOLANA';

/** An uploaded interface never changes, and may be 400 kB. */
function parsedOnce<Parsed>(
  known: WeakMap<ContractInterface, Parsed>,
  uploaded: ContractInterface,
  parse: (json: string) => Parsed,
): Parsed {
  const parsed = known.get(uploaded) ?? parse(uploaded.smartContractInterface);
  known.set(uploaded, parsed);
  return parsed;
}
