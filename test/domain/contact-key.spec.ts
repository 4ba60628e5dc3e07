import { contactKey, mailboxOf } from '../../src/domain/contact-key.js';

test.each([
  ['Ann@Example.com', 'ann@example.com'],
  ['ann+one+two@example.com', 'ann@example.com'],
  ['a.nn@example.com', 'a.nn@example.com'],
  ['a.n.n.+1@GoogleMail.com', 'ann@gmail.com'],
  ['zoe\u0308@example.com', 'zo\u00eb@example.com'],
  ['ZO\u00cb@example.com', 'zo\u00eb@example.com'],
  ['+4930123456+1@sms.example.com', '+4930123456@sms.example.com'],
  ['+4930123456', '+4930123456'],
])('messages to %s are counted as those to %s', (contact, mailbox) => {
  expect(mailboxOf(contact)).toBe(mailbox);
});

test('whose contact it is depends on letter case alone', () => {
  expect(['Ann+1@gmail.com', 'a.nn@gmail.com', 'zoe\u0308@example.com'].map(contactKey)).toEqual([
    'ann+1@gmail.com',
    'a.nn@gmail.com',
    'zoe\u0308@example.com',
  ]);
});
