import fc from 'fast-check';
import { Redactor } from '../../src/audit/export/redact.js';

const redactor = () => new Redactor(Buffer.alloc(32, 1), {});
/** Of our own prose, contacts are replaced wherever they are. */
const reason = (text: string) => redactor().data({ reason: text }).reason;
const pseudonym = (contact: string) => redactor().data({ contact }).contact;

/** What a contact in a text is, said without a thought to what it costs. */
const contacts =
  /[\p{L}\p{M}\p{N}_.!#$%&'*+/=?^{|}~-]+@[\p{L}\p{M}\p{N}_-]+(?:\.[\p{L}\p{M}\p{N}_-]+)+|\+[1-9]\d{6,14}\b/gu;

test.each([
  ['between words', 'of ann@example.com there', 'ann@example.com'],
  ['right behind another', 'ann@example.com+x@y.com', 'ann@example.com', '+x@y.com'],
  ['behind a number that is none', '+0ann@example.com', '+0ann@example.com'],
  ['a number in a run', 'tel=+491701234567/', '+491701234567'],
  ['a number before a host without a dot', '+491701234567@host', '+491701234567'],
  ['with a long local part', `${'x'.repeat(100)}@example.com`, `${'x'.repeat(100)}@example.com`],
  ['in other scripts', 'jö@bücher.example.org, 李@例え.jp', 'jö@bücher.example.org', '李@例え.jp'],
])('contacts in a text get their pseudonyms: %s', (_where, text, ...found) => {
  const expected = found.reduce((rest, contact) => rest.replace(contact, pseudonym(contact)), text);
  expect(expected).not.toBe(text);
  expect(reason(text)).toBe(expected);
});

test('all contacts, and nothing else, are replaced in any text', () => {
  const parts = fc.constantFrom(
    '+',
    '1',
    '234567',
    '89',
    '@',
    '.',
    '-',
    'a',
    'ann',
    'é',
    ' ',
    '\n',
    'example.com',
    '"',
  );
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 30 }), (list) => {
      const text = list.join('');
      expect(reason(text)).toBe(text.replace(contacts, (contact) => pseudonym(contact)));
    }),
    { numRuns: 2_000 },
  );
});

// A text that takes time in proportion to the square of its length would not end.
test.each([
  ['characters of contacts', '+'.repeat(1_000_000)],
  ['numbers', '+1'.repeat(500_000)],
  ['beginnings of addresses', 'a@b'.repeat(300_000)],
  ['a label without a dot', `a@${'b-'.repeat(500_000)}`],
  ['labels of nothing', `a@${'.'.repeat(1_000_000)} `],
])('a long text of %s is read once', (_what, text) => {
  expect(reason(text)).toHaveLength(text.length);
  expect(redactor().data({ contact: text, activityId: text })).toEqual({ contact: text, activityId: text });
});
