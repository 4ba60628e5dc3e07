import { pageLimit } from './common.js';
import {
  flag,
  list,
  object,
  oneOf,
  optional,
  required,
  text,
  timestamp,
  uuid,
  type Field,
  type QueryEndpoint,
} from './shape.js';

const bitcoinNetworks = ['MAINNET', 'TESTNET', 'SIGNET', 'REGTEST'];
const bitcoinScripts = ['P2PKH', 'P2SH', 'P2WPKH', 'P2WSH', 'P2TR'];

/** Section 2, wallet account. */
export const curves = ['CURVE_SECP256K1', 'CURVE_ED25519', 'CURVE_P256'];
export const pathFormats = ['PATH_FORMAT_BIP32'];
export const addressFormats = [
  'ADDRESS_FORMAT_UNCOMPRESSED',
  'ADDRESS_FORMAT_COMPRESSED',
  'ADDRESS_FORMAT_ETHEREUM',
  'ADDRESS_FORMAT_SOLANA',
  'ADDRESS_FORMAT_COSMOS',
  'ADDRESS_FORMAT_TRON',
  'ADDRESS_FORMAT_SUI',
  'ADDRESS_FORMAT_APTOS',
  ...bitcoinNetworks.flatMap((network) =>
    bitcoinScripts.map((script) => `ADDRESS_FORMAT_BITCOIN_${network}_${script}`),
  ),
  'ADDRESS_FORMAT_SEI',
  'ADDRESS_FORMAT_XLM',
  'ADDRESS_FORMAT_DOGE_MAINNET',
  'ADDRESS_FORMAT_DOGE_TESTNET',
  'ADDRESS_FORMAT_TON_V3R2',
  'ADDRESS_FORMAT_TON_V4R2',
  'ADDRESS_FORMAT_TON_V5R1',
  'ADDRESS_FORMAT_XRP',
  'ADDRESS_FORMAT_SPARK_MAINNET',
  'ADDRESS_FORMAT_SPARK_REGTEST',
];

const walletDetails: readonly Field[] = [
  required('walletId', uuid),
  required('walletName', text()),
  required('createdAt', timestamp),
  required('updatedAt', timestamp),
  required('exported', flag),
  required('imported', flag),
];

const walletAccount: readonly Field[] = [
  required('walletAccountId', uuid),
  required('organizationId', uuid),
  required('walletId', uuid),
  required('curve', oneOf(curves)),
  required('pathFormat', oneOf(pathFormats)),
  required('path', text()),
  required('addressFormat', oneOf(addressFormats)),
  required('address', text()),
  required('createdAt', timestamp),
  required('updatedAt', timestamp),
  optional('publicKey', text()),
  optional('walletDetails', object(...walletDetails)),
];

const oauthProvider: readonly Field[] = [
  required('providerId', uuid),
  required('providerName', text()),
  required('issuer', text()),
  required('audience', text()),
  required('subject', text()),
  required('createdAt', timestamp),
  required('updatedAt', timestamp),
];

const bootProof: readonly Field[] = [
  required('ephemeralPublicKeyHex', text({ form: 'hex' })),
  required('cloudAttestationDocB64', text()),
  required('qosManifestB64', text()),
  required('qosManifestEnvelopeB64', text()),
  required('deploymentLabel', text()),
  required('enclaveApp', text()),
  required('owner', text()),
  required('createdAt', timestamp),
  optional('qosManifestVersion', text()),
];

/** Section 4.4. */
export const queries: readonly QueryEndpoint[] = [
  {
    section: '4.4',
    path: 'list_wallet_accounts',
    body: [
      required('organizationId', uuid),
      optional('walletId', uuid, { names: 'wallet' }),
      optional('includeWalletDetails', flag),
      optional(
        'paginationOptions',
        object(
          optional(
            'limit',
            text({
              form: 'decimal',
              limit: { least: pageLimit.least, most: pageLimit.most, source: 'specification' },
            }),
          ),
          optional('before', uuid, { names: 'wallet account' }),
          optional('after', uuid, { names: 'wallet account' }),
        ),
      ),
    ],
    response: [required('accounts', list(object(...walletAccount)))],
  },
  {
    section: '4.4',
    path: 'get_oauth_providers',
    body: [required('organizationId', uuid), optional('userId', uuid, { names: 'user' })],
    response: [required('oauthProviders', list(object(...oauthProvider)))],
  },
  {
    section: '4.4',
    path: 'get_boot_proof',
    body: [required('organizationId', uuid), required('ephemeralKey', text({ form: 'hex' }))],
    response: [required('bootProof', object(...bootProof))],
  },
];
