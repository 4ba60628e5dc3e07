import { RLP } from 'micro-eth-signer/core/rlp.js';
import { CannotBeWritten, hexBytes, unsigned } from './unsigned-refusals.js';

/** The fields of an unsigned transaction; amounts are in wei. `to` and `data` are `0x…`; `to` is empty to create a contract. */
export type UnsignedEthereum = {
  readonly to: string;
  readonly value: bigint;
  readonly data: string;
  readonly chainId: bigint;
  readonly nonce: bigint;
  readonly gas: bigint;
} & (
  | { readonly type: 'LEGACY' | 'TYPE_1'; readonly gasPrice: bigint }
  | {
      readonly type: 'TYPE_2' | 'TYPE_3' | 'TYPE_4';
      readonly maxFeePerGas: bigint;
      readonly maxPriorityFeePerGas: bigint;
    }
);

/**
 * In hexadecimal, to be signed: of the kinds EIP-155, EIP-2930, EIP-1559, EIP-4844 and EIP-7702, without an access list. The
 * fourth has the hash of one blob, and the fifth one authorization, which nobody has signed.
 * @throws {CannotBeWritten}
 */
export function unsignedEthereum(transaction: UnsignedEthereum): string {
  const { to, data, ...numbers } = transaction;
  const [chainId, nonce] = [quantity('chainId', numbers.chainId), quantity('nonce', numbers.nonce)];
  const [gas, value] = [quantity('gas', numbers.gas), quantity('value', numbers.value)];
  const call = [gas, to === '' ? empty : hexBytes('to', to, '0x'), value, hexBytes('data', data, '0x')];
  switch (transaction.type) {
    case 'LEGACY':
      return encoded('', [nonce, quantity('gasPrice', transaction.gasPrice), ...call, chainId, empty, empty]);
    case 'TYPE_1':
      return encoded('01', [chainId, nonce, quantity('gasPrice', transaction.gasPrice), ...call, []]);
    case 'TYPE_2':
      return encoded('02', [chainId, nonce, ...feesOf(transaction), ...call, []]);
    case 'TYPE_3':
    case 'TYPE_4': {
      if (to === '') throw new CannotBeWritten('to', to, 'a transaction of its type goes to an address');
      const common = [chainId, nonce, ...feesOf(transaction), ...call, []];
      if (transaction.type === 'TYPE_3') return encoded('03', [...common, one, [blobHash]]);
      return encoded('04', [...common, [[chainId, hexBytes('to', to, '0x'), empty, empty, one, one]]]);
    }
  }
}

type Fees = Extract<UnsignedEthereum, { readonly maxFeePerGas: bigint }>;

function feesOf({ maxPriorityFeePerGas, maxFeePerGas }: Fees): readonly Uint8Array[] {
  return [quantity('maxPriorityFeePerGas', maxPriorityFeePerGas), quantity('maxFeePerGas', maxFeePerGas)];
}

const one = Uint8Array.of(1);
/** Of the first version (EIP-4844). */
const blobHash = Uint8Array.of(1, ...new Uint8Array(31));

const empty = new Uint8Array();

function encoded(prefix: string, fields: Parameters<typeof RLP.encode>[0]): string {
  return `0x${prefix}${Buffer.from(RLP.encode(fields)).toString('hex')}`;
}

/** An RLP integer: big-endian, without leading zeros. */
function quantity(field: string, value: bigint): Uint8Array {
  if (value === 0n) return empty;
  const digits = unsigned(field, value, 256).toString(16);
  return Buffer.from(digits.length % 2 ? `0${digits}` : digits, 'hex');
}
