/**
 * The normalized form of a contact: letter case does not make another mailbox. ASCII only, because other letters may.
 */
export function contactKey(contact: string): string {
  return contact.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/**
 * What messages to a contact are counted under: one name for the spellings that commonly reach one mailbox (sub-addresses,
 * RFC 5233; Gmail's dots). For counting only: elsewhere they may be the mailboxes of two people.
 */
export function mailboxOf(contact: string): string {
  const text = contact.toLowerCase().normalize('NFC');
  const [whole = '', domain] = text.split('@');
  if (domain === undefined) return text;
  // At its beginning it separates nothing: gateways have phone numbers there.
  const plus = whole.indexOf('+', 1);
  const local = plus < 0 ? whole : whole.slice(0, plus);
  return gmailDomains.includes(domain) ? `${local.replaceAll('.', '')}@${gmailDomains[0]}` : `${local}@${domain}`;
}

const gmailDomains: readonly string[] = ['gmail.com', 'googlemail.com'];
