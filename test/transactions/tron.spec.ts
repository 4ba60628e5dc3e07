import fc from 'fast-check';
import { TronWeb, utils } from 'tronweb';
import { CoordinatorError } from '../../src/domain/errors.js';
import { tronTxType } from '../../src/domain/policy/resource-namespaces.js';
import { signPayload } from '../../src/keyring/signing.js';
import { decodedForMail, decodedOf } from '../../src/domain/policy/decoded.js';
import { assembleTron, tronPolicyValue } from '../../src/transactions/tron.js';
import { parseUnsignedTron, tronDigest } from './decoders.js';
import { conforms } from '../domain/policy/conforms.js';
import { mutationsOf } from './mutations.js';

/** Milliseconds for thousands of random cases, on a slow and busy machine. */
const LONG = 120_000;

const PRIVATE_KEY = new Uint8Array(32).fill(7);
const OWNER = TronWeb.address.fromPrivateKey(Buffer.from(PRIVATE_KEY).toString('hex')) as string;
const RECIPIENT = 'TXrs7yxQLNzig7J9EbKhoEiUp6kWpdWKnD';
const CONTRACT = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';

// No request goes out: with a block header and `txLocal` everything is built here.
const tronWeb = new TronWeb({ fullHost: 'http://127.0.0.1:1' });
const blockHeader = {
  ref_block_bytes: 'ddf1',
  ref_block_hash: 'd04764f22469a0b8',
  expiration: 1_655_692_140_000,
  timestamp: 1_655_692_083_406,
};

type Built = Awaited<ReturnType<typeof tronWeb.transactionBuilder.sendTrx>>;

const contractOf = (hex: string) => {
  const value = tronPolicyValue(parseUnsignedTron(hex)) as { contract: unknown[] };
  return value.contract[0];
};

// The generated protobuf classes of TronWeb itself.
const { TronWebProto } = globalThis as unknown as {
  TronWebProto: {
    Transaction: {
      deserializeBinary(bytes: Uint8Array): {
        getRawData(): { serializeBinary(): Uint8Array };
        getSignatureList_asU8(): Uint8Array[];
      };
    };
  };
};

/** Protobuf by hand, for what no SDK writes. */
const varint = (value: bigint): number[] =>
  value < 128n ? [Number(value)] : [Number(value & 127n) | 128, ...varint(value >> 7n)];
const number = (field: number, value: bigint): number[] => [...varint(BigInt(field << 3)), ...varint(value)];
const delimited = (field: number, content: readonly number[]): number[] => [
  ...varint(BigInt((field << 3) | 2)),
  ...varint(BigInt(content.length)),
  ...content,
];
const text = (value: string): number[] => [...Buffer.from(value)];
const address = (base58: string): number[] => [...Buffer.from(TronWeb.address.toHex(base58), 'hex')];
const rawData = (contract: readonly number[]): string =>
  Buffer.from([
    ...delimited(1, [0xdd, 0xf1]),
    ...delimited(4, [1, 2, 3, 4, 5, 6, 7, 8]),
    ...number(8, 1_655_692_140_000n),
    ...delimited(11, contract),
    ...number(14, 1_655_692_083_406n),
  ]).toString('hex');
const contractMessage = (type: bigint, name: string, value: readonly number[]): number[] => [
  ...number(1, type),
  ...delimited(2, [...delimited(1, text(`type.googleapis.com/protocol.${name}`)), ...delimited(2, value)]),
];
const transfer = (amount: readonly number[]): number[] =>
  contractMessage(1n, 'TransferContract', [
    ...delimited(1, address(OWNER)),
    ...delimited(2, address(RECIPIENT)),
    ...amount,
  ]);

describe('Tron transactions that TronWeb built', () => {
  let sendTrx: Built;
  let withMemo: Built;

  beforeAll(async () => {
    sendTrx = await tronWeb.transactionBuilder.sendTrx(RECIPIENT, 1_500_000, OWNER, { blockHeader });
    withMemo = await tronWeb.transactionBuilder.addUpdateData(sendTrx, 'invoice 17', 'utf8', { txLocal: true });
  });

  it('are shown to approvers in TRX; a memo in the activity only', () => {
    const toSign = { resources: { tron: { tx: tronPolicyValue(parseUnsignedTron(withMemo.raw_data_hex)) } } };
    const text = `1.5 TRX by TransferContract to ${RECIPIENT}.`;
    const facts = [
      { name: 'Contract type', value: 'TransferContract' },
      { name: 'To', value: RECIPIENT },
      { name: 'Value', value: '1.5 TRX' },
    ];
    expect(decodedOf(toSign)).toEqual([{ text, facts: [...facts, { name: 'Memo', value: '"invoice 17"' }] }]);
    expect(decodedForMail(toSign)).toEqual([
      { name: 'It would sign', value: text },
      ...facts,
      { name: 'And', value: 'more than is shown here: see the activity' },
    ]);
  });

  it('are shown to policies: a transfer', () => {
    const value = tronPolicyValue(parseUnsignedTron(sendTrx.raw_data_hex));

    expect(value).toEqual({
      ref_block_bytes: 'ddf1',
      ref_block_hash: 'd04764f22469a0b8',
      expiration: 1_655_692_140_000n,
      timestamp: 1_655_692_083_406n,
      data: '',
      fee_limit: 0n,
      contract: [
        {
          type: 'TransferContract',
          permission_id: 0n,
          owner_address: OWNER,
          to_address: RECIPIENT,
          amount: 1_500_000n,
        },
      ],
    });
    expect(conforms(tronTxType, value)).toEqual([]);
  });

  it('are shown to policies: the memo as hex', () => {
    const { memo } = parseUnsignedTron(withMemo.raw_data_hex);

    expect(memo).toBe(Buffer.from('invoice 17').toString('hex'));
  });

  it('are shown to policies: a call of a token contract', async () => {
    const { transaction } = await tronWeb.transactionBuilder.triggerSmartContract(
      CONTRACT,
      'transfer(address,uint256)',
      { feeLimit: 100_000_000, callValue: 5, txLocal: true, blockHeader },
      [
        { type: 'address', value: RECIPIENT },
        { type: 'uint256', value: 1_000_000 },
      ],
      OWNER,
    );
    const parsed = parseUnsignedTron(transaction.raw_data_hex);
    const recipient = TronWeb.address.toHex(RECIPIENT).slice(2).toLowerCase().padStart(64, '0');

    expect(parsed.feeLimit).toBe(100_000_000n);
    expect(contractOf(transaction.raw_data_hex)).toEqual({
      type: 'TriggerSmartContract',
      permission_id: 0n,
      owner_address: OWNER,
      contract_address: CONTRACT,
      call_value: 5n,
      data: `a9059cbb${recipient}${1_000_000n.toString(16).padStart(64, '0')}`,
      call_token_value: 0n,
      token_id: 0n,
    });
    expect(Buffer.from(tronDigest(parsed)).toString('hex')).toBe(transaction.txID);
  });

  it('are shown to policies: freezing, delegating and taking back', async () => {
    const builder = tronWeb.transactionBuilder;
    const options = { blockHeader };
    const freeze = await builder.freezeBalanceV2(2_000_000, 'ENERGY', OWNER, options);
    const unfreeze = await builder.unfreezeBalanceV2(1_000_000, 'BANDWIDTH', OWNER, options);
    const delegate = await builder.delegateResource(1_000_000, RECIPIENT, 'ENERGY', OWNER, true, 1200, options);
    const takeBack = await builder.undelegateResource(1_000_000, RECIPIENT, 'BANDWIDTH', OWNER, options);

    const common = { permission_id: 0n, owner_address: OWNER };
    const delegation = { ...common, balance: 1_000_000n, receiver_address: RECIPIENT };
    expect([freeze, unfreeze, delegate, takeBack].map(({ raw_data_hex }) => contractOf(raw_data_hex))).toEqual([
      { ...common, type: 'FreezeBalanceV2Contract', frozen_balance: 2_000_000n, resource: 'ENERGY' },
      { ...common, type: 'UnfreezeBalanceV2Contract', unfreeze_balance: 1_000_000n, resource: 'BANDWIDTH' },
      { ...delegation, type: 'DelegateResourceContract', resource: 'ENERGY', lock: true, lock_period: 1200n },
      { ...delegation, type: 'UnDelegateResourceContract', resource: 'BANDWIDTH' },
    ]);
  });

  it('are shown to policies: new permissions of an account', async () => {
    const operations = `7fff1fc0033e${'0'.repeat(52)}`;
    const permission = (type: number, name: string) => ({
      type,
      permission_name: name,
      threshold: 2,
      keys: [
        { address: OWNER, weight: 1 },
        { address: RECIPIENT, weight: 1 },
      ],
    });
    const built = await tronWeb.transactionBuilder.updateAccountPermissions(
      OWNER,
      permission(0, 'owner'),
      undefined,
      [{ ...permission(2, 'daily'), operations, id: 2 }],
      { blockHeader },
    );
    const expected = (type: string, name: string, rest: object) => ({
      type,
      permission_name: name,
      threshold: 2n,
      parent_id: 0n,
      keys: [
        { address: OWNER, weight: 1n },
        { address: RECIPIENT, weight: 1n },
      ],
      ...rest,
    });

    expect(contractOf(built.raw_data_hex)).toEqual({
      type: 'AccountPermissionUpdateContract',
      permission_id: 0n,
      owner_address: OWNER,
      owner: expected('Owner', 'owner', { id: 0n, operations: '' }),
      witness: undefined,
      actives: [expected('Active', 'daily', { operations, id: expect.any(BigInt) as bigint })],
    });
    expect(conforms(tronTxType, tronPolicyValue(parseUnsignedTron(built.raw_data_hex)))).toEqual([]);
  });

  it('are signed over their transaction id as TronWeb signs, and its protobuf reads what is put together', () => {
    const parsed = parseUnsignedTron(withMemo.raw_data_hex);
    const signed = assembleTron(
      parsed,
      signPayload({ curve: 'CURVE_SECP256K1', privateKey: PRIVATE_KEY }, tronDigest(parsed)),
    );
    const byTronWeb = utils.crypto.signTransaction(PRIVATE_KEY, structuredClone(withMemo)) as { signature: string[] };

    const decoded = TronWebProto.Transaction.deserializeBinary(Buffer.from(signed, 'hex'));
    const signatures = decoded.getSignatureList_asU8().map((one) => Buffer.from(one).toString('hex'));
    expect(Buffer.from(tronDigest(parsed)).toString('hex')).toBe(withMemo.txID);
    expect(Buffer.from(decoded.getRawData().serializeBinary()).toString('hex')).toBe(withMemo.raw_data_hex);
    expect(signatures).toEqual(byTronWeb.signature.map((one) => one.toLowerCase()));
    expect(TronWeb.address.fromHex(utils.crypto.ecRecover(withMemo.txID, signatures[0]!))).toBe(OWNER);
  });

  it('can be of any length', () => {
    for (const length of [0, 1, 90, 200, 20_000]) {
      const call = contractMessage(31n, 'TriggerSmartContract', [
        ...delimited(1, address(OWNER)),
        ...delimited(2, address(CONTRACT)),
        ...delimited(
          4,
          Array.from({ length }, () => 0xab),
        ),
      ]);
      const parsed = parseUnsignedTron(rawData(call));
      const signed = assembleTron(
        parsed,
        signPayload({ curve: 'CURVE_SECP256K1', privateKey: PRIVATE_KEY }, tronDigest(parsed)),
      );

      const decoded = TronWebProto.Transaction.deserializeBinary(Buffer.from(signed, 'hex'));
      expect(Buffer.from(decoded.getRawData().serializeBinary()).toString('hex')).toBe(rawData(call));
      expect(parsed.contract).toMatchObject({ data: 'ab'.repeat(length) });
    }
  });
});

describe('a Tron transaction is refused', () => {
  const owner = delimited(1, address(OWNER));
  const whole = Buffer.from(rawData(transfer(number(3, 1n))), 'hex');
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ['that is not hex', '0a0q', /expected hex, but digit 4 is `q`/],
    ['that is empty', '', /the transaction is empty/],
    ['that is half a byte too long', '0a02d', /got 5 digits/],
    ['that is cut off', whole.toString('hex').slice(0, -2), /raw_data\.timestamp was expected/],
    ['with bytes after its end', `${whole.toString('hex')}00`, /field 0/],
    [
      'that is the Transaction around it',
      Buffer.from(delimited(1, [...whole])).toString('hex'),
      /ref_block_bytes is \d+ bytes/,
    ],
    [
      'without a contract',
      Buffer.from([...delimited(1, [1, 2]), ...delimited(4, [1, 2, 3, 4, 5, 6, 7, 8])]).toString('hex'),
      /has 0 contracts/,
    ],
    [
      'with two contracts',
      whole.toString('hex') + Buffer.from(delimited(11, transfer([]))).toString('hex'),
      /has 2 contracts/,
    ],
    [
      'with a field of raw_data that policies cannot see',
      whole.toString('hex') + Buffer.from(delimited(12, [1])).toString('hex'),
      /raw_data has a field 12/,
    ],
    [
      'with a field that is there twice',
      rawData(transfer([...number(3, 1n), ...number(3, 2n)])),
      /TransferContract\.amount is there twice/,
    ],
    [
      'with a field of another wire type',
      rawData(transfer(delimited(3, [1]))),
      /TransferContract\.amount is length-delimited, expected a varint/,
    ],
    [
      'with a negative amount',
      rawData(transfer(number(3, 2n ** 64n - 5n))),
      /TransferContract\.amount is negative: -5/,
    ],
    ['with an amount of more than 64 bits', rawData(transfer(number(3, 2n ** 64n))), /more than 64 bits/],
    ['with a number in a longer form', rawData(transfer([...varint(24n), 0x81, 0x00])), /not in its shortest form/],
    [
      'with a permission id of more than 32 bits',
      rawData([...transfer([]), ...number(5, 2n ** 32n + 2n)]),
      /Permission_id is 4294967298/,
    ],
    [
      'of a contract type that policies cannot see',
      rawData(contractMessage(4n, 'VoteWitnessContract', owner)),
      /contract type 4 .*VoteWitnessContract.* is not supported: .*TransferContract/,
    ],
    [
      'whose contract is of another type than it says',
      rawData(contractMessage(31n, 'TransferContract', owner)),
      /contract type 31 is TriggerSmartContract/,
    ],
    [
      'without a recipient',
      rawData(contractMessage(1n, 'TransferContract', owner)),
      /TransferContract\.to_address is 0 bytes long, expected 21/,
    ],
    [
      'with an address of another network',
      rawData(contractMessage(1n, 'TransferContract', delimited(1, [0xa0, ...address(OWNER).slice(1)]))),
      /does not begin with 41/,
    ],
    [
      'with a resource that does not exist',
      rawData(contractMessage(54n, 'FreezeBalanceV2Contract', [...owner, ...number(3, 9n)])),
      /resource is 9, expected 0 to 2/,
    ],
    [
      'with a type URL that is not UTF-8',
      rawData([...number(1, 1n), ...delimited(2, delimited(1, [0xff]))]),
      /type_url is not UTF-8/,
    ],
  ];

  it.each(cases)('%s', (_what, text, message) => {
    expect(() => parseUnsignedTron(text)).toThrow(message);
    expect(() => parseUnsignedTron(text)).toThrow(CoordinatorError);
  });

  it(
    'or parsed, whatever the bytes are',
    () => {
      const start = Buffer.from(rawData(transfer(number(3, 1n))), 'hex');
      let refused = 0;
      const parse = (bytes: Uint8Array) => {
        try {
          tronPolicyValue(parseUnsignedTron(Buffer.from(bytes).toString('hex')));
        } catch (error) {
          if (!(error instanceof CoordinatorError) || error.code !== 'INVALID_ARGUMENT') throw error;
          refused += 1;
        }
      };
      fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), parse), { numRuns: 2_500 });
      fc.assert(fc.property(mutationsOf(start), parse), { numRuns: 2_500 });
      expect(refused).toBeGreaterThan(3_000);
    },
    LONG,
  );
});
