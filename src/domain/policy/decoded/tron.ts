import { type PolicyValue } from '../types.js';
import {
  limited,
  maxValue,
  oneLine,
  recordsOf,
  shown,
  units,
  type Account,
  type Fact,
  type Values,
} from './account.js';

/** Contracts whose amount is in TRX, by the field that holds it. */
const tronAmounts = ['amount', 'call_value', 'frozen_balance', 'unfreeze_balance', 'balance'] as const;

export function tronAccount({ contract, data, fee_limit }: Values): Account {
  const contracts = recordsOf(contract);
  const facts = contracts.flatMap((one): Fact[] => {
    const { type, to_address, receiver_address, contract_address, data: call, call_token_value, token_id } = one;
    const amounts = tronAmounts.flatMap((field) => (typeof one[field] === 'bigint' ? [one[field]] : []));
    const to = [to_address, receiver_address, contract_address].find(
      (address) => typeof address === 'string' && address,
    );
    return [
      { name: 'Contract type', value: shown(type) },
      ...(to === undefined ? [] : [{ name: 'To', value: shown(to) }]),
      ...amounts.map((amount) => ({ name: 'Value', value: tronAmount(type, amount) })),
      ...(typeof call_token_value === 'bigint' && call_token_value > 0n
        ? [{ name: 'Token', value: `${call_token_value} smallest units of token ${shown(token_id)}` }]
        : []),
      ...(typeof call === 'string' && call !== ''
        ? [{ name: 'Function', value: `0x${call.slice(0, 8)}, not decoded` }]
        : []),
    ];
  });
  const memo =
    typeof data === 'string' && data !== '' ? [{ name: 'Memo', value: memoOf(data), words: true } as const] : [];
  const fee =
    typeof fee_limit === 'bigint' && fee_limit > 0n
      ? [{ name: 'Highest fee', value: `${units(fee_limit, 6)} TRX` }]
      : [];
  const [value, to] = ['Value', 'To'].map((name) => facts.find((fact) => fact.name === name)?.value);
  const what = contracts.length === 1 ? `${shown(contracts[0]!['type'])}` : `${contracts.length} contracts`;
  const isCall = facts.some(({ name }) => name === 'Function');
  return limited({
    text: `${value === undefined ? what : `${value} by ${what}`}${to === undefined ? '' : ` to ${to}`}.`,
    facts: [...facts, ...memo, ...fee],
    ...(isCall ? { notDecoded: 'call data of Tron contracts is not decoded' } : {}),
  });
}

function tronAmount(type: PolicyValue | undefined, amount: bigint): string {
  // Tokens other than TRX have their own decimals.
  return type === 'TransferAssetContract' ? `${amount} smallest units of a TRC-10 token` : `${units(amount, 6)} TRX`;
}

function memoOf(hex: string): string {
  return `"${oneLine(Buffer.from(hex.slice(0, 2 * maxValue), 'hex').toString('utf8'))}"`;
}
