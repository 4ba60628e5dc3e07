import { AmbiguousText, Doubt, type PolicyValue } from '../../src/domain/policy/types.js';

/** A value as it reads, where it does not matter what its texts may stand for besides. */
export function plain(value: PolicyValue): PolicyValue {
  if (value instanceof AmbiguousText) return value.text;
  if (typeof value !== 'object' || value instanceof Doubt) return value;
  if (Array.isArray(value)) return (value as readonly PolicyValue[]).map(plain);
  return Object.fromEntries(
    Object.entries(value as Readonly<Record<string, PolicyValue | undefined>>).map(([name, member]) => [
      name,
      member === undefined ? member : plain(member),
    ]),
  );
}
