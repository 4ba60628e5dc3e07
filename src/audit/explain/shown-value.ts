import { AmbiguousText, Doubt, type PolicyValue } from '../../domain/policy/types.js';

/** Longest text of a value or of a piece of a policy, in characters. */
const maxShown = 200;
/** Elements of a list, and members of a record, that are written. */
const mostElements = 10;

/** A value as the policy language would write it, on one line and of limited length. */
export function shownValue(value: PolicyValue | undefined): string {
  return onOneLine(written(value, 2));
}

/** A text that somebody else has chosen: on one line, cut where it is long, and never within a character. */
export function onOneLine(text: string, most = maxShown): string {
  const line = text.replace(/[\s\p{Cc}\u2028\u2029]+/gu, ' ').trim();
  return line.length <= most ? line : `${line.slice(0, most).replace(/[\ud800-\udbff]$/, '')}…`;
}

function written(value: PolicyValue | undefined, depth: number): string {
  if (value === undefined) return 'unreadable';
  if (value instanceof Doubt) return value.kind;
  if (value instanceof AmbiguousText) return `${quoted(value.text)} (may stand for more)`;
  if (typeof value === 'string') return quoted(value);
  if (typeof value !== 'object') return String(value);
  if (Array.isArray(value)) {
    const list = value as readonly PolicyValue[];
    return `[${together(list, list.length, depth, (element) => written(element, depth - 1))}]`;
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${together(members, members.length, depth, ([name, member]) => `${name}: ${written(member, depth - 1)}`)}}`;
}

function together<Element>(
  all: readonly Element[],
  count: number,
  depth: number,
  write: (element: Element) => string,
): string {
  if (count === 0) return '';
  if (depth === 0) return `${count}…`;
  const shown = all.slice(0, mostElements).map(write);
  return [...shown, ...(count > shown.length ? [`${count - shown.length} more`] : [])].join(', ');
}

/** Cut before it is searched for what must not be shown: it may be long. */
function quoted(text: string): string {
  return `'${text.length > maxShown ? `${text.slice(0, maxShown)}…` : text}'`;
}
