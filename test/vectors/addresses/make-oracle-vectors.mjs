/*
 * Makes `oracle.json` beside this file and `../hd/bip39_languages_oracle.json`: keys, addresses, signatures and
 * mnemonics calculated by each chain's own SDK, to hold our few lines against. None of them is a dependency of the
 * project. To make the files again (Node 20 or newer; the output is the same every time):
 *
 *   mkdir /tmp/oracle && cd /tmp/oracle && npm init -y
 *   npm install --ignore-scripts ethers@6.15.0 @solana/web3.js@1.98.4 @cosmjs/amino@0.36.0 @sei-js/cosmjs@1.0.7 \
 *     tronweb@6.0.4 @mysten/sui@1.45.2 @aptos-labs/ts-sdk@3.1.3 bitcoinjs-lib@7.0.5 @scure/btc-signer@2.4.1 \
 *     tiny-secp256k1@2.2.4 bip32@5.0.1 bitcore-lib-doge@11.5.1 @stellar/stellar-base@14.0.1 @ton/ton@16.3.0 \
 *     @ton/core@0.63.1 @ton/crypto@3.3.0 xrpl@4.4.2 @buildonspark/spark-sdk@0.8.8 micro-key-producer@0.8.6 \
 *     elliptic@6.6.1 tweetnacl@1.0.3 bip39@3.1.0
 *   cp <repository>/test/vectors/addresses/make-oracle-vectors.mjs .
 *   node make-oracle-vectors.mjs <repository>/test/vectors
 *
 * Where two libraries can calculate a value, both do and the script stops if they differ. Only the derivation on P-256
 * has no second library: there the script has its own few lines (SLIP-0010) over elliptic's curve.
 */
import { createHash, createHmac } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Account, Ed25519PrivateKey } from '@aptos-labs/ts-sdk';
import { encodeSparkAddress } from '@buildonspark/spark-sdk';
import { Secp256k1Wallet } from '@cosmjs/amino';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import * as btcSigner from '@scure/btc-signer';
import { Keypair as SolanaKeypair } from '@solana/web3.js';
import { Keypair as StellarKeypair } from '@stellar/stellar-base';
import { deriveEd25519Path, keyPairFromSeed } from '@ton/crypto';
import { WalletContractV3R2, WalletContractV4, WalletContractV5R1 } from '@ton/ton';
import { BIP32Factory } from 'bip32';
import bip39 from 'bip39';
import * as bitcoin from 'bitcoinjs-lib';
import elliptic from 'elliptic';
import { computeAddress, HDNodeWallet } from 'ethers';
import { HDKey as Slip10Key } from 'micro-key-producer/slip10.js';
import * as secp from 'tiny-secp256k1';
import { TronWeb } from 'tronweb';
import nacl from 'tweetnacl';
import { deriveAddress as xrpAddress } from 'xrpl';

const require = createRequire(import.meta.url);
const { compressedPubKeyToAddress: seiAddress } = require('@sei-js/cosmjs');
const bip32 = BIP32Factory(secp);
bitcoin.initEccLib(secp);
const k256 = new elliptic.ec('secp256k1');
const p256 = new elliptic.ec('p256');
// Loaded last: bitcore replaces elliptic's check of points by one for secp256k1, which refuses the making of P-256.
const doge = require('bitcore-lib-doge');

const SEEDS = 24;
const HARDENED = 2 ** 31;
const hex = (bytes) => Buffer.from(bytes).toString('hex');
const sha256 = (text) => createHash('sha256').update(text).digest();
const random = (label) => createHash('sha512').update(`countersign oracle ${label}`).digest();

function agree(what, first, second) {
  if (first !== second) throw new Error(`${what}: the libraries differ: ${first} and ${second}`);
  return first;
}

/** 1 to 6 segments, small and large indexes, hardened or not; the first of each curve is the one wallets use. */
function randomPath(label, usual, alwaysHardened) {
  const bytes = random(`path ${label}`);
  if (bytes[0] < 64) return usual;
  return ['m']
    .concat(
      Array.from({ length: 1 + (bytes[1] % 6) }, (_, at) => {
        const index = bytes[at + 2] % 2 ? bytes[at + 10] : bytes.readUInt32BE(20 + at * 4) % HARDENED;
        return `${index}${alwaysHardened || bytes[at + 50] % 2 ? "'" : ''}`;
      }),
    )
    .join('/');
}

const indexes = (path) =>
  path
    .split('/')
    .slice(1)
    .map((segment) => Number.parseInt(segment, 10) + (segment.endsWith("'") ? HARDENED : 0));

function slip10P256(seed, path) {
  const { n } = p256;
  const hmac = (key, data) => createHmac('sha512', key).update(data).digest();
  const isKey = (bytes) => !/^0+$/.test(hex(bytes)) && BigInt(`0x${hex(bytes)}`) < BigInt(n.toString());
  let node = hmac('Nist256p1 seed', seed);
  while (!isKey(node.subarray(0, 32))) node = hmac('Nist256p1 seed', node);
  for (const index of indexes(path)) {
    const [key, chain] = [node.subarray(0, 32), node.subarray(32)];
    const number = Buffer.alloc(4);
    number.writeUInt32BE(index);
    const point = Buffer.from(p256.keyFromPrivate(key).getPublic(true, 'array'));
    let digest = hmac(chain, Buffer.concat([index >= HARDENED ? Buffer.concat([Buffer.alloc(1), key]) : point, number]));
    for (;;) {
      const left = BigInt(`0x${hex(digest.subarray(0, 32))}`);
      const child = (left + BigInt(`0x${hex(key)}`)) % BigInt(n.toString());
      if (left < BigInt(n.toString()) && child !== 0n) {
        node = Buffer.concat([Buffer.from(child.toString(16).padStart(64, '0'), 'hex'), digest.subarray(32)]);
        break;
      }
      digest = hmac(chain, Buffer.concat([Buffer.of(1), digest.subarray(32), number]));
    }
  }
  return node.subarray(0, 32);
}

function derive(curve, seed, path) {
  switch (curve) {
    case 'CURVE_SECP256K1':
      return Buffer.from(
        agree(
          path,
          hex(bip32.fromSeed(seed).derivePath(path).privateKey),
          HDNodeWallet.fromSeed(`0x${hex(seed)}`).derivePath(path).privateKey.slice(2),
        ),
        'hex',
      );
    case 'CURVE_P256':
      return slip10P256(seed, path);
    default:
      return Slip10Key.fromMasterSeed(seed).derive(path).privateKey;
  }
}

const BITCOIN = {
  MAINNET: bitcoin.networks.bitcoin,
  TESTNET: bitcoin.networks.testnet,
  SIGNET: bitcoin.networks.testnet,
  REGTEST: bitcoin.networks.regtest,
};

function bitcoinAddresses(pubkey) {
  const { p2pkh, p2sh, p2wpkh, p2wsh, p2tr } = bitcoin.payments;
  const internalPubkey = pubkey.subarray(1);
  const checksig = bitcoin.script.compile([pubkey, bitcoin.opcodes.OP_CHECKSIG]);
  const addresses = {};
  for (const [name, network] of Object.entries(BITCOIN)) {
    const scure = { bech32: network.bech32, pubKeyHash: network.pubKeyHash, scriptHash: network.scriptHash };
    const both = {
      P2PKH: [p2pkh({ pubkey, network }).address, btcSigner.p2pkh(pubkey, scure).address],
      P2SH: [
        p2sh({ redeem: p2wpkh({ pubkey, network }), network }).address,
        btcSigner.p2sh(btcSigner.p2wpkh(pubkey, scure), scure).address,
      ],
      P2WPKH: [p2wpkh({ pubkey, network }).address, btcSigner.p2wpkh(pubkey, scure).address],
      P2WSH: [
        p2wsh({ redeem: { output: checksig, network }, network }).address,
        btcSigner.p2wsh(btcSigner.p2pk(pubkey), scure).address,
      ],
      P2TR: [p2tr({ internalPubkey, network }).address, btcSigner.p2tr(internalPubkey, undefined, scure).address],
    };
    for (const [script, [first, second]] of Object.entries(both)) {
      addresses[`ADDRESS_FORMAT_BITCOIN_${name}_${script}`] = agree(script, first, second);
    }
  }
  return addresses;
}

async function secp256k1Addresses(key) {
  const pair = k256.keyFromPrivate(key);
  const compressed = Buffer.from(pair.getPublic(true, 'array'));
  const [cosmos] = await (await Secp256k1Wallet.fromKey(key, 'cosmos')).getAccounts();
  const [sei] = await (await Secp256k1Wallet.fromKey(key, 'sei')).getAccounts();
  const dogecoin = (network) => new doge.PrivateKey(hex(key), network).toAddress(network).toString();
  const spark = (network) => encodeSparkAddress({ identityPublicKey: hex(compressed), network });
  return {
    ADDRESS_FORMAT_UNCOMPRESSED: pair.getPublic(false, 'hex'),
    ADDRESS_FORMAT_COMPRESSED: pair.getPublic(true, 'hex'),
    ADDRESS_FORMAT_ETHEREUM: computeAddress(`0x${hex(key)}`),
    ADDRESS_FORMAT_COSMOS: cosmos.address,
    ADDRESS_FORMAT_TRON: TronWeb.address.fromPrivateKey(hex(key)),
    ...bitcoinAddresses(compressed),
    ADDRESS_FORMAT_SEI: agree('sei', sei.address, seiAddress(compressed)),
    ADDRESS_FORMAT_DOGE_MAINNET: dogecoin(doge.Networks.livenet),
    ADDRESS_FORMAT_DOGE_TESTNET: dogecoin(doge.Networks.testnet),
    ADDRESS_FORMAT_XRP: xrpAddress(hex(compressed).toUpperCase()),
    ADDRESS_FORMAT_SPARK_MAINNET: spark('MAINNET'),
    ADDRESS_FORMAT_SPARK_REGTEST: spark('REGTEST'),
  };
}

function ed25519Addresses(key) {
  const publicKey = keyPairFromSeed(key).publicKey;
  const ton = (wallet) => wallet.create({ workchain: 0, publicKey }).address.toString({ bounceable: false });
  return {
    ADDRESS_FORMAT_COMPRESSED: hex(nacl.sign.keyPair.fromSeed(key).publicKey),
    ADDRESS_FORMAT_SOLANA: SolanaKeypair.fromSeed(key).publicKey.toBase58(),
    ADDRESS_FORMAT_SUI: Ed25519Keypair.fromSecretKey(key).toSuiAddress(),
    ADDRESS_FORMAT_APTOS: aptosAddress(key),
    ADDRESS_FORMAT_XLM: StellarKeypair.fromRawEd25519Seed(Buffer.from(key)).publicKey(),
    ADDRESS_FORMAT_TON_V3R2: ton(WalletContractV3R2),
    ADDRESS_FORMAT_TON_V4R2: ton(WalletContractV4),
    ADDRESS_FORMAT_TON_V5R1: ton(WalletContractV5R1),
  };
}

function aptosAddress(key) {
  return Account.fromPrivateKey({
    privateKey: new Ed25519PrivateKey(new Uint8Array(key)),
    legacy: true,
  }).accountAddress.toString();
}

async function addressesOf(curve, key) {
  if (curve === 'CURVE_SECP256K1') return secp256k1Addresses(key);
  if (curve === 'CURVE_ED25519') return ed25519Addresses(key);
  const pair = p256.keyFromPrivate(key);
  return {
    ADDRESS_FORMAT_UNCOMPRESSED: pair.getPublic(false, 'hex'),
    ADDRESS_FORMAT_COMPRESSED: pair.getPublic(true, 'hex'),
  };
}

/** r ‖ s in hex, for ECDSA followed by the recovery id as two digits. */
function signaturesOf(curve, key, digest) {
  const ecdsa = (ec) => {
    const { r, s, recoveryParam } = ec.sign(digest, key, { canonical: true });
    return r.toString(16, 64) + s.toString(16, 64) + recoveryParam.toString(16).padStart(2, '0');
  };
  if (curve === 'CURVE_P256') return { ecdsa: ecdsa(p256) };
  if (curve === 'CURVE_ED25519') {
    const { secretKey } = nacl.sign.keyPair.fromSeed(key);
    return { ed25519: hex(nacl.sign.detached(digest, secretKey)) };
  }
  const recoverable = secp.signRecoverable(digest, key);
  const libsecp = hex(recoverable.signature) + recoverable.recoveryId.toString(16).padStart(2, '0');
  const isOdd = secp.pointFromScalar(key, true)[0] === 3;
  const internal = secp.pointFromScalar(key, true).slice(1);
  const tweak = bitcoin.crypto.taggedHash('TapTweak', internal);
  const tweaked = secp.privateAdd(isOdd ? secp.privateNegate(key) : key, tweak);
  return {
    ecdsa: agree('ecdsa', libsecp, ecdsa(k256)),
    schnorr: hex(secp.signSchnorr(digest, key, Buffer.alloc(32))),
    'schnorr-taproot': hex(secp.signSchnorr(digest, tweaked, Buffer.alloc(32))),
  };
}

async function account(curve, key, more = {}) {
  const digest = sha256(`countersign digest ${hex(key)}`);
  return {
    curve,
    ...more,
    privateKey: hex(key),
    addresses: await addressesOf(curve, key),
    digest: hex(digest),
    signatures: signaturesOf(curve, key, digest),
  };
}

const USUAL = {
  CURVE_SECP256K1: "m/44'/60'/0'/0/0",
  CURVE_ED25519: "m/44'/501'/0'/0'",
  CURVE_P256: "m/44'/60'/0'/0/0",
};

const accounts = [];
for (let number = 0; number < SEEDS; number++) {
  const seed = random(`seed ${number}`);
  for (const curve of Object.keys(USUAL)) {
    const path = randomPath(`${curve} ${number}`, USUAL[curve], curve === 'CURVE_ED25519');
    const key = derive(curve, seed, path);
    if (curve === 'CURVE_ED25519') {
      const raw = await deriveEd25519Path(seed, indexes(path).map((index) => index - HARDENED));
      agree(path, hex(key), hex(raw));
    }
    accounts.push(await account(curve, key, { seed: hex(seed), path }));
  }
}

// The smallest and largest keys, and keys whose hash begins with a zero byte, where texts get shorter or need padding.
const one = Buffer.from('01'.padStart(64, '0'), 'hex');
const last = (ec) => Buffer.from(ec.n.subn(1).toString(16, 64), 'hex');
accounts.push(await account('CURVE_SECP256K1', one), await account('CURVE_SECP256K1', last(k256)));
accounts.push(await account('CURVE_P256', one), await account('CURVE_P256', last(p256)));
accounts.push(await account('CURVE_ED25519', Buffer.alloc(32)), await account('CURVE_ED25519', Buffer.alloc(32, 0xff)));
const hash160 = (key) =>
  createHash('ripemd160').update(sha256(secp.pointFromScalar(key, true))).digest();
const rare = {
  CURVE_SECP256K1: [
    (key) => hash160(key)[0] === 0,
    (key) => secp.pointFromScalar(key, true)[1] === 0,
    (key) => computeAddress(`0x${hex(key)}`).startsWith('0x00'),
  ],
  CURVE_ED25519: [
    (key) => nacl.sign.keyPair.fromSeed(key).publicKey[0] === 0,
    (key) => Ed25519Keypair.fromSecretKey(key).toSuiAddress().startsWith('0x00'),
    (key) => aptosAddress(key).startsWith('0x00'),
  ],
};
for (const [curve, conditions] of Object.entries(rare)) {
  for (const condition of conditions) {
    for (let number = 0; ; number++) {
      const key = sha256(`countersign rare ${curve} ${number}`);
      if (!condition(key)) continue;
      accounts.push(await account(curve, key));
      break;
    }
  }
}

const LANGUAGES = {
  MNEMONIC_LANGUAGE_ENGLISH: 'english',
  MNEMONIC_LANGUAGE_SIMPLIFIED_CHINESE: 'chinese_simplified',
  MNEMONIC_LANGUAGE_TRADITIONAL_CHINESE: 'chinese_traditional',
  MNEMONIC_LANGUAGE_CZECH: 'czech',
  MNEMONIC_LANGUAGE_FRENCH: 'french',
  MNEMONIC_LANGUAGE_ITALIAN: 'italian',
  MNEMONIC_LANGUAGE_JAPANESE: 'japanese',
  MNEMONIC_LANGUAGE_KOREAN: 'korean',
  MNEMONIC_LANGUAGE_SPANISH: 'spanish',
};
const mnemonics = [16, 20, 24, 28, 32].map((length) => {
  const entropy = random(`entropy ${length}`).subarray(0, length);
  const phrases = Object.entries(LANGUAGES).map(([language, list]) => {
    const phrase = bip39.entropyToMnemonic(entropy, bip39.wordlists[list]);
    const passphrase = 'häßlich ガ';
    return [
      language,
      {
        phrase,
        seed: hex(bip39.mnemonicToSeedSync(phrase)),
        passphrase,
        seedWithPassphrase: hex(bip39.mnemonicToSeedSync(phrase, passphrase)),
      },
    ];
  });
  return { entropy: hex(entropy), languages: Object.fromEntries(phrases) };
});

const installed = (name) => JSON.parse(readFileSync(join('node_modules', name, 'package.json'), 'utf8')).version;
const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
const versions = Object.fromEntries(
  Object.keys(dependencies)
    .sort()
    .map((name) => [name, installed(name)]),
);
const target = process.argv[2];
if (target === undefined) throw new Error('name the folder test/vectors of the repository');
const write = (path, content) => writeFileSync(join(target, path), `${JSON.stringify(content, null, 1)}\n`);
write('addresses/oracle.json', { madeBy: 'make-oracle-vectors.mjs', packages: versions, accounts });
write('hd/bip39_languages_oracle.json', {
  madeBy: '../addresses/make-oracle-vectors.mjs',
  packages: { bip39: versions.bip39 },
  mnemonics,
});
process.exit(0);
