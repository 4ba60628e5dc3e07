import type { BitcoinNetwork } from '../../key-formats.js';
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

/** The test network whose address this is, by how it begins; signet has the addresses of testnet. */
export function testNetworkOf(address: string): BitcoinNetwork | undefined {
  if (address.startsWith('bcrt1')) return 'REGTEST';
  return /^(?:tb1|[mn2][1-9A-Za-z]{25})/.test(address) ? 'TESTNET' : undefined;
}

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
  const notDecoded = [
    ...(to.length > 1 ? ['which of the outputs is change is not known'] : []),
    ...(payments.some((payment) => testNetworkOf(payment.to))
      ? ['its addresses are those of a test network, and the signature is valid on every network']
      : []),
  ].join('; ');
  const paid = to.length > 0 ? paymentsText(payments, (amount) => `${units(amount, 8)} BTC`) : 'no outputs';
  return limited({
    text: `${paid}, with a fee of ${coins(fee, 8)} BTC.`,
    facts,
    ...(notDecoded === '' ? {} : { notDecoded }),
  });
}
