import { integerRange } from '../../../src/domain/policy/syntax.js';
import { AmbiguousText, type PolicyType, type PolicyValue } from '../../../src/domain/policy/types.js';

/**
 * What keeps a value from being of a type, one line for each place; empty when it conforms. Fields may be absent; those
 * that the type does not declare may not be there.
 */
export function conforms(type: PolicyType, value: PolicyValue | undefined, path = 'value'): string[] {
  const wrong = (what: string) => [`${path}: ${what}`];
  if (value === undefined) return wrong('is absent');
  if (value instanceof AmbiguousText) return type.kind === 'string' ? [] : wrong('is a text');
  switch (type.kind) {
    case 'bool':
      return typeof value === 'boolean' ? [] : wrong('is no boolean');
    case 'int':
    case 'uint': {
      const { min, max } = integerRange[type.kind];
      return typeof value === 'bigint' && value >= min && value <= max ? [] : wrong(`is no ${type.kind} as bigint`);
    }
    case 'timestamp':
      return typeof value === 'bigint' ? [] : wrong('is no bigint');
    case 'string': {
      if (typeof value !== 'string') return wrong('is no string');
      return type.hex === 'always' && !/^(?:0x)?[0-9a-f]*$/i.test(value) ? wrong('is not hexadecimal') : [];
    }
    case 'list':
      if (!Array.isArray(value)) return wrong('is no array');
      return (value as readonly PolicyValue[]).flatMap((item, index) => conforms(type.of, item, `${path}[${index}]`));
    case 'map':
    case 'record': {
      if (typeof value !== 'object' || Array.isArray(value)) return wrong('is no object');
      return entriesOf(value).flatMap(([name, field]) => {
        const fieldType = type.kind === 'map' ? type.of : ownField(type.fields, name);
        if (!fieldType) return [`${path}.${name}: is not declared`];
        return conforms(fieldType, field, `${path}.${name}`);
      });
    }
    case 'dynamic': {
      if (typeof value === 'boolean' || typeof value === 'string') return [];
      if (typeof value === 'bigint') {
        const { min, max } = integerRange.dynamic;
        return value >= min && value <= max ? [] : wrong('has more than 256 bits');
      }
      if (typeof value !== 'object') return wrong(`is a ${typeof value}`);
      if (Array.isArray(value)) return conforms({ kind: 'list', of: type }, value, path);
      return conforms({ kind: 'map', of: type }, value, path);
    }
  }
}

function entriesOf(value: PolicyValue): [string, PolicyValue][] {
  return Object.entries(value as Readonly<Record<string, PolicyValue | undefined>>).filter(
    (entry): entry is [string, PolicyValue] => entry[1] !== undefined,
  );
}

function ownField(fields: Readonly<Record<string, PolicyType>>, name: string): PolicyType | undefined {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}
