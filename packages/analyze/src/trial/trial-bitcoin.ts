import { randomBytes } from 'node:crypto';
import { AmbiguousText, outputAddress, scriptOf } from 'countersign/internal';
import { unsignedBitcoin } from './unsigned-bitcoin.js';
import { bytesIn, NotExecuted, recordIn, recordsIn, saidIn, textIn, unsignedIn, type Facts } from './trial-facts.js';
import type { MadeTransaction } from './trial-chains.js';

const digits = (bytes: number): string => randomBytes(bytes).toString('hex');
/** The generator of the curve: a taproot output must be a point. */
const somePoint = '79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798';
/** A new script of each type that policies name. */
const scripts: Readonly<Record<string, (() => string) | undefined>> = {
  P2PKH: () => `76a914${digits(20)}88ac`,
  P2SH: () => `a914${digits(20)}87`,
  P2WPKH: () => `0014${digits(20)}`,
  P2WSH: () => `0020${digits(32)}`,
  P2TR: () => `5120${somePoint}`,
  P2A: () => '51024e73',
  OP_RETURN: () => `6a04${digits(4)}`,
  WITNESS_UNKNOWN: () => `5220${digits(32)}`,
  // Of whoever knows what has this hash.
  UNKNOWN: () => `a820${digits(32)}87`,
};
const firstTimeInSeconds = 500_000_000n;

/** A PSBT with these facts of `bitcoin.tx`, which spends outputs of one taproot address. @throws {NotExecuted} */
export function bitcoinTransactionWith(requested: Facts, own: string): MadeTransaction {
  const path = 'bitcoin.tx';
  const real = new Map<string, string>();
  const outputs = (recordsIn(requested['outputs'], `${path}.outputs`) ?? [{}]).map((input, index) => {
    const [output, at] = [saidIn(input), `${path}.outputs[${index}]`];
    return { amount: unsignedIn(output['value'], `${at}.value`, 62) ?? 1_000n, script: scriptFor(output, at, real) };
  });
  const fee = unsignedIn(requested['fee'], `${path}.fee`, 62) ?? 1_000n;
  const spent = fee + outputs.reduce((sum, { amount }) => sum + amount, 0n);
  const inputs = (recordsIn(requested['inputs'], `${path}.inputs`) ?? [{}]).map((input, index) => {
    const at = `${path}.inputs[${index}]`;
    return {
      txId: bytesIn(input['tx_id'], `${at}.tx_id`, '', 32) ?? digits(32),
      vout: unsignedIn(input['vout'], `${at}.vout`, 32) ?? 0n,
      sequence: unsignedIn(input['sequence'], `${at}.sequence`, 32) ?? 0xffff_fffdn,
      // The first pays for all.
      spent: { amount: index === 0 ? spent : 0n, script: scriptOf(own)! },
    };
  });
  if (inputs.length === 0 || outputs.length === 0)
    throw new NotExecuted('no Bitcoin transaction is without inputs or outputs');
  const version = textIn(requested['version'], `${path}.version`) ?? '2';
  if (!/^[1-3]$/.test(version)) throw new NotExecuted(`no Bitcoin transaction has the version \`${version}\``);
  const locktime = recordIn(requested['locktime'], `${path}.locktime`);
  const lockTime =
    unsignedIn(locktime['amount'], `${path}.locktime.amount`, 32) ??
    (locktime['type'] === 'Seconds' ? 1_767_614_400n : 0n);
  return {
    unsignedTransaction: unsignedBitcoin({
      version: Number(version),
      lockTime: Number(lockTime),
      inputs: inputs.map((input) => ({ ...input, vout: Number(input.vout), sequence: Number(input.sequence) })),
      outputs,
    }),
    tx: {
      version,
      inputs: inputs.map(({ txId, vout, sequence }) => ({ tx_id: txId, vout, sequence })),
      outputs: outputs.map(({ amount, script }) => ({
        value: amount,
        script_pubkey: script,
        ...outputAddress(Buffer.from(script, 'hex'), 'MAINNET'),
      })),
      locktime: { amount: lockTime, type: lockTime < firstTimeInSeconds ? 'Blocks' : 'Seconds' },
      fee,
    },
    real,
  };
}

/** A text that is no address stands for one. */
function scriptFor(output: Facts, at: string, real: Map<string, string>): string {
  const script = bytesIn(output['script_pubkey'], `${at}.script_pubkey`);
  if (script !== undefined) return script;
  const address = textIn(output['address'], `${at}.address`);
  const known = address === undefined ? undefined : scriptOf(real.get(address) ?? address);
  if (known !== undefined) return known;
  const type = textIn(output['address_type'], `${at}.address_type`) ?? 'P2WPKH';
  const make = Object.hasOwn(scripts, type) ? scripts[type] : undefined;
  if (!make) throw new NotExecuted(`nothing here makes an output of the type \`${type}\``);
  const made = make();
  const named = outputAddress(Buffer.from(made, 'hex'), 'MAINNET').address;
  if (address !== undefined) real.set(address, named instanceof AmbiguousText ? named.text : '');
  return made;
}
