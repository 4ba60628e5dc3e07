import { Doubt, type PolicyType, type PolicyValue } from '../../domain/policy/types.js';
import { isRecord } from '../../domain/policy/values.js';
import type { Traced } from './trace.js';

/** What a value was read from. Ids are those of the organization; a wallet account is known by its address. */
export type Source =
  | { readonly of: 'request' | 'time' | 'approvals' }
  | {
      readonly of: 'user' | 'credential' | 'wallet' | 'private-key' | 'wallet-account';
      readonly id: string;
      /** As the policy language names it; undefined for all of it. */
      readonly field?: string;
    };

/** Records of the policy language that stand for something in the organization, and the field that identifies it. */
const things: ReadonlyMap<
  string,
  { readonly of: Exclude<Source['of'], 'request' | 'time' | 'approvals'>; readonly by: string }
> = new Map([
  ['User', { of: 'user', by: 'id' }],
  ['Credential', { of: 'credential', by: 'id' }],
  ['Wallet', { of: 'wallet', by: 'id' }],
  ['PrivateKey', { of: 'private-key', by: 'id' }],
  ['WalletAccount', { of: 'wallet-account', by: 'address' }],
] as const);

/**
 * What a name, a field or an element was read from.
 * @param elements what the lists were read from whose elements predicates look at, by the slot of the variable
 */
export function sourceOf(
  { node, value, parts }: Traced,
  submitterId: string,
  elements: ReadonlyMap<number, Source>,
): Source | undefined {
  const [of] = parts;
  switch (node.kind) {
    case 'root':
      return thingIn(node.type, value) ?? rootSource(node.name, submitterId);
    case 'variable':
      return thingIn(node.type, value) ?? elements.get(node.slot);
    case 'field': {
      const thing = of && thingIn(of.node.type, of.value);
      if (thing) return { ...thing, field: node.field };
      return of && sourceOf(of, submitterId, elements);
    }
    case 'index':
    case 'slice':
    case 'cast':
      return thingIn(node.type, value) ?? (of && sourceOf(of, submitterId, elements));
    default:
      return undefined;
  }
}

function thingIn(
  type: PolicyType,
  value: PolicyValue | undefined,
): Exclude<Source, { of: 'request' | 'time' | 'approvals' }> | undefined {
  const thing = type.kind === 'record' ? things.get(type.name) : undefined;
  if (!thing || value === undefined || value instanceof Doubt || !isRecord(value)) return undefined;
  const id = (value as Readonly<Record<string, PolicyValue | undefined>>)[thing.by];
  return typeof id === 'string' ? { of: thing.of, id } : undefined;
}

function rootSource(name: string, submitterId: string): Source {
  switch (name) {
    case 'requester':
      return { of: 'user', id: submitterId };
    case 'approvers':
    case 'credentials':
      return { of: 'approvals' };
    case 'time':
      return { of: 'time' };
    default:
      return { of: 'request' };
  }
}
