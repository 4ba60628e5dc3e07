import { coins, limited, recordsOf, shown, units, type Account, type Fact, type Values } from './account.js';

export function bitcoinAccount({ outputs, inputs, fee }: Values): Account {
  const to = recordsOf(outputs);
  const total = to.reduce((sum, { value }) => sum + (typeof value === 'bigint' ? value : 0n), 0n);
  const facts: Fact[] = [
    ...to.map(({ value, address, address_type }, index) => ({
      name: `Output ${index + 1}`,
      value: `${coins(value, 8)} BTC to ${address === '' ? `no address (${shown(address_type)})` : shown(address)}`,
    })),
    { name: 'Fee', value: `${coins(fee, 8)} BTC` },
    { name: 'Inputs', value: String(recordsOf(inputs).length) },
  ];
  const first = to.length === 1 ? facts[0]!.value : `${units(total, 8)} BTC to ${to.length} outputs`;
  return limited({
    text: `${first}, with a fee of ${coins(fee, 8)} BTC.`,
    facts,
    ...(to.length > 1 ? { notDecoded: 'which of the outputs is change is not known' } : {}),
  });
}
