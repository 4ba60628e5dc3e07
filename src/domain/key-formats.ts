/** The curves a wallet account or a private key may be on, in the order of the specification (section 2). */
export const CURVES = ['CURVE_SECP256K1', 'CURVE_ED25519', 'CURVE_P256'] as const;

export type Curve = (typeof CURVES)[number];

/** The curves of API keys (docs/protocol.md, API key stamps). */
export type ApiKeyCurve = 'API_KEY_CURVE_P256' | 'API_KEY_CURVE_SECP256K1' | 'API_KEY_CURVE_ED25519';

export type BitcoinNetwork = 'MAINNET' | 'TESTNET' | 'SIGNET' | 'REGTEST';
export type BitcoinScript = 'P2PKH' | 'P2SH' | 'P2WPKH' | 'P2WSH' | 'P2TR';

/** Every address format (specification, section 2). */
export type AddressFormat =
  | 'ADDRESS_FORMAT_UNCOMPRESSED'
  | 'ADDRESS_FORMAT_COMPRESSED'
  | 'ADDRESS_FORMAT_ETHEREUM'
  | 'ADDRESS_FORMAT_SOLANA'
  | 'ADDRESS_FORMAT_COSMOS'
  | 'ADDRESS_FORMAT_TRON'
  | 'ADDRESS_FORMAT_SUI'
  | 'ADDRESS_FORMAT_APTOS'
  | `ADDRESS_FORMAT_BITCOIN_${BitcoinNetwork}_${BitcoinScript}`
  | 'ADDRESS_FORMAT_SEI'
  | 'ADDRESS_FORMAT_XLM'
  | 'ADDRESS_FORMAT_DOGE_MAINNET'
  | 'ADDRESS_FORMAT_DOGE_TESTNET'
  | 'ADDRESS_FORMAT_TON_V3R2'
  | 'ADDRESS_FORMAT_TON_V4R2'
  | 'ADDRESS_FORMAT_TON_V5R1'
  | 'ADDRESS_FORMAT_XRP'
  | 'ADDRESS_FORMAT_SPARK_MAINNET'
  | 'ADDRESS_FORMAT_SPARK_REGTEST';

/** The languages a wallet may be exported in. */
export const MNEMONIC_LANGUAGES = [
  'MNEMONIC_LANGUAGE_ENGLISH',
  'MNEMONIC_LANGUAGE_SIMPLIFIED_CHINESE',
  'MNEMONIC_LANGUAGE_TRADITIONAL_CHINESE',
  'MNEMONIC_LANGUAGE_CZECH',
  'MNEMONIC_LANGUAGE_FRENCH',
  'MNEMONIC_LANGUAGE_ITALIAN',
  'MNEMONIC_LANGUAGE_JAPANESE',
  'MNEMONIC_LANGUAGE_KOREAN',
  'MNEMONIC_LANGUAGE_SPANISH',
] as const;

export type MnemonicLanguage = (typeof MNEMONIC_LANGUAGES)[number];

/** How many words a mnemonic may have (BIP-39, "Generating the mnemonic"). */
export const MNEMONIC_LENGTHS: readonly number[] = [12, 15, 18, 21, 24];
