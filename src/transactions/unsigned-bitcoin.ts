import { hex } from '@scure/base';
import { Transaction } from '@scure/btc-signer';

/** What a PSBT says. Amounts are satoshis, `txId` is in the order explorers show, scripts are hexadecimal without 0x. */
export interface UnsignedBitcoin {
  readonly version: number;
  readonly lockTime: number;
  readonly inputs: readonly {
    readonly txId: string;
    readonly vout: number;
    readonly sequence: number;
    /** What it spends: a taproot output, whose amount the signature proves. */
    readonly spent: { readonly amount: bigint; readonly script: string };
  }[];
  readonly outputs: readonly { readonly amount: bigint; readonly script: string }[];
}

/** A PSBT of version 0 in hexadecimal. @throws {Error} for what the library cannot write */
export function unsignedBitcoin({ version, lockTime, inputs, outputs }: UnsignedBitcoin): string {
  const anything = { allowUnknownOutputs: true, allowUnknownInputs: true, disableScriptCheck: true } as const;
  const transaction = new Transaction({ ...anything, version, lockTime });
  for (const { txId, vout, sequence, spent } of inputs) {
    const witnessUtxo = { amount: spent.amount, script: hex.decode(spent.script) };
    transaction.addInput({ txid: txId, index: vout, sequence, witnessUtxo });
  }
  for (const { amount, script } of outputs) transaction.addOutput({ amount, script: hex.decode(script) });
  return hex.encode(transaction.toPSBT(0));
}
