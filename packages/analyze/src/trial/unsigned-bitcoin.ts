import { hex } from '@scure/base';
import { Transaction } from '@scure/btc-signer';
import { byLibrary, hexBytes } from 'countersign/internal';

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

/** A PSBT of version 0 in hexadecimal. @throws {CannotBeWritten} */
export function unsignedBitcoin({ version, lockTime, inputs, outputs }: UnsignedBitcoin): string {
  const anything = { allowUnknownOutputs: true, allowUnknownInputs: true, disableScriptCheck: true } as const;
  const transaction = byLibrary('version, lockTime', { version, lockTime }, () => {
    return new Transaction({ ...anything, version, lockTime });
  });
  for (const [at, input] of inputs.entries()) {
    const { txId: txid, vout: index, sequence, spent } = input;
    const witnessUtxo = { amount: spent.amount, script: hexBytes(`inputs[${at}].spent.script`, spent.script) };
    byLibrary(`inputs[${at}]`, input, () => transaction.addInput({ txid, index, sequence, witnessUtxo }));
  }
  for (const [at, output] of outputs.entries()) {
    const script = hexBytes(`outputs[${at}].script`, output.script);
    byLibrary(`outputs[${at}]`, output, () => transaction.addOutput({ amount: output.amount, script }));
  }
  return hex.encode(byLibrary('outputs', outputs, () => transaction.toPSBT(0)));
}
