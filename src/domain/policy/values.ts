import { integerRange } from './syntax.js';
import { AmbiguousText, Doubt, type PolicyType, type PolicyValue } from './types.js';

function isMarker(value: object): boolean {
  return value instanceof Doubt || value instanceof AmbiguousText;
}

/** A record or a map, as opposed to a marker. */
export function isRecord(value: PolicyValue): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isMarker(value);
}

/** The visible text of a string. */
export function textOf(value: PolicyValue): string | undefined {
  if (value instanceof AmbiguousText) return value.text;
  return typeof value === 'string' ? value : undefined;
}

/** The kind of a value, for messages. */
export function kindOf(value: PolicyValue): string {
  if (value instanceof AmbiguousText) return 'an ambiguous text';
  switch (typeof value) {
    case 'boolean':
      return 'a bool';
    case 'bigint':
      return 'an integer';
    case 'string':
      return 'a string';
    default:
      return Array.isArray(value) ? 'a list' : 'a record';
  }
}

/** Checks the value itself, not its contents, which are checked when they are read. */
export function isOfType(value: PolicyValue, type: PolicyType): boolean {
  switch (type.kind) {
    case 'bool':
      return typeof value === 'boolean';
    case 'string':
      return textOf(value) !== undefined;
    case 'timestamp':
      return typeof value === 'bigint';
    case 'dynamic':
      if (typeof value === 'bigint') return value >= integerRange.dynamic.min && value <= integerRange.dynamic.max;
      return typeof value === 'boolean' || textOf(value) !== undefined || Array.isArray(value) || isRecord(value);
    case 'int':
    case 'uint':
      return typeof value === 'bigint' && value >= integerRange[type.kind].min && value <= integerRange[type.kind].max;
    case 'list':
      return Array.isArray(value);
    case 'map':
    case 'record':
      return isRecord(value);
  }
}
