import { schnorr, secp256k1 } from '@noble/curves/secp256k1.js';
import { bytesToNumberBE } from '@noble/curves/utils.js';
import {
  address as solanaAddress,
  appendTransactionMessageInstructions,
  assertIsFullySignedTransaction,
  blockhash,
  compileTransaction,
  createTransactionMessage,
  getPublicKeyFromAddress,
  getTransactionDecoder,
  getTransactionEncoder,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  verifySignature,
  type Instruction,
} from '@solana/kit';
import { address as bitcoinAddress, initEccLib, Psbt, Transaction } from 'bitcoinjs-lib';
import { TronWeb } from 'tronweb';
import { encodeFunctionData, parseTransaction, recoverTransactionAddress, serializeTransaction } from 'viem';
import type { AccountToDerive } from '../../../src/ports/keyring.js';
import { signTransaction } from '../../../src/activities/signing/sign-transaction.js';
import { validate } from '../../../src/wire/validate.js';
import type { AddressFormat } from '../../../src/domain/key-formats.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { bitcoinTxType, ethTxType, solanaTxType, tronTxType } from '../../../src/domain/policy/resource-namespaces.js';
import { notApplicable } from '../../../src/domain/policy/types.js';
import { conforms } from '../../domain/policy/conforms.js';
import { fromHex, readVectors } from '../../keyring/read-vectors.js';
import { id } from '../given.js';
import { lifted } from '../lifted.js';
import { Signers } from './signers.js';

const formats = [
  'ADDRESS_FORMAT_ETHEREUM',
  'ADDRESS_FORMAT_TRON',
  'ADDRESS_FORMAT_BITCOIN_TESTNET_P2WPKH',
  'ADDRESS_FORMAT_BITCOIN_TESTNET_P2TR',
  'ADDRESS_FORMAT_COSMOS',
  'ADDRESS_FORMAT_COMPRESSED',
] as const satisfies readonly AddressFormat[];
const secp256k1Path = "m/44'/60'/0'/0/0";

let signers: Signers;
/** One key under every format, an Ed25519 key, and a P-256 key. */
let addresses: Readonly<Record<(typeof formats)[number] | 'SOLANA' | 'P256', string>>;

describe('sign_transaction', () => {
  beforeAll(async () => {
    signers = await Signers.open();
    const accounts: readonly AccountToDerive[] = [
      ...formats.map((addressFormat) => ({ curve: 'CURVE_SECP256K1' as const, path: secp256k1Path, addressFormat })),
      { curve: 'CURVE_ED25519', path: "m/44'/501'/0'/0'", addressFormat: 'ADDRESS_FORMAT_SOLANA' },
      { curve: 'CURVE_P256', path: "m/0'/0", addressFormat: 'ADDRESS_FORMAT_UNCOMPRESSED' },
    ];
    const { accounts: created } = await signers.addWallet(100, accounts);
    const names = [...formats, 'SOLANA', 'P256'];
    addresses = Object.fromEntries(names.map((name, at) => [name, created[at]!.address])) as typeof addresses;
  });

  const request = (type: string, signWith: string, unsignedTransaction: string) => ({
    signWith,
    unsignedTransaction,
    type: `TRANSACTION_TYPE_${type}`,
  });
  const signed = async (intent: object) => (await signers.sign(signTransaction, intent)).signedTransaction;

  // An ERC-20 call, so that an uploaded interface has something to say.
  const token = '0x6B175474E89094C44Da98b954EedeAC495271d0F';
  const abi = [
    {
      type: 'function',
      name: 'transfer',
      inputs: [
        { name: 'dst', type: 'address' },
        { name: 'wad', type: 'uint256' },
      ],
      outputs: [{ name: '', type: 'bool' }],
      stateMutability: 'nonpayable',
    },
  ] as const;
  const call = {
    type: 'eip1559',
    chainId: 10,
    nonce: 3,
    to: token,
    value: 0n,
    gas: 60_000n,
    maxFeePerGas: 9n,
    maxPriorityFeePerGas: 2n,
    data: encodeFunctionData({ abi, functionName: 'transfer', args: [`0x${'ab'.repeat(20)}`, 1_000n] }),
  } as const;
  const anInterface = (
    number: number,
    type: 'ETHEREUM' | 'SOLANA',
    smartContractAddress: string,
    definition: unknown,
  ): OrganizationEvent => ({
    type: 'SmartContractInterfaceCreated',
    data: {
      smartContractInterfaceId: id(number),
      smartContractAddress,
      smartContractInterface: JSON.stringify(definition),
      type: `SMART_CONTRACT_INTERFACE_TYPE_${type}`,
      label: `interface ${number}`,
      notes: '',
    },
  });

  describe('Ethereum', () => {
    it('signs the example of EIP-155', async () => {
      const vector = readVectors<{ signingData: string; privateKey: string; signed: string }>(
        'ethereum/eip155_example.json',
      );
      const { privateKeyId } = await signers.addPrivateKey(10, 'CURVE_SECP256K1', fromHex(vector.privateKey));
      for (const unsigned of [vector.signingData, vector.signingData.slice(2), vector.signingData.toUpperCase()]) {
        expect(`0x${await signed(request('ETHEREUM', privateKeyId, unsigned))}`).toBe(vector.signed);
      }
    });

    it('signs transactions of every type as ethers does', async () => {
      type Vector = Record<'privateKey' | `${'un' | ''}signed${string}`, string>;
      const vectors = readVectors<Vector[]>('ethereum/ethers_transactions_sample.json').slice(0, 6);
      let count = 0;
      for (const [index, vector] of vectors.entries()) {
        const { privateKeyId } = await signers.addPrivateKey(
          200 + index,
          'CURVE_SECP256K1',
          fromHex(vector.privateKey),
        );
        for (const type of ['Legacy', 'Eip155', 'Berlin', 'London', 'Cancun'] as const) {
          const unsigned = vector[`unsigned${type}`];
          if (unsigned === undefined) continue;
          expect(`0x${await signed(request('ETHEREUM', privateKeyId, unsigned))}`).toBe(vector[`signed${type}`]);
          count += 1;
        }
      }
      expect(count).toBe(30);
    });

    it.each(['ADDRESS_FORMAT_ETHEREUM', 'ADDRESS_FORMAT_COMPRESSED'] as const)(
      'signs for an address of format %s',
      async (format) => {
        const result = await signed(request('ETHEREUM', addresses[format], serializeTransaction(call).slice(2)));
        const serializedTransaction: `0x02${string}` = `0x${result as `02${string}`}`;
        expect(await recoverTransactionAddress({ serializedTransaction })).toBe(addresses.ADDRESS_FORMAT_ETHEREUM);
        expect(parseTransaction(serializedTransaction)).toMatchObject({ data: call.data, chainId: 10 });
      },
    );

    it('shows policies the transaction, and the call when its interface was uploaded', () => {
      const intent = request('ETHEREUM', addresses.ADDRESS_FORMAT_COMPRESSED, serializeTransaction(call));
      const plain = signers.resources(signTransaction, intent) as { eth: { tx: never } };
      expect(plain.eth.tx).toMatchObject({
        type: 'TYPE_2',
        from: addresses.ADDRESS_FORMAT_ETHEREUM.toLowerCase(),
        to: token.toLowerCase(),
        chain_id: 10n,
        function_name: notApplicable,
      });
      expect(plain).toMatchObject({
        wallet: { id: id(100) },
        wallet_account: { address: addresses.ADDRESS_FORMAT_COMPRESSED },
      });

      signers.history.push(
        anInterface(301, 'ETHEREUM', `0x${'99'.repeat(20)}`, [{ ...abi[0], name: 'elsewhere' }]),
        anInterface(302, 'SOLANA', token, { instructions: [] }),
        anInterface(303, 'ETHEREUM', token.toUpperCase().replace('0X', '0x'), abi),
      );
      const { eth } = signers.resources(signTransaction, intent) as { eth: { tx: never } };
      expect(eth.tx).toMatchObject({
        function_name: 'transfer',
        function_signature: '0xa9059cbb',
        contract_call_args: { dst: `0x${'ab'.repeat(20)}`, wad: 1_000n },
      });
      expect(conforms(ethTxType, eth.tx)).toEqual([]);
    });
  });

  const program = 'Vote111111111111111111111111111111111111111';
  const receiver = 'SysvarRent111111111111111111111111111111111';
  const memo: Instruction = { programAddress: solanaAddress(program), data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9) };

  function solanaTransaction(payer: string, other?: string): string {
    const lamports = Buffer.alloc(8);
    lamports.writeBigUInt64LE(5_000n);
    const transfer: Instruction = {
      programAddress: solanaAddress('11111111111111111111111111111111'),
      accounts: [
        { address: solanaAddress(other ?? payer), role: 3 },
        { address: solanaAddress(receiver), role: 1 },
      ],
      data: Uint8Array.from([2, 0, 0, 0, ...lamports]),
    };
    const message = setTransactionMessageFeePayer(solanaAddress(payer), createTransactionMessage({ version: 0 }));
    const lifetime = { blockhash: blockhash('J4NYrSRccTUGXP7wmFwiByakqWKZb5RwpiAoskpgAQRb'), lastValidBlockHeight: 1n };
    const lived = setTransactionMessageLifetimeUsingBlockhash(lifetime, message);
    const compiled = compileTransaction(appendTransactionMessageInstructions([transfer, memo], lived));
    return Buffer.from(getTransactionEncoder().encode(compiled)).toString('hex');
  }

  describe('Solana', () => {
    it('signs the message, and the network would take it', async () => {
      const transaction = getTransactionDecoder().decode(
        fromHex(await signed(request('SOLANA', addresses.SOLANA, solanaTransaction(addresses.SOLANA)))),
      );
      assertIsFullySignedTransaction(transaction);
      const key = await getPublicKeyFromAddress(solanaAddress(addresses.SOLANA));
      const [signature] = Object.values(transaction.signatures);
      expect(await verifySignature(key, signature!, transaction.messageBytes)).toBe(true);
    });

    it('puts the signature of a second signer in its place, after that of the first', async () => {
      const other = await signers.addPrivateKey(11, 'CURVE_ED25519', new Uint8Array(32).fill(9), [
        'ADDRESS_FORMAT_SOLANA',
      ]);
      const half = await signed(
        request('SOLANA', other.addresses[0]!, solanaTransaction(addresses.SOLANA, other.addresses[0])),
      );
      const whole = await signed(request('SOLANA', addresses.SOLANA, half));
      const transaction = getTransactionDecoder().decode(fromHex(whole));
      assertIsFullySignedTransaction(transaction);
      for (const [signer, signature] of Object.entries(transaction.signatures)) {
        const key = await getPublicKeyFromAddress(solanaAddress(signer));
        expect(await verifySignature(key, signature!, transaction.messageBytes)).toBe(true);
      }
    });

    it('shows policies the transfers, and the instruction when its IDL was uploaded', () => {
      const intent = request('SOLANA', addresses.SOLANA, solanaTransaction(addresses.SOLANA));
      const read = () => (signers.resources(signTransaction, intent) as { solana: { tx: never } }).solana.tx;
      expect(read()).toMatchObject({ transfers: [{ from: addresses.SOLANA, to: receiver, amount: 5_000n }] });
      signers.history.push(
        anInterface(310, 'ETHEREUM', program, abi),
        anInterface(311, 'SOLANA', program, {
          address: program,
          instructions: [
            {
              name: 'note',
              discriminator: [1, 2, 3, 4, 5, 6, 7, 8],
              accounts: [],
              args: [{ name: 'value', type: 'u8' }],
            },
          ],
          types: [],
        }),
      );
      expect(read()).toMatchObject({
        instructions: [{}, { parsed_instruction_data: { instruction_name: 'note', program_call_args: { value: 9n } } }],
      });
      expect(conforms(solanaTxType, read())).toEqual([]);
    });
  });

  const tronWeb = new TronWeb({ fullHost: 'http://127.0.0.1:1' });
  const blockHeader = {
    ref_block_bytes: 'ddf1',
    ref_block_hash: 'd04764f22469a0b8',
    expiration: 1_655_692_140_000,
    timestamp: 1_655_692_083_406,
  };
  const tronTransaction = async () =>
    tronWeb.transactionBuilder.sendTrx('TXrs7yxQLNzig7J9EbKhoEiUp6kWpdWKnD', 1_500_000, addresses.ADDRESS_FORMAT_TRON, {
      blockHeader,
    });

  describe('Tron', () => {
    it('signs the id of the transaction', async () => {
      const built = await tronTransaction();
      const result = await signed(request('TRON', addresses.ADDRESS_FORMAT_TRON, built.raw_data_hex));
      expect(result.startsWith(`0a${(built.raw_data_hex.length / 2).toString(16).padStart(2, '0')}01`)).toBe(true);
      const signature = result.slice(-130);
      expect(tronWeb.trx.ecRecover({ ...built, signature: [signature] })).toBe(addresses.ADDRESS_FORMAT_TRON);
    });

    it('shows policies the contract', async () => {
      const { raw_data_hex: unsigned } = await tronTransaction();
      const resources = signers.resources(signTransaction, request('TRON', addresses.ADDRESS_FORMAT_TRON, unsigned));
      const { tron } = resources as { tron: { tx: never } };
      expect(tron.tx).toMatchObject({
        contract: [{ owner_address: addresses.ADDRESS_FORMAT_TRON, amount: 1_500_000n }],
      });
      expect(conforms(tronTxType, tron.tx)).toEqual([]);
    });
  });

  // What bitcoinjs asks of a curve library for taproot.
  initEccLib({
    isXOnlyPoint(point) {
      try {
        schnorr.utils.lift_x(bytesToNumberBE(point));
        return true;
      } catch {
        return false;
      }
    },
    xOnlyPointAddTweak(point, tweak) {
      const lifted = schnorr.utils.lift_x(bytesToNumberBE(point));
      const sum = lifted.add(secp256k1.Point.BASE.multiplyUnsafe(bytesToNumberBE(tweak)));
      if (sum.is0()) return null;
      const [prefix, ...xOnlyPubkey] = sum.toBytes(true);
      return { parity: prefix === 3 ? 1 : 0, xOnlyPubkey: Uint8Array.from(xOnlyPubkey) };
    },
  });
  const testnet = {
    messagePrefix: '',
    bech32: 'tb',
    bip32: { public: 0, private: 0 },
    pubKeyHash: 0x6f,
    scriptHash: 0xc4,
    wif: 0xef,
  };
  const isValid = (key: Uint8Array, digest: Uint8Array, signature: Uint8Array): boolean =>
    key.length === 32
      ? schnorr.verify(signature, digest, key)
      : secp256k1.verify(signature, digest, key, { prehash: false });

  /** Spends one output of each address, 100 000 satoshis, and pays 5 000 to the first of them. */
  function psbtOf(...owners: readonly string[]): string {
    const psbt = new Psbt({ network: testnet });
    owners.forEach((owner, at) => {
      const script = bitcoinAddress.toOutputScript(owner, testnet);
      const previous = new Transaction();
      previous.addInput(new Uint8Array(32).fill(at + 1), at);
      previous.addOutput(script, 100_000n);
      psbt.addInput({ hash: previous.getId(), index: 0, nonWitnessUtxo: previous.toBuffer() });
      if (script[0] === 0x51) psbt.updateInput(at, { witnessUtxo: { script, value: 100_000n } });
    });
    psbt.addOutput({ address: owners[0]!, value: 5_000n });
    return psbt.toHex();
  }

  describe('Bitcoin', () => {
    const segwit = () => addresses.ADDRESS_FORMAT_BITCOIN_TESTNET_P2WPKH;
    const taproot = () => addresses.ADDRESS_FORMAT_BITCOIN_TESTNET_P2TR;

    it.each<[string, () => string]>([
      ['segwit', segwit],
      ['taproot', taproot],
    ])('%s: every input of the address', async (_name, owner) => {
      const result = await signed(request('BITCOIN', owner(), psbtOf(owner(), owner())));
      const psbt = Psbt.fromHex(result, { network: testnet });
      expect(psbt.validateSignaturesOfAllInputs(isValid)).toBe(true);
      expect(psbt.finalizeAllInputs().extractTransaction(true).ins).toHaveLength(2);
    });

    it('an address signs its own inputs only, the other address the rest', async () => {
      const half = await signed(request('BITCOIN', segwit(), psbtOf(taproot(), segwit())));
      const [first, second] = Psbt.fromHex(half, { network: testnet }).data.inputs;
      expect([first!.tapKeySig, second!.partialSig?.length]).toEqual([undefined, 1]);
      const whole = Psbt.fromHex(await signed(request('BITCOIN', taproot(), half)), { network: testnet });
      expect(whole.validateSignaturesOfAllInputs(isValid)).toBe(true);
    });

    it.each<[string, () => Promise<string>]>([
      ['a public key', () => Promise.resolve(addresses.ADDRESS_FORMAT_COMPRESSED)],
      ['the id of a private key', async () => (await signers.addPrivateKey(12, 'CURVE_SECP256K1', seed)).privateKeyId],
    ])('%s signs all inputs, each in its own way and place', async (name, signWith) => {
      const key = name === 'a public key' ? [taproot(), segwit(), taproot()] : await otherAddresses();
      const psbt = Psbt.fromHex(await signed(request('BITCOIN', await signWith(), psbtOf(...key))), {
        network: testnet,
      });
      expect(psbt.validateSignaturesOfAllInputs(isValid)).toBe(true);
      expect(psbt.finalizeAllInputs().extractTransaction(true).ins).toHaveLength(3);
    });

    const seed = new Uint8Array(32).fill(3);
    async function otherAddresses(): Promise<readonly string[]> {
      const both = ['ADDRESS_FORMAT_BITCOIN_TESTNET_P2WPKH', 'ADDRESS_FORMAT_BITCOIN_TESTNET_P2TR'] as const;
      const [one, two] = (await signers.addPrivateKey(13, 'CURVE_SECP256K1', seed, both)).addresses;
      return [one!, two!, one!];
    }

    it.each<[string, () => Promise<string>, string]>([
      ['those of the address', () => Promise.resolve(segwit()), 'tb1q'],
      ['those of the private key', async () => withAddresses(14, ['TESTNET_P2WPKH', 'TESTNET_P2PKH']), 'tb1q'],
      ['of a key without any, mainnet', async () => withAddresses(15, []), 'bc1q'],
      ['of a key on two networks, mainnet', async () => withAddresses(16, ['TESTNET_P2WPKH', 'REGTEST_P2PKH']), 'bc1q'],
    ])('shows policies outputs by addresses of a network: %s', async (_name, signWith, prefix) => {
      const key = await signWith();
      const owner = key === segwit() ? segwit() : (await otherAddresses())[0]!;
      const { bitcoin } = signers.resources(signTransaction, request('BITCOIN', key, psbtOf(owner))) as {
        bitcoin: { tx: never };
      };
      expect(bitcoin.tx).toMatchObject({ fee: 95_000n, outputs: [{ value: 5_000n, address_type: 'P2WPKH' }] });
      const { outputs } = bitcoin.tx as { outputs: { address: string }[] };
      expect(outputs[0]!.address.slice(0, 4)).toBe(prefix);
      expect(conforms(bitcoinTxType, bitcoin.tx)).toEqual([]);
    });

    async function withAddresses(
      number: number,
      names: readonly ('TESTNET_P2WPKH' | 'TESTNET_P2PKH' | 'REGTEST_P2PKH')[],
    ) {
      const all = names.map((name) => `ADDRESS_FORMAT_BITCOIN_${name}` as const);
      return (await signers.addPrivateKey(number, 'CURVE_SECP256K1', seed, all)).privateKeyId;
    }
  });

  describe('refuses', () => {
    const unsigned = serializeTransaction(call).slice(2);
    it.each<[string, () => object, RegExp]>([
      [
        'Tempo',
        () => request('TEMPO', addresses.ADDRESS_FORMAT_ETHEREUM, unsigned),
        /parameters\.type: `TRANSACTION_TYPE_TEMPO` is not supported here, only TRANSACTION_TYPE_ETHEREUM, TRANSACTION_TYPE_SOLANA, /,
      ],
      ['another world', () => request('CARDANO', addresses.SOLANA, unsigned), /parameters\.type: must be one of/],
      [
        'Ethereum with an Ed25519 key',
        () => request('ETHEREUM', addresses.SOLANA, unsigned),
        /parameters\.signWith: TRANSACTION_TYPE_ETHEREUM needs a key on CURVE_SECP256K1, `\w+` is on CURVE_ED25519/,
      ],
      [
        'Tron with a P-256 key',
        () => request('TRON', addresses.P256, '00'),
        /needs a key on CURVE_SECP256K1.*CURVE_P256/,
      ],
      [
        'Solana with a secp256k1 key',
        () => request('SOLANA', addresses.ADDRESS_FORMAT_ETHEREUM, solanaTransaction(addresses.SOLANA)),
        /TRANSACTION_TYPE_SOLANA needs a key on CURVE_ED25519/,
      ],
      [
        'Ethereum by a taproot address',
        () => request('ETHEREUM', addresses.ADDRESS_FORMAT_BITCOIN_TESTNET_P2TR, unsigned),
        /parameters\.signWith: `tb1p\w+` is an ADDRESS_FORMAT_BITCOIN_TESTNET_P2TR, which TRANSACTION_TYPE_ETHEREUM does not have/,
      ],
      [
        'Tron by a Cosmos address',
        () => request('TRON', addresses.ADDRESS_FORMAT_COSMOS, '00'),
        /is an ADDRESS_FORMAT_COSMOS, which TRANSACTION_TYPE_TRON does not have/,
      ],
      [
        'what is no transaction',
        () => request('ETHEREUM', addresses.ADDRESS_FORMAT_ETHEREUM, 'abcd'),
        /unsignedTransaction: /,
      ],
      [
        'what is signed already',
        () =>
          request(
            'ETHEREUM',
            addresses.ADDRESS_FORMAT_ETHEREUM,
            serializeTransaction(call, { r: `0x${'11'.repeat(32)}`, s: `0x${'11'.repeat(32)}`, yParity: 0 }),
          ),
        /unsignedTransaction: is already signed/,
      ],
      [
        'a Solana transaction of others',
        () => request('SOLANA', addresses.SOLANA, solanaTransaction(receiver)),
        /unsignedTransaction: `\w+` is not a signer of the transaction/,
      ],
      [
        'a PSBT of others',
        () =>
          request(
            'BITCOIN',
            addresses.ADDRESS_FORMAT_BITCOIN_TESTNET_P2TR,
            psbtOf(addresses.ADDRESS_FORMAT_BITCOIN_TESTNET_P2WPKH),
          ),
        /unsignedTransaction: none of the inputs spends an output of the P2TR address/,
      ],
      [
        'nothing',
        () => request('ETHEREUM', addresses.ADDRESS_FORMAT_ETHEREUM, ''),
        /unsignedTransaction: must have 1 to/,
      ],
    ])('%s', (_name, intent, message) => {
      signers.when(signTransaction, intent()).thenRefused('INVALID_ARGUMENT', message);
    });

    it('a key that is not there', () =>
      signers
        .when(signTransaction, request('ETHEREUM', id(999), unsigned))
        .thenRefused('NOT_FOUND', /^Could not find any resource to sign with/));

    it('a key that went while it signed', async () => {
      const { privateKeyId } = await signers.addPrivateKey(17, 'CURVE_SECP256K1', new Uint8Array(32).fill(4));
      const intent = request('ETHEREUM', privateKeyId, unsigned);
      const prepared = await signers.prepare(signTransaction, intent);
      const deleted = { type: 'PrivateKeyDeleted', data: { privateKeyId, vaultId: id(1_017) } } as const;
      signers
        .when(signTransaction, intent, { prepared, after: [deleted] })
        .thenRefused('NOT_FOUND', /^Could not find any resource to sign with/);
    });
  });

  it('a key whose name another one has taken while it signed', async () => {
    const secret = new Uint8Array(32).fill(6);
    const { privateKeyId, publicKey } = await signers.addPrivateKey(18, 'CURVE_SECP256K1', secret);
    const intent = request('ETHEREUM', privateKeyId, serializeTransaction(call));
    const prepared = await signers.prepare(signTransaction, intent);
    const facts = { privateKeyId, privateKeyName: 'again', curve: 'CURVE_SECP256K1', addresses: [] } as const;
    signers
      .when(signTransaction, intent, {
        prepared,
        after: [
          { type: 'PrivateKeyDeleted', data: { privateKeyId, vaultId: id(1_018) } },
          {
            type: 'PrivateKeyCreated',
            data: {
              ...facts,
              publicKey: publicKey.toString('hex'),
              vaultId: id(99),
              imported: true,
              privateKeyTags: [],
            },
          },
        ],
      })
      .thenRefused('ABORTED', /now refers to a different key/);
  });

  it('a request that was understood for one key is understood anew for another', async () => {
    const other = await Signers.open();
    const formats = ['ADDRESS_FORMAT_ETHEREUM'] as const;
    await other.addPrivateKey(19, 'CURVE_SECP256K1', new Uint8Array(32).fill(7), formats);
    const { privateKeyId } = await signers.addPrivateKey(19, 'CURVE_SECP256K1', new Uint8Array(32).fill(8), formats);
    const intent = validate(
      signTransaction.intent,
      request('ETHEREUM', privateKeyId, serializeTransaction(call)),
      'parameters',
    );
    const senders = [signers, other, signers].map((world) => {
      const { eth } = signTransaction.resources!(intent, world.organization()) as { eth: { tx: { from: string } } };
      return eth.tx.from;
    });
    expect(senders[1]).not.toBe(senders[0]);
    expect(senders[2]).toBe(senders[0]);
  });

  it('the older version names a private key by its id', () =>
    expect(
      lifted('ACTIVITY_TYPE_SIGN_TRANSACTION', {
        privateKeyId: id(10),
        unsignedTransaction: '00',
        type: 'TRANSACTION_TYPE_TRON',
      }),
    ).toEqual(request('TRON', id(10), '00')));
});
