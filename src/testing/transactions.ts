import { unsignedEthereum } from '../transactions/unsigned-ethereum.js';
import { unsignedSolana } from '../transactions/unsigned-solana.js';

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

const systemProgram = '1'.repeat(32);
const transferInstruction = 2;
const zeros = systemProgram;

/** An unsigned legacy transaction for `sign_transaction` with TRANSACTION_TYPE_SOLANA, in hexadecimal. */
export function solanaTransfer({ from, to, lamports, recentBlockhash = zeros }: SolanaTransfer): string {
  const data = Buffer.alloc(12);
  data.writeUInt32LE(transferInstruction, 0);
  data.writeBigUInt64LE(lamports, 4);
  const accounts = [
    { key: from, signer: true, writable: true },
    { key: to, signer: false, writable: true },
  ];
  const instructions = [{ programKey: systemProgram, accounts, data }];
  return unsignedSolana({ feePayer: from, instructions, recentBlockhash });
}
