import { no, Untranslatable } from './smt-script.js';
import { tags, type Open, type OpenValue, type OpenDynamic } from './smt-values.js';

const kinds = {
  bool: tags.bool,
  integer: tags.integer,
  text: tags.text,
  list: tags.list,
  record: tags.record,
  map: tags.record,
} as const;

/** A value of a known type where others are dynamic. */
export function asDynamic(value: OpenValue): OpenDynamic {
  if (value.kind === 'dynamic') return value;
  const inside = (open: Open): Open => ({ ...open, value: asDynamic(open.value) });
  const entry = (of: (map: Extract<OpenValue, { kind: 'map' }>) => Open): Open => {
    // The names of its fields are known only as texts of the policy.
    if (value.kind === 'record') throw new Untranslatable('a record of a known type is read like a dynamic one');
    if (value.kind !== 'map')
      return { isUnreadable: 'true', isNotApplicable: no, value: asDynamic({ kind: 'bool', term: no }) };
    return inside(of(value));
  };
  return {
    kind: 'dynamic',
    tag: kinds[value.kind],
    bool: () => (value.kind === 'bool' ? value.term : no),
    integer: () => (value.kind === 'integer' ? value.term : '0'),
    text: () => (value.kind === 'text' ? value : { kind: 'text', term: '""', isLower: true }),
    elements: () =>
      value.kind === 'list' ? value.elements.map((element) => ({ ...element, value: inside(element.value) })) : [],
    entry: (key) => entry((map) => map.entry(key)),
    anyEntry: () => entry((map) => map.anyEntry()),
  };
}
