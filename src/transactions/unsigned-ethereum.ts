import { RLP } from 'micro-eth-signer/core/rlp.js';

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
  | { readonly type: 'TYPE_2'; readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint }
);

/** In hexadecimal, to be signed: of the kinds EIP-155, EIP-2930 and EIP-1559, without an access list. */
export function unsignedEthereum(transaction: UnsignedEthereum): string {
  const { chainId, nonce, gas, to, value, data } = transaction;
  const call = [quantity(gas), to === '' ? new Uint8Array() : fromHex(to), quantity(value), fromHex(data)];
  switch (transaction.type) {
    case 'LEGACY':
      return encoded('', [...[nonce, transaction.gasPrice].map(quantity), ...call, ...[chainId, 0n, 0n].map(quantity)]);
    case 'TYPE_1':
      return encoded('01', [...[chainId, nonce, transaction.gasPrice].map(quantity), ...call, []]);
    case 'TYPE_2': {
      const { maxFeePerGas, maxPriorityFeePerGas } = transaction;
      const fees = [chainId, nonce, maxPriorityFeePerGas, maxFeePerGas].map(quantity);
      return encoded('02', [...fees, ...call, []]);
    }
  }
}

function encoded(prefix: string, fields: Parameters<typeof RLP.encode>[0]): string {
  return `0x${prefix}${Buffer.from(RLP.encode(fields)).toString('hex')}`;
}

/** An RLP integer: big-endian, without leading zeros. */
function quantity(value: bigint): Uint8Array {
  if (value === 0n) return new Uint8Array();
  const digits = value.toString(16);
  return Buffer.from(digits.length % 2 ? `0${digits}` : digits, 'hex');
}

function fromHex(text: string): Uint8Array {
  if (!/^0x(?:[0-9a-f]{2})*$/i.test(text)) throw new TypeError(`must be 0x and pairs of hex digits, got \`${text}\``);
  return Buffer.from(text.slice(2), 'hex');
}
