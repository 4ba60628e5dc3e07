import { AmbiguousText, Doubt, type PolicyValue } from 'countersign/internal';
import {
  bytesIn,
  checkMade,
  NotExecuted,
  recordIn,
  refuseOthers,
  textIn,
  unsignedIn,
  type Facts,
} from './trial-facts.js';

/** What describes itself, as it is sent, and as policies see it. */
export interface MadePayload {
  readonly encoding: 'PAYLOAD_ENCODING_EIP712' | 'PAYLOAD_ENCODING_EIP7702_AUTHORIZATION';
  /** JSON. */
  readonly payload: string;
  readonly eth: Facts;
}

type Structs = Record<string, readonly { readonly name: string; readonly type: string }[]>;
type Written = string | boolean | readonly Written[] | { readonly [name: string]: Written };

const somebody = '0x1111111111111111111111111111111111111111';
const isAddress = (text: string): boolean => /^0x[0-9a-f]{40}$/.test(text);

/** Typed data with these facts of `eth.eip_712`, and types that fit its values (EIP-712). @throws {NotExecuted} */
export function typedDataWith(facts: Facts): MadePayload {
  const path = 'eth.eip_712';
  const primaryType = textIn(facts['primary_type'], `${path}.primary_type`) ?? 'Message';
  const structs: Structs = {};
  const { domain, shown, fields } = domainOf(recordIn(facts['domain'], `${path}.domain`), `${path}.domain`);
  structs['EIP712Domain'] = fields;
  const message = recordIn(facts['message'], `${path}.message`);
  structs[primaryType] = fieldsOf(message, structs, `${path}.message`);
  const value = { primary_type: primaryType, domain: shown, message };
  checkMade(facts, value, path);
  return {
    encoding: 'PAYLOAD_ENCODING_EIP712',
    payload: JSON.stringify({ types: structs, domain, primaryType, message: written(message, `${path}.message`) }),
    eth: { eip_712: value },
  };
}

/** An authorization with these facts of `eth.eip_7702_authorization`. @throws {NotExecuted} */
export function authorizationWith(facts: Facts): MadePayload {
  const path = 'eth.eip_7702_authorization';
  const address = bytesIn(facts['address'], `${path}.address`, '0x', 20) ?? somebody;
  // Only 0, which is every chain, cannot be read.
  const { chain_id: requested } = facts;
  const unread = requested instanceof Doubt && requested.kind === 'unreadable' ? requested : undefined;
  const chainId = unread ? 0n : (unsignedIn(requested, `${path}.chain_id`, 256) ?? 1n);
  const nonce = unsignedIn(facts['nonce'], `${path}.nonce`, 64) ?? 0n;
  const value = { address, chain_id: unread ?? chainId, nonce };
  checkMade(facts, value, path);
  return {
    encoding: 'PAYLOAD_ENCODING_EIP7702_AUTHORIZATION',
    payload: JSON.stringify({ address, chainId: String(chainId), nonce: String(nonce) }),
    eth: { eip_7702_authorization: value },
  };
}

/** Members that cannot be read in the example are left out. */
function domainOf(facts: Readonly<Record<string, PolicyValue>>, path: string) {
  refuseOthers(Object.fromEntries(Object.entries(facts).filter(([, value]) => !(value instanceof Doubt))), path, [
    'name',
    'version',
    'chain_id',
    'verifying_contract',
  ]);
  const said = (name: string): PolicyValue | undefined => (facts[name] instanceof Doubt ? undefined : facts[name]);
  const isMissing = (name: string): boolean => facts[name] instanceof Doubt;
  const name = isMissing('name') ? undefined : (textIn(said('name'), `${path}.name`) ?? 'Example');
  const version = isMissing('version') ? undefined : (textIn(said('version'), `${path}.version`) ?? '1');
  const chainId = isMissing('chain_id') ? undefined : (unsignedIn(said('chain_id'), `${path}.chain_id`, 256) ?? 1n);
  const contract = bytesIn(said('verifying_contract'), `${path}.verifying_contract`, '0x', 20);
  const domain = {
    ...(name === undefined ? {} : { name }),
    ...(version === undefined ? {} : { version }),
    ...(chainId === undefined ? {} : { chainId: String(chainId) }),
    ...(contract === undefined ? {} : { verifyingContract: contract }),
  };
  // With other types, policies could not read them.
  const types = { name: 'string', version: 'string', chainId: 'uint256', verifyingContract: 'address' };
  const fields = Object.keys(domain).map((member) => ({ name: member, type: types[member as keyof typeof types] }));
  return { domain, fields, shown: { name, version, chain_id: chainId, verifying_contract: contract } };
}

/** The fields of a struct with these values; the structs in it are added. */
function fieldsOf(values: Readonly<Record<string, PolicyValue>>, structs: Structs, path: string) {
  return Object.entries(values).map(([name, value]) => ({ name, type: typeOf(value, structs, `${path}['${name}']`) }));
}

function typeOf(value: PolicyValue, structs: Structs, path: string): string {
  if (value instanceof Doubt) throw new NotExecuted(`nothing here makes typed data whose ${path} cannot be read`);
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return value < 0n ? 'int256' : 'uint256';
  if (typeof value === 'string') return isAddress(value) ? 'address' : 'string';
  if (value instanceof AmbiguousText) throw new NotExecuted(`nothing here makes typed data with ${path}`);
  if (Array.isArray(value)) {
    const [type = 'string', ...others] = new Set(
      (value as readonly PolicyValue[]).map((one, index) => typeOf(one, structs, `${path}[${index}]`)),
    );
    if (others.length > 0) throw new NotExecuted(`no type of EIP-712 has elements as different as those of ${path}`);
    return `${type}[]`;
  }
  const name = `Part${Object.keys(structs).length}`;
  structs[name] = [];
  structs[name] = fieldsOf(value as Readonly<Record<string, PolicyValue>>, structs, path);
  return name;
}

function written(value: PolicyValue, path: string): Written {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (Array.isArray(value)) return (value as readonly PolicyValue[]).map((one) => written(one, path));
  return Object.fromEntries(Object.entries(value as Facts).map(([name, one]) => [name, written(one!, path)]));
}
