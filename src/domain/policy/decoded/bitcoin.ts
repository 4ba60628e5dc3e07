import {
  coins,
  limited,
  paymentsText,
  recordsOf,
  shown,
  units,
  type Account,
  type Fact,
  type Values,
} from './account.js';

export function bitcoinAccount({ outputs, inputs, fee }: Values): Account {
  const to = recordsOf(outputs);
  const receiver = ({ address, address_type }: Values): string =>
    address === '' ? `no address (${shown(address_type)})` : shown(address);
  const facts: Fact[] = [
    ...to.map((output, index) => ({
      name: `Output ${index + 1}`,
      value: `${coins(output['value'], 8)} BTC to ${receiver(output)}`,
    })),
    { name: 'Fee', value: `${coins(fee, 8)} BTC` },
    { name: 'Inputs', value: String(recordsOf(inputs).length) },
  ];
  const payments = to.map((output) => ({ amount: output['value'], to: receiver(output) }));
  const paid = to.length > 0 ? paymentsText(payments, (amount) => `${units(amount, 8)} BTC`) : 'no outputs';
  return limited({
    text: `${paid}, with a fee of ${coins(fee, 8)} BTC.`,
    facts,
    ...(to.length > 1 ? { notDecoded: 'which of the outputs is change is not known' } : {}),
  });
}
