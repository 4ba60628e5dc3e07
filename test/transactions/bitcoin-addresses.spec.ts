import { sha256 } from '@noble/hashes/sha2.js';
import { bech32, bech32m, createBase58check } from '@scure/base';
import fc from 'fast-check';
import { AmbiguousText } from '../../src/domain/policy/types.js';
import { outputAddress, scriptOf } from '../../src/transactions/bitcoin-addresses.js';
import { blocksEntered } from './blocks-entered.js';
import { isLong } from '../long.js';

/** Addresses that are drawn for a test. */
const runs = isLong ? 20_000 : 600;

const base58check = createBase58check(sha256);
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const scriptFrom = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, 'hex'));

const addressOf = (script: Uint8Array): AmbiguousText => {
  const { address } = outputAddress(script, 'MAINNET');
  if (!(address instanceof AmbiguousText)) throw new Error(`no address stands for ${hexOf(script)}`);
  return address;
};

describe('the address of an output', () => {
  const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
  const base58 = fc
    .tuple(fc.constantFrom(0x00, 0x05, 0x6f, 0xc4, 0x1e, 0x16, 0x71, 0x21, 0x30), bytes(20))
    .map(([prefix, hash]) => [
      base58check.encode(Uint8Array.from([prefix, ...hash])),
      ...[0x00, 0x05, 0x6f, 0xc4, 0x1e, 0x16, 0x71, 0x21].map((other) =>
        base58check.encode(Uint8Array.from([other, ...hash])),
      ),
    ]);
  const witness = fc
    .tuple(fc.nat({ max: 16 }), fc.constantFrom(2, 20, 32, 40), fc.constantFrom(bech32, bech32m))
    .chain(([version, length, encoding]) =>
      bytes(length).map((program) =>
        ['bc', 'tb', 'bcrt', 'ltc', 'a1b', '~'].map((prefix) =>
          encoding.encode(prefix, [version, ...encoding.toWords(program)]),
        ),
      ),
    );
  const changed = (texts: readonly string[]) =>
    fc
      .tuple(fc.constantFrom(...texts), fc.nat({ max: 90 }), fc.constantFrom('', '1', 'q', 'Q', 'é', '\u212a', ' '))
      .map(([text, at, by]) => [text, text.toUpperCase(), ` ${text}`, text.slice(0, at) + by + text.slice(at + 1)]);

  it('may be just those others that stand for its script', () => {
    let alike = 0;
    fc.assert(
      fc.property(
        fc.oneof(base58, witness).chain((texts) => fc.tuple(fc.constant(texts), changed(texts), fc.string())),
        ([texts, changes, any]) => {
          const scripts = new Set(texts.map(scriptOf).filter((script) => script !== undefined));
          for (const script of scripts) {
            const { address } = outputAddress(scriptFrom(script), 'MAINNET');
            if (!(address instanceof AmbiguousText)) continue;
            for (const other of [...texts, ...changes, any]) {
              const isAnother = other !== address.text && scriptOf(other) === script;
              expect({ other, mayBe: address.mayBe(other) }).toEqual({ other, mayBe: isAnother });
              if (isAnother) alike += 1;
            }
          }
        },
      ),
      { numRuns: runs, seed: 7 },
    );
    expect(alike).toBeGreaterThan(2.5 * runs);
  });

  it('is told from hundreds of others by a small part of what decoding those takes', () => {
    const others = Array.from({ length: 500 }, (_, at) => `1${String(at).padStart(7, 'x')}`);
    const addresses = Array.from({ length: 100 }, (_, at) =>
      base58check.encode(Uint8Array.from([0x6f, ...sha256(Uint8Array.of(at & 0xff, at >> 8)).subarray(0, 20)])),
    );

    for (const texts of [others, addresses]) {
      const decoded = blocksEntered(() => texts.map(scriptOf));
      for (const script of [`0014${'ab'.repeat(20)}`, `76a914${'ab'.repeat(20)}88ac`]) {
        const told = blocksEntered(() => {
          const address = addressOf(scriptFrom(script));
          return texts.filter((text) => address.mayBe(text));
        });
        expect(told).toBeLessThan(decoded / 4);
      }
    }
  });
});
