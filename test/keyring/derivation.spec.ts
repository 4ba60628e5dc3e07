import { createHmac, randomBytes } from 'node:crypto';
import { HDKey } from '@scure/bip32';
import { CURVES } from '../../src/domain/key-formats.js';
import type { Curve } from '../../src/domain/key-formats.js';
import { publicKeyOf } from '../../src/keyring/curves.js';
import { canonicalPath, Derivation, derivePrivateKey, parsePath } from '../../src/keyring/derivation.js';
import { mnemonicToSeed } from '../../src/keyring/mnemonic.js';
import { fromHex, oracle, readVectors } from './read-vectors.js';

const derived = (curve: Curve, seed: string, path: string): string =>
  derivePrivateKey(curve, fromHex(seed), path).toString('hex');

describe('published vectors', () => {
  test('come out: vectors 1 to 4 of BIP-32', () => {
    const { valid } = readVectors<{
      valid: { seed: string; chains: { path: string; xprv: string; xpub: string }[] }[];
    }>('hd/bip32.json');
    let checked = 0;
    for (const { seed, chains } of valid) {
      for (const { path, xprv, xpub } of chains) {
        const key = derivePrivateKey('CURVE_SECP256K1', fromHex(seed), path);
        expect(key).toEqual(Buffer.from(HDKey.fromExtendedKey(xprv).privateKey!));
        expect(publicKeyOf('CURVE_SECP256K1', key)).toEqual(Buffer.from(HDKey.fromExtendedKey(xpub).publicKey!));
        checked++;
      }
    }
    expect(checked).toBe(17);
  });

  test('come out: SLIP-0010 on secp256k1, nist256p1 and ed25519, with retries', () => {
    const curves: Record<string, Curve> = {
      secp256k1: 'CURVE_SECP256K1',
      nist256p1: 'CURVE_P256',
      ed25519: 'CURVE_ED25519',
    };
    const sets =
      readVectors<
        { name: string; curve: string; seed: string; chains: { path: string; private: string; public: string }[] }[]
      >('hd/slip10.json');
    const names: string[] = [];
    for (const { name, curve: curveName, seed, chains } of sets) {
      const curve = curves[curveName];
      if (curve === undefined) continue;
      names.push(name);
      for (const { path, private: privateKey, public: publicKey } of chains) {
        const key = derivePrivateKey(curve, fromHex(seed), path);
        expect([name, path, key.toString('hex')]).toEqual([name, path, privateKey]);
        expect(publicKeyOf(curve, key).toString('hex')).toBe(
          curve === 'CURVE_ED25519' ? publicKey.slice(2) : publicKey,
        );
      }
    }
    expect(names.filter((name) => name.includes('retry'))).toHaveLength(2);
    expect(names).toHaveLength(8);
  });

  test('come out: every node of 40 seeds of ethers', () => {
    const wallets =
      readVectors<{ seed: string; nodes: { path: string; privateKey: string; publicKey: string }[] }[]>(
        'hd/ethers_mnemonics_en.json',
      );
    let checked = 0;
    for (const { seed, nodes } of wallets) {
      for (const { path, privateKey } of nodes) {
        expect(`0x${derived('CURVE_SECP256K1', seed, path)}`).toBe(privateKey);
        checked++;
      }
    }
    expect(checked).toBeGreaterThan(150);
  });

  test('come out: the public keys of BIP-49, BIP-84 and BIP-86', async () => {
    type Scheme = { mnemonic: string; addresses: { path: string; publicKey?: string; xprv?: string }[] };
    const schemes = readVectors<Record<string, Scheme>>('hd/bip49_84_86_addresses.json');
    let checked = 0;
    for (const { mnemonic, addresses } of Object.values(schemes)) {
      const seed = await mnemonicToSeed(mnemonic);
      for (const { path, publicKey, xprv } of addresses) {
        const key = derivePrivateKey('CURVE_SECP256K1', seed, path);
        if (publicKey !== undefined) {
          expect(publicKeyOf('CURVE_SECP256K1', key)).toEqual(fromHex(publicKey));
          checked++;
        } else if (xprv !== undefined) {
          expect(key).toEqual(Buffer.from(HDKey.fromExtendedKey(xprv).privateKey!));
          checked++;
        }
      }
    }
    expect(checked).toBe(7);
  });
});

describe('keys are those of other libraries', () => {
  test.each(CURVES)('on %s, for 24 random seeds and paths', (curve) => {
    const accounts = oracle.filter((account) => account.curve === curve && account.seed !== undefined);
    expect(accounts).toHaveLength(24);
    for (const { seed, path, privateKey } of accounts) {
      expect([path, derived(curve, seed!, path!)]).toEqual([path, privateKey]);
    }
  });

  test('on secp256k1, by @scure/bip32, for fresh seeds of every length', () => {
    for (let length = 16; length <= 64; length += 4) {
      const seed = randomBytes(length);
      const path = `m/${randomBytes(4).readUInt32BE() >>> 1}'/${length}/${randomBytes(4).readUInt32BE() >>> 1}`;
      const expected = HDKey.fromMasterSeed(seed).derive(path).privateKey!;
      expect([seed.toString('hex'), derivePrivateKey('CURVE_SECP256K1', seed, path)]).toEqual([
        seed.toString('hex'),
        Buffer.from(expected),
      ]);
    }
  });

  test('on nist256p1, by SLIP-0010 written anew with bigints, for fresh seeds', () => {
    const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
    const hmac = (key: Uint8Array, ...data: Uint8Array[]): Buffer =>
      createHmac('sha512', key).update(Buffer.concat(data)).digest();
    for (let round = 0; round < 30; round++) {
      const seed = randomBytes(64);
      let node = hmac(Buffer.from('Nist256p1 seed'), seed);
      const indexes = [0x8000002c, round, randomBytes(4).readUInt32BE()];
      for (const index of indexes) {
        const parent = node.subarray(0, 32);
        const number = Buffer.alloc(4);
        number.writeUInt32BE(index);
        const data = index >= 0x80000000 ? Buffer.concat([Buffer.alloc(1), parent]) : publicKeyOf('CURVE_P256', parent);
        const digest = hmac(node.subarray(32), data, number);
        const child = (BigInt(`0x${digest.toString('hex', 0, 32)}`) + BigInt(`0x${parent.toString('hex')}`)) % order;
        node = Buffer.concat([fromHex(child.toString(16).padStart(64, '0')), digest.subarray(32)]);
      }
      const path = indexes.map((index) => (index >= 0x80000000 ? `${index - 0x80000000}'` : `${index}`)).join('/');
      expect(derivePrivateKey('CURVE_P256', seed, `m/${path}`)).toEqual(node.subarray(0, 32));
    }
  });
});

describe('Ed25519', () => {
  const seed = '5eb00bbddcf069084889a8ab9155568165f5c453ccb85e70811aaed6f6da5fc1';

  test('every segment is hardened, marked or not', () => {
    const hardened = derived('CURVE_ED25519', seed, "m/44'/501'/0'/0'");
    expect(derived('CURVE_ED25519', seed, "m/44'/501'/0'/0")).toBe(hardened);
    expect(derived('CURVE_ED25519', seed, 'm/44/501/0/0')).toBe(hardened);
    expect(derived('CURVE_ED25519', seed, 'm/44h/501h/0h/0h')).toBe(hardened);
  });

  test('on the other curves the mark makes another key', () => {
    for (const curve of ['CURVE_SECP256K1', 'CURVE_P256'] as const) {
      expect(derived(curve, seed, 'm/0')).not.toBe(derived(curve, seed, "m/0'"));
    }
  });

  test('one canonical spelling for one key', () => {
    expect(canonicalPath('CURVE_ED25519', "m/44'/501h/0/0")).toBe("m/44'/501'/0'/0'");
    expect(canonicalPath('CURVE_SECP256K1', 'm/44h/60h/0h/0/2147483647')).toBe("m/44'/60'/0'/0/2147483647");
    expect(canonicalPath('CURVE_P256', 'm')).toBe('m');
  });
});

describe('paths', () => {
  test('are indexes, hardened ones raised by 2^31', () => {
    expect(parsePath("m/44'/60h/0'/0/2147483647")).toEqual([0x8000002c, 0x8000003c, 0x80000000, 0, 0x7fffffff]);
    expect(parsePath("m/2147483647'")).toEqual([0xffffffff]);
    expect(parsePath('m')).toEqual([]);
    expect(parsePath('m/0/1/2/3/4/5/6/7/8/9')).toHaveLength(10);
  });

  test.each([
    ['', 'must begin with `m`'],
    ["44'/60'", 'must begin with `m`'],
    ['M/0', 'must begin with `m`'],
    ['/0', 'must begin with `m`'],
    [' m/0', 'must begin with `m`'],
    ['m/', 'segment 1 of `m/` is ``'],
    ['m/0/', 'segment 2 of `m/0/` is ``'],
    ['m//0', 'segment 1 of `m//0` is ``'],
    ["m/0''", "is `0''`"],
    ['m/0H', 'is `0H`'],
    ["m/'", "is `'`"],
    ['m/-1', 'is `-1`'],
    ['m/+1', 'is `+1`'],
    ['m/1.5', 'is `1.5`'],
    ['m/1e3', 'is `1e3`'],
    ['m/0x1', 'is `0x1`'],
    ['m/01', 'is `01`'],
    ['m/0 ', 'is `0 `'],
    ['m/٣', 'is `٣`'],
    ['m/0\n', 'is `0\n`'],
    ['m/2147483648', 'is `2147483648`: it must be a number from 0 to 2147483647'],
    ["m/4294967296'", 'is `4294967296'],
    ['m/99999999999', 'is `99999999999`'],
    ['m/0/1/2/3/4/5/6/7/8/9/10', 'has 11 segments: at most 10'],
    [`m/${'0/'.repeat(100)}0`, 'a derivation path of 203 characters is too long'],
  ])('%j is refused', (path, message) => {
    expect(() => parsePath(path, 'accounts[1].path')).toThrow(message);
    expect(() => parsePath(path, 'accounts[1].path')).toThrow('invalid request: accounts[1].path: ');
    for (const curve of CURVES) expect(() => derivePrivateKey(curve, Buffer.alloc(32), path)).toThrow(message);
  });
});

test('a seed of another length is refused, and the seed is left as it was', () => {
  for (const length of [0, 15, 65]) {
    expect(() => derivePrivateKey('CURVE_P256', Buffer.alloc(length), 'm')).toThrow(`this one has ${length}`);
  }
  const seed = Buffer.alloc(32, 5);
  derivePrivateKey('CURVE_SECP256K1', seed, "m/1'/2");
  expect(seed).toEqual(Buffer.alloc(32, 5));
});

describe('many keys below one seed', () => {
  const seed = Buffer.alloc(64, 5);
  const alone = (curve: Curve, path: string): Buffer => derivePrivateKey(curve, seed, path);

  test('are those that each path gives alone, in any order, on all curves by turns', () => {
    const paths = [
      'm',
      'm/0',
      "m/0'",
      "m/44'/60'/0'/0/0",
      "m/44'/60'/0'/0/1",
      "m/44'/60'/0'",
      "m/44'/60'/1'/0/1",
      'm/0/0/0',
    ];
    const derivation = new Derivation(seed);
    for (const [round, curves] of [CURVES, CURVES.toReversed(), CURVES.slice(1)].entries()) {
      for (const path of round === 1 ? paths.toReversed() : paths) {
        for (const curve of curves) expect(derivation.privateKey(curve, path)).toEqual(alone(curve, path));
      }
      for (const curve of curves) {
        for (const path of paths) expect(derivation.privateKey(curve, path)).toEqual(alone(curve, path));
      }
    }
  });

  test('are not wiped with the nodes that they came from, and may be wiped before them', () => {
    const derivation = new Derivation(seed);
    const first = derivation.privateKey('CURVE_SECP256K1', 'm/1/2');
    derivation.privateKey('CURVE_SECP256K1', 'm/3').fill(0);
    expect(derivation.privateKey('CURVE_SECP256K1', 'm/3/4')).toEqual(alone('CURVE_SECP256K1', 'm/3/4'));
    derivation.forget();
    expect(first).toEqual(alone('CURVE_SECP256K1', 'm/1/2'));
    expect(derivation.privateKey('CURVE_SECP256K1', 'm/1/2')).toEqual(first);
  });

  test('leave no node behind', () => {
    const filled: Buffer[] = [];
    const derivation = new Derivation(seed);
    for (const path of ['m/1/2', 'm/1/3', 'm/4']) derivation.privateKey('CURVE_P256', path);
    const { nodes } = derivation as unknown as { nodes: readonly { bytes: Buffer }[] };
    filled.push(...nodes.map(({ bytes }) => bytes));
    expect(filled).toHaveLength(2);
    derivation.forget();
    expect(filled).toEqual([Buffer.alloc(64), Buffer.alloc(64)]);
  });
});
