import { policyEnvironment, type Namespace } from '../../../src/domain/policy/namespaces.js';
import { Unreadable, type PolicyType } from '../../../src/domain/policy/types.js';

const string: PolicyType = { kind: 'string' };
const int: PolicyType = { kind: 'int' };

/** A resource namespace as later ones are declared: its value comes from the request's resources. */
function resource(name: string, type: PolicyType): Namespace {
  return {
    name,
    clauses: ['condition'],
    type,
    value: ({ resources }) => (resources instanceof Unreadable ? resources : resources?.[name]),
  };
}

const wallet: PolicyType = {
  kind: 'record',
  name: 'Wallet',
  fields: { id: string, imported: { kind: 'bool' }, label: string },
};

/** What the policies of these tests may speak of. */
export const environment = policyEnvironment(
  { hash_function: string, user_ids: { kind: 'list', of: string }, otp_length: int },
  [
    resource('wallet', wallet),
    resource('wallets', { kind: 'list', of: wallet }),
    resource('private_key', { kind: 'record', name: 'PrivateKey', fields: { id: string } }),
    resource('eth', {
      kind: 'record',
      name: 'Ethereum',
      fields: {
        tx: {
          kind: 'record',
          name: 'EthereumTransaction',
          fields: {
            to: string,
            data: string,
            value: int,
            args: { kind: 'map', of: int },
            nested: { kind: 'map', of: { kind: 'map', of: string } },
            anything: { kind: 'map', of: { kind: 'dynamic' } },
            amounts: { kind: 'list', of: int },
          },
        },
        eip_712: { kind: 'record', name: 'TypedData', fields: { chain_id: { kind: 'uint' } } },
      },
    }),
  ],
);
