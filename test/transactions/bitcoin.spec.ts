import { schnorr, secp256k1 } from '@noble/curves/secp256k1.js';
import { bytesToNumberBE } from '@noble/curves/utils.js';
import { Transaction as ScureTransaction } from '@scure/btc-signer';
import { address, initEccLib, networks, payments, Psbt, Transaction } from 'bitcoinjs-lib';
import fc from 'fast-check';
import { CoordinatorError } from '../../src/domain/errors.js';
import type { BitcoinNetwork } from '../../src/domain/key-formats.js';
import { decodedOf } from '../../src/domain/policy/decoded.js';
import { bitcoinTxType } from '../../src/domain/policy/resource-namespaces.js';
import { signPayload } from '../../src/keyring/signing.js';
import { assembleBitcoin, bitcoinPolicyValue, type BitcoinScript } from '../../src/transactions/bitcoin.js';
import { bitcoinSigningInputs, parseUnsignedBitcoin } from './decoders.js';
import { conforms } from '../domain/policy/conforms.js';
import { readVectors } from '../keyring/read-vectors.js';
import { mutationsOf } from './mutations.js';
import { plain } from './plain.js';

/** Milliseconds for thousands of random cases, on a slow and busy machine. */
const LONG = 120_000;

// What bitcoinjs asks of a curve library for taproot.
initEccLib({
  isXOnlyPoint: (point) => isValid(() => schnorr.utils.lift_x(bytesToNumberBE(point))),
  xOnlyPointAddTweak: (point, tweak) => {
    const sum = schnorr.utils
      .lift_x(bytesToNumberBE(point))
      .add(secp256k1.Point.BASE.multiplyUnsafe(bytesToNumberBE(tweak)));
    if (sum.is0()) return null;
    const [prefix, ...xOnlyPubkey] = sum.toBytes(true);
    return { parity: prefix === 3 ? 1 : 0, xOnlyPubkey: Uint8Array.from(xOnlyPubkey) };
  },
});

function isValid(check: () => unknown): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}

const verify = (publicKey: Uint8Array, digest: Uint8Array, signature: Uint8Array): boolean =>
  publicKey.length === 32
    ? schnorr.verify(signature, digest, publicKey)
    : secp256k1.verify(signature, digest, publicKey, { prehash: false });

const SCRIPTS = ['P2PKH', 'P2SH', 'P2WPKH', 'P2WSH', 'P2TR'] as const;
const PRIVATE_KEY = new Uint8Array(32).fill(7);
const PUBLIC_KEY = secp256k1.getPublicKey(PRIVATE_KEY);
const OTHER_PRIVATE_KEY = new Uint8Array(32).fill(8);
const OTHER_PUBLIC_KEY = secp256k1.getPublicKey(OTHER_PRIVATE_KEY);
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

function outputOf(script: BitcoinScript, publicKey: Uint8Array): Uint8Array {
  const payment = {
    P2PKH: () => payments.p2pkh({ pubkey: publicKey }),
    P2SH: () => payments.p2sh({ redeem: payments.p2wpkh({ pubkey: publicKey }) }),
    P2WPKH: () => payments.p2wpkh({ pubkey: publicKey }),
    P2WSH: () => payments.p2wsh({ redeem: payments.p2pk({ pubkey: publicKey }) }),
    P2TR: () => payments.p2tr({ internalPubkey: publicKey.subarray(1) }),
  }[script]();
  return payment.output!;
}

interface Coin {
  readonly script: Uint8Array;
  readonly amount?: bigint;
  readonly sequence?: number;
  readonly sighashType?: number;
  /** What the PSBT says of the output: the whole previous transaction, the output, or both. */
  readonly utxo?: 'whole' | 'output' | 'both' | 'none';
  readonly redeemScript?: Uint8Array;
}

/** The transaction that made a coin; `salt` makes its id. */
function previousTransaction({ script, amount = 100_000n }: Coin, salt: number): Transaction {
  const transaction = new Transaction();
  transaction.addInput(new Uint8Array(32).fill((salt % 250) + 1), salt);
  transaction.addOutput(Uint8Array.of(0x51), 1n);
  transaction.addOutput(script, amount);
  return transaction;
}

function psbtOf(
  coins: readonly Coin[],
  outputs: readonly { script: Uint8Array; value: bigint }[] = [
    { script: outputOf('P2WPKH', OTHER_PUBLIC_KEY), value: 5_000n },
  ],
  lockTime = 0,
): Psbt {
  const psbt = new Psbt();
  psbt.setLocktime(lockTime);
  coins.forEach((coin, salt) => {
    const previous = previousTransaction(coin, salt);
    const { script, amount = 100_000n, utxo = 'both' } = coin;
    psbt.addInput({
      hash: previous.getId(),
      index: 1,
      ...(utxo === 'whole' || utxo === 'both' ? { nonWitnessUtxo: previous.toBuffer() } : {}),
      ...(utxo === 'output' || utxo === 'both' ? { witnessUtxo: { script, value: amount } } : {}),
      ...(coin.sequence === undefined ? {} : { sequence: coin.sequence }),
      ...(coin.sighashType === undefined ? {} : { sighashType: coin.sighashType }),
      ...(coin.redeemScript === undefined ? {} : { redeemScript: coin.redeemScript }),
    });
  });
  for (const output of outputs) psbt.addOutput(output);
  return psbt;
}

function sign(psbtHex: string, privateKey: Uint8Array, script?: BitcoinScript): string {
  const publicKey = secp256k1.getPublicKey(privateKey);
  const transaction = parseUnsignedBitcoin(psbtHex);
  const signed = bitcoinSigningInputs(transaction, publicKey, script).map((input) => {
    const addressFormat = `ADDRESS_FORMAT_BITCOIN_MAINNET_${input.script}` as const;
    return { input, signature: signPayload({ curve: 'CURVE_SECP256K1', addressFormat, privateKey }, input.digest) };
  });
  return assembleBitcoin(transaction, publicKey, signed);
}

/** The network transaction, by two libraries that have to agree. */
function finalizeBoth(signedHex: string): string {
  const psbt = Psbt.fromHex(signedHex);
  expect(psbt.validateSignaturesOfAllInputs(verify)).toBe(true);
  const byBitcoinJs = psbt.finalizeAllInputs().extractTransaction(true).toHex();
  const byScure = ScureTransaction.fromPSBT(Buffer.from(signedHex, 'hex'), { allowUnknownOutputs: true });
  byScure.finalize();
  expect(byScure.hex).toBe(byBitcoinJs);
  return byBitcoinJs;
}

describe('Bitcoin transactions that bitcoinjs built', () => {
  it.each(SCRIPTS)('are signed so that bitcoinjs verifies and finalizes them: an input of %s', (script) => {
    const psbt = psbtOf([{ script: outputOf(script, PUBLIC_KEY) }]);

    const transaction = Transaction.fromHex(finalizeBoth(sign(psbt.toHex(), PRIVATE_KEY)));
    expect(transaction.getId()).toHaveLength(64);
  });

  it(
    'are signed so that bitcoinjs verifies and finalizes them: any inputs and outputs',
    () => {
      const coin = fc.record({
        kind: fc.constantFrom(...SCRIPTS),
        amount: fc.bigInt({ min: 20_000n, max: 21_000_000n * 100_000_000n }),
        sequence: fc.integer({ min: 0, max: 0xffffffff }),
      });
      const output = fc.record({
        kind: fc.constantFrom(...SCRIPTS),
        value: fc.bigInt({ min: 0n, max: 2_000n }),
      });
      const data = fc.uint8Array({ maxLength: 400 });
      fc.assert(
        fc.property(
          fc.array(coin, { minLength: 1, maxLength: 6 }),
          fc.array(output, { minLength: 1, maxLength: 4 }),
          fc.integer({ min: 0, max: 0xffffffff }),
          data,
          (coins, outputs, lockTime, memo) => {
            const psbt = psbtOf(
              coins.map(({ kind, amount, sequence }) => ({ script: outputOf(kind, PUBLIC_KEY), amount, sequence })),
              [
                ...outputs.map(({ kind, value }) => ({ script: outputOf(kind, OTHER_PUBLIC_KEY), value })),
                { script: Uint8Array.from([0x6a, 0x4d, memo.length & 0xff, memo.length >> 8, ...memo]), value: 0n },
              ],
              lockTime,
            );
            const spent = coins.reduce((sum, { amount }) => sum + amount, 0n);
            const paid = outputs.reduce((sum, { value }) => sum + value, 0n);

            expect(parseUnsignedBitcoin(psbt.toHex()).fee).toBe(spent - paid);
            finalizeBoth(sign(psbt.toHex(), PRIVATE_KEY));
          },
        ),
        { numRuns: 25 },
      );
    },
    LONG,
  );

  it('are signed input by input: each key its own, and only those of one address if asked', () => {
    const psbt = psbtOf([
      { script: outputOf('P2WPKH', PUBLIC_KEY) },
      { script: outputOf('P2TR', OTHER_PUBLIC_KEY) },
      { script: outputOf('P2TR', PUBLIC_KEY) },
    ]);

    const once = sign(psbt.toHex(), PRIVATE_KEY, 'P2TR');
    expect(signedInputs(once)).toEqual([false, false, true]);
    const twice = sign(once, PRIVATE_KEY);
    expect(signedInputs(twice)).toEqual([true, false, true]);
    expect(() => sign(twice, PRIVATE_KEY)).toThrow(`\`${hex(PUBLIC_KEY)}\` has signed all of its inputs already`);
    finalizeBoth(sign(twice, OTHER_PRIVATE_KEY));
  });

  it('keep every byte that was there', () => {
    const psbt = psbtOf([{ script: outputOf('P2WPKH', PUBLIC_KEY) }, { script: outputOf('P2TR', PUBLIC_KEY) }]);
    const unknown = { key: Uint8Array.of(0xf0, 1), value: Uint8Array.of(2, 3) };
    psbt.addUnknownKeyValToGlobal(unknown);
    psbt.addUnknownKeyValToInput(1, unknown);
    psbt.addUnknownKeyValToOutput(0, unknown);
    psbt.updateInput(0, {
      bip32Derivation: [{ masterFingerprint: Uint8Array.of(1, 2, 3, 4), path: "m/84'/0'/0'/0/0", pubkey: PUBLIC_KEY }],
    });

    const signed = Psbt.fromHex(sign(psbt.toHex(), PRIVATE_KEY));
    for (const input of signed.data.inputs) {
      delete input.partialSig;
      delete input.tapKeySig;
      delete input.tapInternalKey;
    }
    expect(signed.toHex()).toBe(psbt.toHex());
  });

  it('honour SIGHASH_ALL of a taproot input', () => {
    const psbt = psbtOf([{ script: outputOf('P2TR', PUBLIC_KEY), sighashType: 1 }]);
    const signed = sign(psbt.toHex(), PRIVATE_KEY);

    expect(Psbt.fromHex(signed).data.inputs[0]!.tapKeySig).toHaveLength(65);
    finalizeBoth(signed);
  });

  it('get the redeem script and the witness script of the key only where they are missing', () => {
    const redeemScript = payments.p2wpkh({ pubkey: PUBLIC_KEY }).output!;
    const coin = { script: outputOf('P2SH', PUBLIC_KEY) };

    finalizeBoth(sign(psbtOf([{ ...coin, redeemScript }, coin]).toHex(), PRIVATE_KEY));
  });

  it('have the digest, the signature and the transaction of BIP-143', () => {
    type Field = 'unsignedTransaction' | 'scriptPubKey' | 'redeemScript' | 'privateKey' | 'publicKey';
    const vector = readVectors<Record<Field | 'sigHash' | 'signedTransaction', string> & { amount: number }>(
      'bitcoin/bip143_p2sh_p2wpkh.json',
    );
    const bytes = (text: string) => Uint8Array.from(Buffer.from(text, 'hex'));
    const unsigned = Transaction.fromHex(vector.unsignedTransaction);
    const psbt = new Psbt().setVersion(unsigned.version).setLocktime(unsigned.locktime);
    const [input] = unsigned.ins;
    psbt.addInput({
      hash: input!.hash,
      index: input!.index,
      sequence: input!.sequence,
      witnessUtxo: { script: bytes(vector.scriptPubKey), value: BigInt(vector.amount) },
      redeemScript: bytes(vector.redeemScript),
    });
    for (const { script, value } of unsigned.outs) psbt.addOutput({ script, value });

    const [signing] = bitcoinSigningInputs(parseUnsignedBitcoin(psbt.toHex()), bytes(vector.publicKey));
    expect(hex(signing!.digest)).toBe(vector.sigHash);
    expect(finalizeBoth(sign(psbt.toHex(), bytes(vector.privateKey)))).toBe(vector.signedTransaction);
  });
});

function signedInputs(psbtHex: string): boolean[] {
  return Psbt.fromHex(psbtHex).data.inputs.map(({ partialSig, tapKeySig }) => Boolean(partialSig ?? tapKeySig));
}

describe('Bitcoin transactions are shown to policies', () => {
  it('as version, inputs, outputs, lock time and fee', () => {
    const psbt = psbtOf(
      [{ script: outputOf('P2WPKH', PUBLIC_KEY), sequence: 0xfffffffd }, { script: outputOf('P2PKH', PUBLIC_KEY) }],
      [{ script: outputOf('P2TR', OTHER_PUBLIC_KEY), value: 150_000n }],
      840_000,
    );
    const { txInputs } = psbt;
    const idOf = (at: number) => hex(Uint8Array.from(txInputs[at]!.hash).reverse());

    const value = plain(bitcoinPolicyValue(parseUnsignedBitcoin(psbt.toHex()), 'MAINNET'));
    expect(value).toEqual({
      version: '2',
      inputs: [
        { tx_id: idOf(0), vout: 1n, sequence: 0xfffffffdn },
        { tx_id: idOf(1), vout: 1n, sequence: 0xffffffffn },
      ],
      outputs: [
        {
          value: 150_000n,
          script_pubkey: hex(outputOf('P2TR', OTHER_PUBLIC_KEY)),
          address: address.fromOutputScript(outputOf('P2TR', OTHER_PUBLIC_KEY)),
          address_type: 'P2TR',
        },
      ],
      locktime: { amount: 840_000n, type: 'Blocks' },
      fee: 50_000n,
    });
    expect(conforms(bitcoinTxType, value)).toEqual([]);
  });

  it('and to approvers in BTC, with the fee, and without guessing which output is change', () => {
    const decodedWith = (outputs: Parameters<typeof psbtOf>[1]) => {
      const psbt = psbtOf([{ script: outputOf('P2WPKH', PUBLIC_KEY) }], outputs);
      return decodedOf({
        resources: { bitcoin: { tx: bitcoinPolicyValue(parseUnsignedBitcoin(psbt.toHex()), 'MAINNET') } },
      })[0]!;
    };
    const script = outputOf('P2TR', OTHER_PUBLIC_KEY);
    const to = address.fromOutputScript(script);
    const one = decodedWith([{ script, value: 90_000n }]);
    expect(one).toEqual({
      text: `0.0009 BTC to ${to}, with a fee of 0.0001 BTC.`,
      facts: [
        { name: 'Output 1', value: `0.0009 BTC to ${to}` },
        { name: 'Fee', value: '0.0001 BTC' },
        { name: 'Inputs', value: '1' },
      ],
    });
    const two = decodedWith([
      { script, value: 10_000n },
      { script, value: 80_000n },
    ]);
    expect([two.text, two.notDecoded]).toEqual([
      `0.0009 BTC to ${to}, with a fee of 0.0001 BTC.`,
      'which of the outputs is change is not known',
    ]);
  });

  it('with a lock time in seconds from 500 000 000 on', () => {
    const lockTimeOf = (lockTime: number) => {
      const psbt = psbtOf([{ script: outputOf('P2WPKH', PUBLIC_KEY) }], undefined, lockTime);
      return (bitcoinPolicyValue(parseUnsignedBitcoin(psbt.toHex()), 'MAINNET') as { locktime: unknown }).locktime;
    };

    expect(lockTimeOf(499_999_999)).toEqual({ amount: 499_999_999n, type: 'Blocks' });
    expect(lockTimeOf(500_000_000)).toEqual({ amount: 500_000_000n, type: 'Seconds' });
  });

  const outputsOf = (scripts: readonly Uint8Array[], network: BitcoinNetwork) => {
    const outputs = scripts.map((script) => ({ script, value: 1n }));
    const psbt = psbtOf([{ script: outputOf('P2WPKH', PUBLIC_KEY) }], outputs);
    const value = plain(bitcoinPolicyValue(parseUnsignedBitcoin(psbt.toHex()), network));
    return (value as { outputs: { address: string; address_type: string }[] }).outputs;
  };

  it.each([
    ['MAINNET', networks.bitcoin],
    ['TESTNET', networks.testnet],
    ['SIGNET', networks.testnet],
    ['REGTEST', networks.regtest],
  ] as const)('with the addresses that bitcoinjs gives outputs (%s)', (network, ofBitcoinJs) => {
    const scripts = SCRIPTS.map((script) => outputOf(script, OTHER_PUBLIC_KEY));

    expect(outputsOf(scripts, network)).toMatchObject(
      SCRIPTS.map((script, at) => ({
        address: address.fromOutputScript(scripts[at]!, ofBitcoinJs),
        address_type: script,
      })),
    );
  });

  it('with a type and no address for outputs that no address stands for', () => {
    const empty = (type: string) => ({ address: '', address_type: type });
    const scripts = [
      [0x6a, 0x02, 0x01, 0x02],
      [0x21, ...PUBLIC_KEY, 0xac],
      [0x51],
      [],
      [0x00, 0x03, 1, 2, 3],
      [0x51, 0x02, 0x4e, 0x73],
      [0x60, 0x02, 0x75, 0x1e],
    ].map((script) => Uint8Array.from(script));

    expect(outputsOf(scripts, 'MAINNET')).toMatchObject([
      empty('OP_RETURN'),
      empty('UNKNOWN'),
      empty('UNKNOWN'),
      empty('UNKNOWN'),
      empty('UNKNOWN'),
      { address: 'bc1pfeessrawgf', address_type: 'P2A' },
      // BIP-350's own example of version 16.
      { address: 'bc1sw50qgdz25j', address_type: 'WITNESS_UNKNOWN' },
    ]);
  });
});

describe('a Bitcoin transaction is refused', () => {
  const p2wpkh = outputOf('P2WPKH', PUBLIC_KEY);
  const parse = (psbt: Psbt) => () => parseUnsignedBitcoin(psbt.toHex());
  const refuses = (action: () => unknown, reason: RegExp | string) => {
    expect(action).toThrow(reason);
    expect(action).toThrow(CoordinatorError);
  };

  it('that is no PSBT in hex', () => {
    const psbt = psbtOf([{ script: p2wpkh }]);

    refuses(() => parseUnsignedBitcoin(psbt.toBase64()), 'the PSBT is in base64, expected hex');
    refuses(() => parseUnsignedBitcoin(psbt.toHex().slice(0, -2)), 'where a length was expected');
    refuses(() => parseUnsignedBitcoin(`${psbt.toHex()}00`), '1 bytes follow the end of the PSBT');
    refuses(
      () => parseUnsignedBitcoin(Transaction.fromBuffer(psbt.data.globalMap.unsignedTx.toBuffer()).toHex()),
      'not a PSBT',
    );
  });

  it('with a key that is there twice', () => {
    const once = psbtOf([{ script: p2wpkh }]).toHex();
    const record = '01f001ab';

    expect(parseUnsignedBitcoin(once.slice(0, -2) + record + '00').outputs).toHaveLength(1);
    refuses(() => parseUnsignedBitcoin(once.slice(0, -2) + record + record + '00'), /twice|duplicate/i);
  });

  it('of PSBT version 2', () => {
    const transaction = new ScureTransaction({ PSBTVersion: 2 });
    transaction.addInput({ txid: new Uint8Array(32).fill(1), index: 0, witnessUtxo: { script: p2wpkh, amount: 10n } });
    transaction.addOutput({ script: p2wpkh, amount: 5n });

    refuses(() => parseUnsignedBitcoin(hex(transaction.toPSBT())), 'PSBT version 2 is not supported');
  });

  it('without inputs or outputs', () => {
    refuses(parse(psbtOf([])), 'has no inputs');
    refuses(parse(psbtOf([{ script: p2wpkh }], [])), 'has no outputs');
  });

  it('that is longer than the network relays', () => {
    const long = payments.embed({ data: [new Uint8Array(100_000)] }).output!;
    refuses(parse(psbtOf([{ script: p2wpkh }], [{ script: long, value: 0n }])), 'the network relays 100000');
  });

  it('whose fee is not known', () => {
    refuses(parse(psbtOf([{ script: p2wpkh, utxo: 'none' }])), 'input 0 says nothing of the output it spends');
    refuses(
      parse(psbtOf([{ script: p2wpkh }], [{ script: p2wpkh, value: 100_001n }])),
      'outputs are 100001 satoshis, more than the 100000',
    );
  });

  const OUR: Readonly<Record<BitcoinScript, Coin>> = Object.fromEntries(
    SCRIPTS.map((script) => [script, { script: outputOf(script, PUBLIC_KEY) }]),
  ) as Record<BitcoinScript, Coin>;
  const claimed = (coin: Coin): Coin => ({ ...coin, utxo: 'output' });

  it.each<[string, readonly Coin[], number, number]>([
    ['its own output, by a legacy signature', [claimed(OUR.P2PKH)], 0, 0],
    ['another output, by a legacy signature', [OUR.P2PKH, claimed(OUR.P2TR)], 1, 0],
    ['another output, by a signature of segwit version 0', [claimed(OUR.P2WPKH), OUR.P2WPKH], 0, 1],
    ['a taproot output, by a signature of segwit version 0', [OUR.P2WPKH, claimed(OUR.P2TR)], 1, 0],
    [
      'a foreign output, by a signature of segwit version 0',
      [OUR.P2WSH, claimed({ script: Uint8Array.of(0x51) })],
      1,
      0,
    ],
  ])('where nothing would prove %s', (_what, coins, unproven, signing) => {
    const transaction = parseUnsignedBitcoin(psbtOf(coins).toHex());

    refuses(
      () => bitcoinSigningInputs(transaction, PUBLIC_KEY),
      `input ${unproven} has no non-witness UTXO (BIP-174), so nothing proves the amount it spends when input ${signing} is`,
    );
  });

  it('but not where the signatures prove every output', () => {
    finalizeBoth(sign(psbtOf([claimed(OUR.P2TR), claimed(OUR.P2TR)]).toHex(), PRIVATE_KEY));
    for (const script of ['P2SH', 'P2WPKH', 'P2WSH'] as const) {
      finalizeBoth(sign(psbtOf([claimed(OUR[script])]).toHex(), PRIVATE_KEY));
    }
  });

  it('whose previous transaction is another than it spends', () => {
    const psbt = psbtOf([{ script: p2wpkh, utxo: 'none' }]);
    psbt.data.updateInput(0, { nonWitnessUtxo: previousTransaction({ script: p2wpkh, amount: 1n }, 5).toBuffer() });

    refuses(parse(psbt), 'wrong txid');
  });

  it.each([
    ['P2WPKH', 0x80],
    ['P2WPKH', 2],
    ['P2PKH', 3],
    ['P2TR', 0x81],
    ['P2TR', 3],
    ['P2WSH', 0x83],
  ] as const)('where a signature would not be of the whole: %s, sighash type %d', (script, sighashType) => {
    const psbt = psbtOf([{ script: outputOf(script, PUBLIC_KEY), sighashType }]);

    refuses(
      () => bitcoinSigningInputs(parseUnsignedBitcoin(psbt.toHex()), PUBLIC_KEY),
      `input 0 asks for the sighash type ${sighashType}, which does not sign the whole transaction`,
    );
  });

  it('by a key that owns none of its inputs', () => {
    const transaction = parseUnsignedBitcoin(psbtOf([{ script: p2wpkh }]).toHex());

    refuses(
      () => bitcoinSigningInputs(transaction, OTHER_PUBLIC_KEY),
      `none of the inputs spends an output of the key \`${hex(OTHER_PUBLIC_KEY)}\``,
    );
    refuses(() => bitcoinSigningInputs(transaction, PUBLIC_KEY, 'P2TR'), 'output of the P2TR address of the key');
  });

  it(
    'or parsed, whatever the bytes are',
    () => {
      const start = Buffer.from(psbtOf([{ script: p2wpkh }, { script: outputOf('P2TR', PUBLIC_KEY) }]).toHex(), 'hex');
      const magic = start.subarray(0, 5);
      let refused = 0;
      const parseAll = (bytes: Uint8Array) => {
        try {
          const transaction = parseUnsignedBitcoin(hex(bytes));
          bitcoinPolicyValue(transaction, 'MAINNET');
          const [input] = bitcoinSigningInputs(transaction, PUBLIC_KEY);
          const signature = { r: '11'.repeat(32), s: '11'.repeat(32), v: '00' };
          assembleBitcoin(transaction, PUBLIC_KEY, [{ input: input!, signature }]);
        } catch (error) {
          if (!(error instanceof CoordinatorError) || error.code !== 'INVALID_ARGUMENT') throw error;
          refused += 1;
        }
      };
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => parseAll(Buffer.concat([magic, bytes]))),
        { numRuns: 2_000 },
      );
      fc.assert(fc.property(mutationsOf(start), parseAll), { numRuns: 3_000 });
      expect(refused).toBeGreaterThan(3_000);
    },
    LONG,
  );
});
