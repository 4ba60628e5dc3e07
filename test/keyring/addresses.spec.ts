import { bech32, bech32m } from '@scure/base';
import { CURVES } from '../../src/domain/key-formats.js';
import type { AddressFormat, Curve } from '../../src/domain/key-formats.js';
import { ADDRESS_FORMATS, addressOf, checkAddressFormat, checksumAddress } from '../../src/keyring/addresses.js';
import { publicKeyOf } from '../../src/keyring/curves.js';
import { canonicalPath, derivePrivateKey } from '../../src/keyring/derivation.js';
import { mnemonicToSeed } from '../../src/keyring/mnemonic.js';
import { taprootOutputKey } from '../../src/keyring/taproot.js';
import { fromHex, oracle, readVectors } from './read-vectors.js';

const FORMATS = Object.keys(ADDRESS_FORMATS) as AddressFormat[];
const ABANDON = `${'abandon '.repeat(11)}about`;

const addressOfKey = (format: AddressFormat, curve: Curve, privateKey: string): string =>
  addressOf(format, curve, publicKeyOf(curve, fromHex(privateKey)));

test('the formats are those of the specification', () => {
  expect(FORMATS).toHaveLength(38);
  const networks = ['MAINNET', 'TESTNET', 'SIGNET', 'REGTEST'];
  const scripts = ['P2PKH', 'P2SH', 'P2WPKH', 'P2WSH', 'P2TR'];
  const others = `UNCOMPRESSED COMPRESSED ETHEREUM SOLANA COSMOS TRON SUI APTOS SEI XLM DOGE_MAINNET DOGE_TESTNET
    TON_V3R2 TON_V4R2 TON_V5R1 XRP SPARK_MAINNET SPARK_REGTEST`.split(/\s+/);
  const bitcoin = networks.flatMap((network) => scripts.map((script) => `BITCOIN_${network}_${script}`));
  expect([...FORMATS].sort()).toEqual([...others, ...bitcoin].map((name) => `ADDRESS_FORMAT_${name}`).sort());
});

describe("every format, against the chain's own SDK", () => {
  const cases = FORMATS.flatMap((format) => ADDRESS_FORMATS[format].curves.map((curve) => [format, curve] as const));

  test.each(cases)('%s on %s', (format, curve) => {
    const accounts = oracle.filter((account) => account.curve === curve);
    const expected = accounts.map(({ privateKey, addresses }) => [privateKey, addresses[format]]);
    expect(expected.length).toBeGreaterThanOrEqual(26);
    expect(expected.every(([, address]) => address !== undefined)).toBe(true);
    expect(accounts.map(({ privateKey }) => [privateKey, addressOfKey(format, curve, privateKey)])).toEqual(expected);
  });

  test('the oracle knows no format on a curve that the table has not', () => {
    for (const { curve, addresses } of oracle) {
      const known = FORMATS.filter((format) => ADDRESS_FORMATS[format].curves.includes(curve));
      expect(Object.keys(addresses).sort()).toEqual(known.sort());
    }
  });
});

describe('published vectors', () => {
  test('one key has the addresses that wallet-core gives it', () => {
    const { privateKey, addresses } = readVectors<{
      privateKey: string;
      addresses: { chain: string; address: string; publicKeyType: string }[];
    }>('addresses/walletcore_coin_addresses.json');
    const formats: Record<string, AddressFormat> = {
      Ethereum: 'ADDRESS_FORMAT_ETHEREUM',
      Bitcoin: 'ADDRESS_FORMAT_BITCOIN_MAINNET_P2WPKH',
      Dogecoin: 'ADDRESS_FORMAT_DOGE_MAINNET',
      Solana: 'ADDRESS_FORMAT_SOLANA',
      Cosmos: 'ADDRESS_FORMAT_COSMOS',
      Sei: 'ADDRESS_FORMAT_SEI',
      Sui: 'ADDRESS_FORMAT_SUI',
      Aptos: 'ADDRESS_FORMAT_APTOS',
      XRP: 'ADDRESS_FORMAT_XRP',
      TON: 'ADDRESS_FORMAT_TON_V4R2',
    };
    const seen: string[] = [];
    for (const { chain, address } of addresses) {
      const format = formats[chain];
      if (format === undefined) continue;
      seen.push(chain);
      const [curve] = ADDRESS_FORMATS[format].curves;
      expect([chain, addressOfKey(format, curve!, privateKey)]).toEqual([chain, address]);
    }
    expect(seen.sort()).toEqual(Object.keys(formats).sort());
  });

  test('EIP-55 addresses have the letter case that the hash says', () => {
    const checksummed = Object.values(readVectors<Record<string, string[]>>('ethereum/eip55_addresses.json')).flat();
    expect(checksummed).toHaveLength(8);
    for (const address of checksummed) expect(checksumAddress(fromHex(address))).toBe(address);
    const accounts = readVectors<{ privateKey: string; address: string }[]>('ethereum/ethers_accounts.json');
    expect(accounts.length).toBeGreaterThan(200);
    for (const { privateKey, address } of accounts) {
      expect(addressOfKey('ADDRESS_FORMAT_ETHEREUM', 'CURVE_SECP256K1', privateKey)).toBe(address);
    }
  });

  test('the addresses of BIP-49, BIP-84 and BIP-86 come out as published', async () => {
    type Scheme = { network: 'mainnet' | 'testnet'; mnemonic: string; addresses: { path: string; address: string }[] };
    const schemes = readVectors<Record<'bip49' | 'bip84' | 'bip86', Scheme>>('hd/bip49_84_86_addresses.json');
    const scripts = { bip49: 'P2SH', bip84: 'P2WPKH', bip86: 'P2TR' } as const;
    for (const [name, { network, mnemonic, addresses }] of Object.entries(schemes)) {
      const seed = await mnemonicToSeed(mnemonic);
      const upper = network === 'testnet' ? 'TESTNET' : 'MAINNET';
      const format = `ADDRESS_FORMAT_BITCOIN_${upper}_${scripts[name as keyof typeof scripts]}` as const;
      expect(addresses.length).toBeGreaterThan(0);
      for (const { path, address } of addresses) {
        const key = derivePrivateKey('CURVE_SECP256K1', seed, path).toString('hex');
        expect([path, addressOfKey(format, 'CURVE_SECP256K1', key)]).toEqual([path, address]);
      }
    }
  });

  test('the output key without a script tree is that of BIP-341', () => {
    type Vector = {
      given: { internalPubkey: string; scriptTree: unknown };
      intermediary: { tweakedPubkey: string };
      expected: { bip350Address: string };
    };
    const { scriptPubKey } = readVectors<{ scriptPubKey: Vector[] }>('bitcoin/bip341_wallet-test-vectors.json');
    const withoutTree = scriptPubKey.filter(({ given }) => given.scriptTree === null);
    expect(withoutTree).toHaveLength(1);
    for (const { given, intermediary, expected } of withoutTree) {
      // The parity of the internal key's y has no influence.
      for (const prefix of ['02', '03']) {
        const publicKey = fromHex(prefix + given.internalPubkey);
        expect(Buffer.from(taprootOutputKey(publicKey)).toString('hex')).toBe(intermediary.tweakedPubkey);
        expect(addressOf('ADDRESS_FORMAT_BITCOIN_MAINNET_P2TR', 'CURVE_SECP256K1', publicKey)).toBe(
          expected.bip350Address,
        );
      }
    }
  });

  test('the example addresses of the generator point are those of BIP-173 and BIP-350', () => {
    const generator = publicKeyOf('CURVE_SECP256K1', fromHex('01'.padStart(64, '0')));
    const valid = ['MAINNET', 'TESTNET'].flatMap((network) =>
      (['P2WPKH', 'P2WSH'] as const).map((script) =>
        addressOf(`ADDRESS_FORMAT_BITCOIN_${network as 'MAINNET' | 'TESTNET'}_${script}`, 'CURVE_SECP256K1', generator),
      ),
    );
    // The examples section of BIP-173.
    expect(valid).toEqual([
      'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
      'bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3',
      'tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx',
      'tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7',
    ]);
  });

  test('the encoder takes what is valid by BIP-173 and BIP-350, and refuses what is not', () => {
    type Strings = { validStrings: string[]; invalidStrings: { string?: string; bytes?: string; reason: string }[] };
    const vectors = readVectors<Record<'bech32_bip173' | 'bech32m_bip350', Strings>>('bitcoin/bip173_bip350.json');
    for (const [encoding, { validStrings, invalidStrings }] of [
      [bech32, vectors.bech32_bip173],
      [bech32m, vectors.bech32m_bip350],
    ] as const) {
      for (const text of validStrings) {
        const { prefix, words } = encoding.decode(text as `${string}1${string}`, 90);
        expect(encoding.encode(prefix, words, 90)).toBe(text.toLowerCase());
      }
      for (const { string, bytes } of invalidStrings) {
        const text = string ?? Buffer.from(bytes!, 'hex').toString('latin1');
        expect(() => encoding.decode(text as `${string}1${string}`, 90)).toThrow();
      }
    }
  });

  test('Spark’s example of an identity key has the published address', () => {
    const publicKey = fromHex('0353908bac090ba741de6147a540a665537006911590f93249b2823dbe187d3213');
    expect(addressOf('ADDRESS_FORMAT_SPARK_REGTEST', 'CURVE_SECP256K1', publicKey)).toBe(
      'sparkrt1pgssx5us3wkqjza8g80xz3a9gznx25msq6g3ty8exfym9q3ahcv86vsnxxdy83',
    );
  });

  test.each<[AddressFormat, string]>([
    ['ADDRESS_FORMAT_ETHEREUM', '0x9858EfFD232B4033E47d90003D41EC34EcaEda94'],
    ['ADDRESS_FORMAT_COSMOS', 'cosmos19rl4cm2hmr8afy4kldpxz3fka4jguq0auqdal4'],
    ['ADDRESS_FORMAT_BITCOIN_MAINNET_P2WPKH', 'bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu'],
    ['ADDRESS_FORMAT_SOLANA', 'HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk'],
    ['ADDRESS_FORMAT_XLM', 'GB3JDWCQJCWMJ3IILWIGDTQJJC5567PGVEVXSCVPEQOTDN64VJBDQBYX'],
  ])('%s: the wallets’ address of `abandon … about` at the default path', async (format, address) => {
    const { curves, defaultPath } = ADDRESS_FORMATS[format];
    const seed = await mnemonicToSeed(ABANDON);
    expect(addressOfKey(format, curves[0]!, derivePrivateKey(curves[0]!, seed, defaultPath).toString('hex'))).toBe(
      address,
    );
  });
});

describe('the wrong curve', () => {
  const cases = FORMATS.flatMap((format) =>
    CURVES.filter((curve) => !ADDRESS_FORMATS[format].curves.includes(curve)).map((curve) => [format, curve] as const),
  );

  test('there are such cases', () => expect(cases).toHaveLength(38 * 3 - (2 + 3 + 28 + 8)));

  test.each(cases)('%s on %s is refused by name', (format, curve) => {
    const right = ADDRESS_FORMATS[format].curves.join(' or ');
    const message = `invalid request: accounts[0].curve: ${format} needs a key on ${right}, not on \`${curve}\``;
    expect(() => addressOf(format, curve, publicKeyOf(curve, Buffer.alloc(32, 1)), 'accounts[0].curve')).toThrow(
      message,
    );
    expect(() => checkAddressFormat(format, curve, 'accounts[0].curve')).toThrow(message);
  });
});

test.each(['ADDRESS_FORMAT_LITECOIN', 'toString', '__proto__', ''])('format %j does not exist', (format) => {
  expect(() => checkAddressFormat(format as AddressFormat, 'CURVE_SECP256K1')).toThrow('is not an address format');
});

test('a default path is a canonical one on every curve of its format', () => {
  for (const { curves, defaultPath } of Object.values(ADDRESS_FORMATS)) {
    expect(canonicalPath('CURVE_SECP256K1', defaultPath)).toBe(defaultPath);
    if (curves.length === 1) expect(canonicalPath(curves[0]!, defaultPath)).toBe(defaultPath);
  }
});
