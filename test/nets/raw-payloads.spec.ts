import { schnorr, secp256k1 } from '@noble/curves/secp256k1.js';
import { ed25519 } from '@noble/curves/ed25519.js';
import { bytesToNumberBE } from '@noble/curves/utils.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { base58 } from '@scure/base';
import { initEccLib, payments, Psbt, Transaction } from 'bitcoinjs-lib';
import { Transaction as EthersTransaction } from 'ethers';
import fc from 'fast-check';
import { TronWeb } from 'tronweb';
import { encodeFunctionData, parseAbi, serializeTransaction } from 'viem';
import { signRawPayload } from '../../src/activities/signing/sign-raw-payload.js';
import { signRawPayloads } from '../../src/activities/signing/sign-raw-payloads.js';
import { signTransaction } from '../../src/activities/signing/sign-transaction.js';
import { authorize } from '../../src/domain/policy/authorize.js';
import { policyEnvironment } from '../../src/domain/policy/namespaces.js';
import { resourceNamespaces } from '../../src/domain/policy/resource-namespaces.js';
import type { AuthorizationRequest, Policy, PolicyUser } from '../../src/domain/policy/types.js';
import { unsignedSolana } from '../../src/transactions/unsigned-solana.js';
import { unsignedTron } from '../../packages/analyze/src/trial/unsigned-tron.js';
import { validate } from '../../src/wire/validate.js';
import { Signers } from '../activities/signing/signers.js';
import { isLong } from '../long.js';

/*
 * A raw payload is never decided more permissively than the transaction that its signature is valid for. Each
 * transaction is made and each signature checked by libraries that the product does not use.
 */

/** Of each chain. */
const transactions = isLong ? 2_000 : 150;
const long = isLong ? 900_000 : 120_000;
const scripts = ['P2PKH', 'P2SH', 'P2WPKH', 'P2WSH', 'P2TR'] as const;
const path = "m/44'/60'/0'/0/0";
const token = '0x6b175474e89094c44da98b954eedeac495271d0f';
const erc20 = parseAbi(['function transfer(address to, uint256 amount) returns (bool)']);
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const bytesOf = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text.replace(/^0x/, ''), 'hex'));

initEccLib({
  isXOnlyPoint: (point) => {
    try {
      schnorr.utils.lift_x(bytesToNumberBE(point));
      return true;
    } catch {
      return false;
    }
  },
  xOnlyPointAddTweak: (point, tweak) => {
    const sum = schnorr.utils
      .lift_x(bytesToNumberBE(point))
      .add(secp256k1.Point.BASE.multiplyUnsafe(bytesToNumberBE(tweak)));
    if (sum.is0()) return null;
    const [prefix, ...xOnlyPubkey] = sum.toBytes(true);
    return { parity: prefix === 3 ? 1 : 0, xOnlyPubkey: Uint8Array.from(xOnlyPubkey) };
  },
});

const user: PolicyUser = {
  userId: 'member',
  userName: 'member',
  tags: [],
  credentials: [{ id: 'key', userId: 'member', type: 'CREDENTIAL_TYPE_API_KEY_P256', publicKey: '02' }],
};
const environment = policyEnvironment({}, resourceNamespaces);
let signers: Signers;
let names: Readonly<Record<'ethereum' | 'tron' | 'solana' | (typeof scripts)[number], string>>;
let publicKey: Uint8Array;
let organization: ReturnType<Signers['organization']>;

beforeAll(async () => {
  signers = await Signers.open();
  const { accounts } = await signers.addWallet(100, [
    { curve: 'CURVE_SECP256K1', path, addressFormat: 'ADDRESS_FORMAT_ETHEREUM' },
    { curve: 'CURVE_SECP256K1', path, addressFormat: 'ADDRESS_FORMAT_TRON' },
    { curve: 'CURVE_ED25519', path: "m/44'/501'/0'/0'", addressFormat: 'ADDRESS_FORMAT_SOLANA' },
    ...scripts.map((script) => ({
      curve: 'CURVE_SECP256K1' as const,
      path,
      addressFormat: `ADDRESS_FORMAT_BITCOIN_MAINNET_${script}` as const,
    })),
    { curve: 'CURVE_SECP256K1', path, addressFormat: 'ADDRESS_FORMAT_COMPRESSED' },
  ]);
  const [ethereum, tron, solana, ...bitcoin] = accounts.map(({ address }) => address);
  const addresses = Object.fromEntries(scripts.map((script, at) => [script, bitcoin[at]!]));
  names = { ethereum, tron, solana, ...addresses } as typeof names;
  publicKey = bytesOf(accounts.at(-1)!.address);
  signers.history.push({
    type: 'SmartContractInterfaceCreated',
    data: {
      smartContractInterfaceId: 'erc20',
      smartContractAddress: token,
      smartContractInterface: JSON.stringify(erc20),
      type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
      label: 'token',
      notes: '',
    },
  });
  organization = signers.organization();
});

interface Sent {
  readonly signWith: string;
  readonly payload: string;
  readonly hashFunction: string;
}
type Signature = Awaited<ReturnType<typeof signedRaw>>;

const rawOf = ({ signWith, payload, hashFunction }: Sent) => ({
  signWith,
  payload,
  encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
  hashFunction,
});
const signedRaw = async (sent: Sent) => (await signers.prepare(signRawPayload, rawOf(sent))).signature;

function decided(about: Pick<AuthorizationRequest, 'resources' | 'parts'>, policies: readonly Policy[]): string {
  const request: AuthorizationRequest = {
    activity: { type: 't', kind: 'SIGN', resource: 'PRIVATE_KEY', action: 'SIGN', params: {} },
    submitterId: user.userId,
    rootQuorumOnly: false,
    ownCredentials: false,
    ...about,
  };
  const approvals = [{ userId: user.userId, credential: user.credentials[0]! }];
  const rootQuorum = { threshold: 1, userIds: ['somebody else'] };
  return authorize(request, approvals, { policies, rootQuorum, users: [user], environment, now: 0 }).outcome;
}

const policy = (effect: Policy['effect'], condition: string): Policy => ({
  policyId: `${effect} ${condition}`,
  policyName: condition,
  effect,
  condition,
  notes: '',
  createdAt: 0,
  updatedAt: 0,
});
const anything = policy('EFFECT_ALLOW', "activity.action == 'SIGN'");

/** Counts the decisions of each outcome, so that a test that compares nothing does not pass. */
const seen = { allowed: 0, refused: 0 };

/** Under each condition, as an ALLOW and as a DENY beside an ALLOW of everything. */
function isNoMorePermissive(transaction: object, sent: readonly Sent[], conditions: readonly string[]): void {
  const resources = signTransaction.resources!(
    validate(signTransaction.intent, transaction, 'parameters'),
    organization,
  );
  for (const raw of sent) {
    const { payload, ...rest } = rawOf(raw);
    const one = signRawPayload.payloads!(validate(signRawPayload.intent, rawOf(raw), 'parameters'), organization);
    const many = signRawPayloads.payloads!(
      validate(signRawPayloads.intent, { ...rest, payloads: [payload, `0x${payload}`] }, 'parameters'),
      organization,
    );
    for (const condition of conditions) {
      for (const policies of [[policy('EFFECT_ALLOW', condition)], [anything, policy('EFFECT_DENY', condition)]]) {
        const asTransaction = decided({ resources }, policies);
        seen[asTransaction === 'allow' ? 'allowed' : 'refused'] += 1;
        for (const parts of [one, many]) {
          const asPayload = decided({ parts }, policies);
          if (asPayload === 'allow' && asTransaction !== 'allow') {
            throw new Error(`${policies.at(-1)!.policyId}: ${raw.hashFunction} of ${payload} is allowed`);
          }
        }
      }
    }
  }
}

async function each<Made>(arbitrary: fc.Arbitrary<Made>, check: (made: Made) => Promise<void>): Promise<void> {
  Object.assign(seen, { allowed: 0, refused: 0 });
  await fc.assert(fc.asyncProperty(arbitrary, check), { numRuns: transactions });
  expect(seen.allowed).toBeGreaterThan(transactions);
  expect(seen.refused).toBeGreaterThan(transactions);
}

const isEcdsa = ({ r, s }: Signature, digest: Uint8Array): boolean =>
  secp256k1.verify(bytesOf(r + s), digest, publicKey, { prehash: false });

const amount = fc.oneof(fc.constantFrom(0n, 1n, 5n), fc.bigInt(0n, 2n ** 62n));
const address = fc.constantFrom<`0x${string}`>(token, `0x${'11'.repeat(20)}`, `0x${'22'.repeat(20)}`);

test(
  'Ethereum',
  async () => {
    const call = fc.tuple(address, amount).map((args) => encodeFunctionData({ abi: erc20, args }));
    const data = fc.oneof(fc.constant('0x' as const), call, fc.constant('0xdeadbeef00' as const));
    const list = fc.constantFrom([], [{ address: token, storageKeys: [`0x${'33'.repeat(32)}`] as const }] as const);
    const authorization = {
      address: token,
      chainId: 1,
      nonce: 0,
      r: `0x${'1'.repeat(64)}`,
      s: `0x1`,
      yParity: 0,
    } as const;
    const fees = { maxFeePerGas: 9n, maxPriorityFeePerGas: 1n };
    const kinds = fc.constantFrom(
      { type: 'legacy', gasPrice: 3n },
      { type: 'eip2930', gasPrice: 3n },
      { type: 'eip1559', ...fees },
      { type: 'eip4844', ...fees, maxFeePerBlobGas: 1n, blobVersionedHashes: [`0x01${'0'.repeat(62)}`] },
      { type: 'eip7702', ...fees, authorizationList: [authorization] },
    );
    const made = fc
      .record({ to: address, value: amount, data, nonce: fc.nat(1e9), chainId: fc.constantFrom(1, 137), gas: amount })
      .chain((common) =>
        fc.tuple(kinds, list).map(([kind, accessList]) => {
          const transaction = { ...common, ...kind, ...(kind.type === 'legacy' ? {} : { accessList }) };
          return serializeTransaction(transaction as Parameters<typeof serializeTransaction>[0]).slice(2);
        }),
      );
    const conditions = [
      `eth.tx.to == '${token}'`,
      `eth.tx.to != '${token}'`,
      'eth.tx.value < 6',
      'eth.tx.chain_id == 1',
      "eth.tx.type == 'TYPE_2' || eth.tx.nonce > 5",
      "eth.tx.function_name == 'transfer'",
      "eth.tx.contract_call_args['amount'] < 6",
      "eth.eip_712.primary_type == 'Mail'",
      'eth.eip_7702_authorization.nonce == 0',
    ];
    await each(made, async (unsignedTransaction) => {
      const digest = keccak_256(bytesOf(unsignedTransaction));
      const sent = [
        { signWith: names.ethereum, payload: unsignedTransaction, hashFunction: 'HASH_FUNCTION_KECCAK256' },
        { signWith: names.P2WPKH, payload: unsignedTransaction.toUpperCase(), hashFunction: 'HASH_FUNCTION_KECCAK256' },
        { signWith: names.ethereum, payload: hex(digest), hashFunction: 'HASH_FUNCTION_NO_OP' },
      ];
      for (const one of sent) {
        const { r, s, v } = await signedRaw(one);
        const signed = EthersTransaction.from(`0x${unsignedTransaction}`);
        signed.signature = { r: `0x${r}`, s: `0x${s}`, v: 27 + Number(v) };
        expect(EthersTransaction.from(signed.serialized).from).toBe(names.ethereum);
      }
      const type = 'TRANSACTION_TYPE_ETHEREUM';
      isNoMorePermissive({ signWith: names.ethereum, unsignedTransaction, type }, sent, conditions);
    });
  },
  long,
);

test(
  'Tron',
  async () => {
    const [one, other] = [1, 2].map((byte) => TronWeb.address.fromHex(`41${String(byte).repeat(40)}`));
    const receiver = fc.constantFrom(one!, other!);
    const made = fc
      .record({
        to: receiver,
        value: fc.bigInt(0n, 2n ** 50n),
        memo: fc.uint8Array({ maxLength: 20 }),
        hash: fc.uint8Array({ minLength: 8, maxLength: 8 }),
        isCall: fc.boolean(),
      })
      .map(({ to, value, memo, hash, isCall }) =>
        unsignedTron({
          refBlockBytes: 'abcd',
          refBlockHash: hex(hash),
          expiration: 1_700_000_060_000n,
          timestamp: 1_700_000_000_000n,
          data: hex(memo),
          feeLimit: value,
          permissionId: 0n,
          ...(isCall
            ? {
                type: 'TriggerSmartContract',
                fields: { owner_address: names.tron, contract_address: to, call_value: value, data: 'a9059cbb' },
              }
            : { type: 'TransferContract', fields: { owner_address: names.tron, to_address: to, amount: value } }),
        }),
      );
    const conditions = [
      "tron.tx.contract.all(c, c.type == 'TransferContract')",
      `tron.tx.contract.any(c, c.to_address == '${one!}')`,
      `tron.tx.contract[0].owner_address == '${names.tron}'`,
      'tron.tx.fee_limit < 1000',
      "tron.tx.data == ''",
    ];
    await each(made, async (unsignedTransaction) => {
      const digest = sha256(bytesOf(unsignedTransaction));
      const sent = [
        { signWith: names.tron, payload: unsignedTransaction, hashFunction: 'HASH_FUNCTION_SHA256' },
        { signWith: names.ethereum, payload: unsignedTransaction, hashFunction: 'HASH_FUNCTION_SHA256' },
        { signWith: names.tron, payload: hex(digest), hashFunction: 'HASH_FUNCTION_NO_OP' },
      ];
      for (const raw of sent) expect(isEcdsa(await signedRaw(raw), digest)).toBe(true);
      const type = 'TRANSACTION_TYPE_TRON';
      isNoMorePermissive({ signWith: names.tron, unsignedTransaction, type }, sent, conditions);
    });
  },
  long,
);

test(
  'Solana',
  async () => {
    const key = (byte: number) => base58.encode(new Uint8Array(32).fill(byte));
    const system = '11111111111111111111111111111111';
    const tokens = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
    const u64 = (value: bigint) => {
      const bytes = Buffer.alloc(8);
      bytes.writeBigUInt64LE(value);
      return bytes;
    };
    const account = (name: string, signer = false) => ({ key: name, signer, writable: true });
    const instruction = fc.oneof(
      fc.tuple(fc.constantFrom(5, 6), amount).map(([to, value]) => ({
        programKey: system,
        data: Buffer.concat([Buffer.from('02000000', 'hex'), u64(value)]),
        accounts: [account(names.solana, true), account(key(to))],
      })),
      fc.tuple(fc.constantFrom(5, 6), amount, fc.constantFrom(3, 4, 7)).map(([to, value, tag]) => ({
        programKey: tokens,
        data: Buffer.concat([Uint8Array.of(tag), u64(value)]),
        accounts: [account(key(9)), account(key(to)), account(names.solana, true)],
      })),
      fc.uint8Array({ maxLength: 9 }).map((data) => ({ programKey: key(8), data, accounts: [account(key(7))] })),
    );
    const table = { tableKey: key(3), writableIndexes: [1], readonlyIndexes: [2, 3] };
    const made = fc
      .record({
        instructions: fc.array(instruction, { minLength: 1, maxLength: 5 }),
        tables: fc.constantFrom([], [table]),
        hash: fc.uint8Array({ minLength: 32, maxLength: 32 }),
      })
      .map(({ instructions, tables, hash }) =>
        unsignedSolana({ feePayer: names.solana, instructions, tables, recentBlockhash: base58.encode(hash) }),
      );
    const conditions = [
      `solana.tx.transfers.all(t, t.to == '${key(5)}')`,
      `solana.tx.transfers.any(t, t.to == '${key(5)}')`,
      'solana.tx.transfers.count() > 0 && solana.tx.transfers.all(t, t.amount < 6)',
      `solana.tx.spl_transfers.all(t, t.to == '${key(5)}')`,
      'solana.tx.instructions.count() == 1',
      `solana.tx.program_keys.contains('${tokens}')`,
      "solana.tx.recent_blockhash != 'x'",
    ];
    await each(made, async (unsignedTransaction) => {
      // One signature, empty.
      const message = unsignedTransaction.slice(2 * 65);
      const sent = [{ signWith: names.solana, payload: message, hashFunction: 'HASH_FUNCTION_NOT_APPLICABLE' }];
      const { r, s } = await signedRaw(sent[0]!);
      expect(ed25519.verify(bytesOf(r + s), bytesOf(message), base58.decode(names.solana))).toBe(true);
      const type = 'TRANSACTION_TYPE_SOLANA';
      isNoMorePermissive({ signWith: names.solana, unsignedTransaction, type }, sent, conditions);
    });
  },
  long,
);

test(
  'Bitcoin',
  async () => {
    const outputs: Readonly<Record<(typeof scripts)[number], Uint8Array>> = {
      P2PKH: payments.p2pkh({ pubkey: publicKey }).output!,
      P2SH: payments.p2sh({ redeem: payments.p2wpkh({ pubkey: publicKey }) }).output!,
      P2WPKH: payments.p2wpkh({ pubkey: publicKey }).output!,
      P2WSH: payments.p2wsh({ redeem: payments.p2pk({ pubkey: publicKey }) }).output!,
      P2TR: payments.p2tr({ internalPubkey: publicKey.subarray(1) }).output!,
    };
    const shop = payments.p2wpkh({ hash: new Uint8Array(20).fill(1) });
    const receiver = fc.constantFrom(shop.output!, payments.p2pkh({ hash: new Uint8Array(20).fill(2) }).output!);
    const made = fc.record({
      script: fc.constantFrom(...scripts),
      to: fc.array(fc.tuple(receiver, fc.bigInt(500n, 20_000n)), { minLength: 1, maxLength: 3 }),
      salts: fc.uniqueArray(fc.nat(200), { minLength: 1, maxLength: 3 }),
      locktime: fc.constantFrom(0, 800_000, 1_700_000_000),
    });
    const conditions = [
      `bitcoin.tx.outputs.all(o, o.address == '${shop.address!}')`,
      `bitcoin.tx.outputs.any(o, o.address == '${shop.address!}')`,
      'bitcoin.tx.outputs.all(o, o.value < 10000)',
      'bitcoin.tx.fee < 90000',
      'bitcoin.tx.inputs.count() == 1',
      "bitcoin.tx.locktime.type == 'Blocks'",
      "bitcoin.tx.version == '2'",
    ];
    await each(made, async ({ script, to, salts, locktime }) => {
      const psbt = new Psbt();
      psbt.setLocktime(locktime);
      const output = { script: outputs[script], value: 100_000n };
      for (const salt of salts) {
        const previous = new Transaction();
        previous.addInput(new Uint8Array(32).fill(salt + 1), salt);
        previous.addOutput(output.script, output.value);
        psbt.addInput({ hash: previous.getId(), index: 0, nonWitnessUtxo: previous.toBuffer(), witnessUtxo: output });
      }
      for (const [receiving, value] of to) psbt.addOutput({ script: receiving, value });
      const unsigned = Transaction.fromBuffer(psbt.data.globalMap.unsignedTx.toBuffer());
      const values = salts.map(() => output.value);
      const { digest, first } = signedFor(script, unsigned, outputs, values);
      // The second of both hashes, and the first for the coordinator to hash again.
      const sent = [
        { signWith: names[script], payload: hex(digest), hashFunction: 'HASH_FUNCTION_NO_OP' },
        ...(first ? [{ signWith: names.ethereum, payload: hex(first), hashFunction: 'HASH_FUNCTION_SHA256' }] : []),
      ];
      for (const raw of sent) {
        const signature = await signedRaw(raw);
        const isValid =
          script === 'P2TR'
            ? schnorr.verify(bytesOf(signature.r + signature.s), digest, outputs.P2TR.subarray(2))
            : isEcdsa(signature, digest);
        expect(isValid).toBe(true);
      }
      const type = 'TRANSACTION_TYPE_BITCOIN';
      isNoMorePermissive({ signWith: names[script], unsignedTransaction: psbt.toHex(), type }, sent, conditions);
    });
  },
  long,
);

/** What the first input signs under SIGHASH_ALL, by bitcoinjs-lib, and the first of its two hashes. */
function signedFor(
  script: (typeof scripts)[number],
  unsigned: Transaction,
  outputs: Readonly<Record<(typeof scripts)[number], Uint8Array>>,
  values: bigint[],
): { digest: Uint8Array; first?: Uint8Array } {
  if (script === 'P2TR') {
    return {
      digest: unsigned.hashForWitnessV1(
        0,
        values.map(() => outputs.P2TR),
        values,
        0,
      ),
    };
  }
  const code = script === 'P2WSH' ? payments.p2pk({ pubkey: publicKey }).output! : outputs.P2PKH;
  if (script === 'P2PKH') {
    const copy = unsigned.clone();
    copy.ins.forEach((input, at) => (input.script = at === 0 ? code : new Uint8Array()));
    const preimage = Buffer.concat([copy.toBuffer(), Buffer.from('01000000', 'hex')]);
    const digest = unsigned.hashForSignature(0, code, Transaction.SIGHASH_ALL);
    expect(hex(sha256(sha256(preimage)))).toBe(hex(digest));
    return { digest, first: sha256(preimage) };
  }
  const [outpoints, sequences] = [Buffer.alloc(36 * unsigned.ins.length), Buffer.alloc(4 * unsigned.ins.length)];
  unsigned.ins.forEach(({ hash, index, sequence }, at) => {
    outpoints.set(hash, 36 * at);
    outpoints.writeUInt32LE(index, 36 * at + 32);
    sequences.writeUInt32LE(sequence, 4 * at);
  });
  const paid = Buffer.concat(
    unsigned.outs.map(({ value, script: receiving }) => {
      const head = Buffer.alloc(9);
      head.writeBigUInt64LE(value);
      head[8] = receiving.length;
      return Buffer.concat([head, receiving]);
    }),
  );
  const [version, value, end] = [Buffer.alloc(4), Buffer.alloc(8), Buffer.alloc(8)];
  version.writeInt32LE(unsigned.version);
  value.writeBigUInt64LE(values[0]!);
  end.writeUInt32LE(unsigned.locktime);
  end[4] = 1;
  const twice = (bytes: Uint8Array) => sha256(sha256(bytes));
  const preimage = Buffer.concat([
    version,
    twice(outpoints),
    twice(sequences),
    outpoints.subarray(0, 36),
    Uint8Array.of(code.length),
    code,
    value,
    sequences.subarray(0, 4),
    twice(paid),
    end,
  ]);
  const digest = unsigned.hashForWitnessV0(0, code, values[0]!, Transaction.SIGHASH_ALL);
  expect(hex(twice(preimage))).toBe(hex(digest));
  return { digest, first: sha256(preimage) };
}
