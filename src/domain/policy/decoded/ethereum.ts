import { Doubt, type PolicyValue } from '../types.js';
import {
  argumentFacts,
  identifier,
  limited,
  oneLine,
  recordOf,
  shown,
  units,
  type Account,
  type Fact,
  type Values,
} from './account.js';

/** Chains whose currency is ether; for others, only the number is known here. */
const etherChains: ReadonlySet<bigint> = new Set([
  1n,
  10n,
  8453n,
  42161n,
  59144n,
  11155111n,
  17000n,
  84532n,
  11155420n,
]);

export function ethereum(tx: Values): Account {
  const { to, value, chain_id, function_name, function_signature, contract_call_args, data, type, nonce } = tx;
  const chain = typeof chain_id === 'bigint' ? chain_id : undefined;
  const unit = chain === undefined || etherChains.has(chain) ? 'ETH' : `coins of chain ${chain}`;
  const amount = typeof value === 'bigint' ? `${units(value, 18)} ${unit}` : shown(value);
  const target = to === '' ? undefined : shown(to);
  const where = chain === undefined ? 'on every chain that takes it (it names none)' : `on chain ${chain}`;
  const isCall = typeof data === 'string' && data !== '0x';
  const name = typeof function_name === 'string' ? identifier(function_name) : undefined;
  const fee = feeOf(tx, unit);
  const facts: Fact[] = [
    { name: 'To', value: target ?? 'a new contract' },
    { name: 'Value', value: amount },
    { name: 'Chain', value: chain === undefined ? 'any' : String(chain) },
    ...(isCall && name === undefined ? [{ name: 'Function', value: `${shown(function_signature)}, not decoded` }] : []),
    ...(name === undefined ? [] : [{ name: 'Function', value: name, words: true } as const]),
    ...(fee === undefined ? [] : [{ name: 'Highest fee', value: fee }]),
    { name: 'Nonce', value: shown(nonce) },
    { name: 'Type', value: shown(type) },
    // Last, so that no number of them leaves out one of the others.
    ...(name === undefined ? [] : argumentFacts(contract_call_args, 'argument')),
  ];
  const sends = value === 0n && isCall ? 'A call' : `${amount}`;
  const text =
    target === undefined
      ? `A new contract with ${amount}, ${where}.`
      : `${sends} to ${target}${isCall && value !== 0n ? ' with a call' : ''}, ${where}.`;
  const why =
    isCall && name === undefined ? `${(data.length - 2) / 2} bytes of call data: ${whyNot(function_name)}` : undefined;
  return limited({ text, facts, ...(why === undefined ? {} : { notDecoded: oneLine(why) }) });
}

function feeOf({ gas, max_fee_per_gas }: Values, unit: string): string | undefined {
  if (typeof gas !== 'bigint' || typeof max_fee_per_gas !== 'bigint') return undefined;
  return `${units(gas * max_fee_per_gas, 18)} ${unit}`;
}

function whyNot(value: PolicyValue | undefined): string {
  return value instanceof Doubt && value.kind === 'unreadable'
    ? value.reason
    : 'decoded only where an interface of the contract is uploaded';
}

export function typedData({ primary_type, domain, message }: Values): Account {
  const { name, version, chain_id, verifying_contract } = recordOf(domain) ?? {};
  const isAddress = typeof verifying_contract === 'string' && /^0x[0-9a-f]{40}$/i.test(verifying_contract);
  const contract = isAddress ? verifying_contract : undefined;
  const where = typeof chain_id === 'bigint' ? ` on chain ${chain_id}` : '';
  const facts: Fact[] = [
    { name: 'Type', value: shown(primary_type), words: true },
    ...(contract === undefined ? [] : [{ name: 'Contract', value: contract }]),
    ...(typeof chain_id === 'bigint' ? [{ name: 'Chain', value: String(chain_id) }] : []),
    ...(name === undefined ? [] : [{ name: 'Domain', value: shown(name), words: true } as const]),
    ...(version === undefined ? [] : [{ name: 'Version', value: shown(version), words: true } as const]),
    ...argumentFacts(message, 'message'),
  ];
  return limited({ text: `Typed data (EIP-712) for ${contract ?? 'no named contract'}${where}.`, facts });
}

export function authorization({ address, chain_id, nonce }: Values): Account {
  // For chain 0 it is unreadable.
  const isForOne = typeof chain_id === 'bigint';
  const where = isForOne ? `on chain ${shown(chain_id)}` : 'on every chain';
  return {
    text: `An authorization (EIP-7702) that lets the contract ${shown(address)} act as this account ${where}.`,
    facts: [
      { name: 'Contract', value: shown(address) },
      { name: 'Chain', value: isForOne ? shown(chain_id) : 'every' },
      { name: 'Nonce', value: shown(nonce) },
    ],
  };
}
