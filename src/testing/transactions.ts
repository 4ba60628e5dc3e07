import { base58 } from '@scure/base';
import { unsignedEthereum } from '../transactions/unsigned-ethereum.js';

/** An unsigned EIP-1559 transaction. Amounts are in wei. */
interface EthTransaction {
  /** Address of the receiver, `0x…`. */
  readonly to: string;
  readonly value?: bigint;
  /** Call data, `0x…`. */
  readonly data?: string;
  /** Default 1, Ethereum's main network. */
  readonly chainId?: bigint;
  readonly nonce?: bigint;
  readonly gas?: bigint;
  readonly maxFeePerGas?: bigint;
  readonly maxPriorityFeePerGas?: bigint;
}

/** An unsigned transaction for `sign_transaction` with TRANSACTION_TYPE_ETHEREUM: EIP-1559, in hexadecimal. */
export function ethTransaction({
  to,
  value = 0n,
  data = '0x',
  chainId = 1n,
  nonce = 0n,
  gas = 21_000n,
  maxFeePerGas = 20_000_000_000n,
  maxPriorityFeePerGas = 1_000_000_000n,
}: EthTransaction): string {
  const fees = { type: 'TYPE_2', maxFeePerGas, maxPriorityFeePerGas } as const;
  return unsignedEthereum({ ...fees, to, value, data, chainId, nonce, gas });
}

/** A System Program transfer. */
interface SolanaTransfer {
  /** Address that pays and signs. */
  readonly from: string;
  readonly to: string;
  readonly lamports: bigint;
  /** Base58 of 32 bytes; zeros by default. */
  readonly recentBlockhash?: string;
}

const systemProgram = new Uint8Array(32);
const transferInstruction = 2;

/** An unsigned legacy transaction for `sign_transaction` with TRANSACTION_TYPE_SOLANA, in hexadecimal. */
export function solanaTransfer({ from, to, lamports, recentBlockhash }: SolanaTransfer): string {
  const data = Buffer.alloc(12);
  data.writeUInt32LE(transferInstruction, 0);
  data.writeBigUInt64LE(lamports, 4);
  const isToSelf = from === to;
  const keys = [address(from), ...(isToSelf ? [] : [address(to)]), systemProgram];
  const program = keys.length - 1;
  const message = Buffer.concat([
    // One signature is required, by a writable account; the program is read-only.
    Uint8Array.of(1, 0, 1, keys.length),
    ...keys,
    recentBlockhash === undefined ? new Uint8Array(32) : address(recentBlockhash),
    Uint8Array.of(1, program, 2, 0, isToSelf ? 0 : 1, data.length),
    data,
  ]);
  return Buffer.concat([Uint8Array.of(1), new Uint8Array(64), message]).toString('hex');
}

function address(text: string): Uint8Array {
  const bytes = base58.decode(text);
  if (bytes.length !== 32) throw new TypeError(`must be base58 of 32 bytes, got \`${text}\``);
  return bytes;
}
