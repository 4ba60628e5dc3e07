import { contactKey, isMailDomain, mailAddress, mailboxOf } from '../../src/domain/contact-key.js';

test.each([
  ['Ann@Example.com', 'ann@example.com'],
  ['ann+one+two@example.com', 'ann@example.com'],
  ['a.nn@example.com', 'a.nn@example.com'],
  ['a.n.n.+1@GoogleMail.com', 'ann@gmail.com'],
  ['zoe\u0308@example.com', 'zo\u00eb@example.com'],
  ['ZO\u00cb@example.com', 'zo\u00eb@example.com'],
  ['+4930123456+1@sms.example.com', '+4930123456@sms.example.com'],
  ['+4930123456', '+4930123456'],
  ['Ann+1@M\u00dcNCHEN.de', 'ann@xn--mnchen-3ya.de'],
])('messages to %s are counted as those to %s', (contact, mailbox) => {
  expect(mailboxOf(contact)).toBe(mailbox);
});

test.each([
  ['Ann+1@gmail.com', 'ann+1@gmail.com'],
  ['a.nn@gmail.com', 'a.nn@gmail.com'],
  ['+4930123456', '+4930123456'],
  // One spelling in NFC and NFD.
  ['Zoe\u0308@example.com', 'zo\u00eb@example.com'],
  ['zo\u00eb@example.com', 'zo\u00eb@example.com'],
  // Letter case of other letters may be another mailbox.
  ['ZO\u00cb@example.com', 'zo\u00cb@example.com'],
  ['ann@M\u00dcNCHEN.de', 'ann@xn--mnchen-3ya.de'],
  ['ann@mu\u0308nchen.de', 'ann@xn--mnchen-3ya.de'],
  ['Ann@XN--mnchen-3ya.de', 'ann@xn--mnchen-3ya.de'],
  ['ann@stra\u00dfe.de', 'ann@xn--strae-oqa.de'],
  ['ann@\uff45xample.com', 'ann@example.com'],
])('%j is compared as %s', (contact, key) => {
  expect(contactKey(contact)).toBe(key);
});

test('mail goes to the address in NFC with an ASCII domain, letters as they were given', () => {
  expect(['Ann@Example.com', 'Zoe\u0308@M\u00fcnchen.de', '+4930123456'].map(mailAddress)).toEqual([
    'Ann@Example.com',
    'Zo\u00eb@xn--mnchen-3ya.de',
    '+4930123456',
  ]);
});

test.each([
  'example.com',
  'm\u00fcnchen.de',
  'mu\u0308nchen.de',
  '\u0909\u0926\u093e\u0939\u0930\u0923.\u092d\u093e\u0930\u0924',
  'xn--mnchen-3ya.de',
])('%j is a mail domain', (domain) => {
  expect(isMailDomain(domain)).toBe(true);
});

test.each([
  ['without a dot', '\u00fc'],
  ['an address in other digits', '\uff11.2.3.4'],
  ['cut off where it is read as a URL', 'a.de/\u00fc.de'],
  ['another full stop', 'a\u3002de'],
  ['an unassigned character', '\u{10fffe}.de'],
  ['invisible', 'ex\u00adample.de'],
  ['an empty label', '\u00fc..de'],
  ['a dot at the end', '\u00fc.de.'],
  ['a port', '\u00fc.de:80'],
])('%s is not a mail domain', (_what, domain) => {
  expect(isMailDomain(domain)).toBe(false);
});
