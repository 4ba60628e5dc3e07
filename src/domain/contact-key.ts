import { domainToASCII } from 'node:url';

/**
 * The normalized form of a contact: spellings of one mailbox have one key. Letter case is ignored, in the local part for ASCII
 * only; a domain is in its ASCII form (UTS 46), and the rest in NFC. Both are stable for assigned characters, and the wire refuses
 * others, so another version of Unicode does not change a recorded contact's key.
 */
export function contactKey(contact: string): string {
  return mailAddress(contact).replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/**
 * Where mail to a contact goes: the local part in NFC, the domain in ASCII. Spellings with one key differ in letter case alone, so
 * nobody proves a contact by another mailbox.
 */
export function mailAddress(contact: string): string {
  if (isAscii(contact)) return contact;
  const text = contact.normalize('NFC');
  const at = text.lastIndexOf('@') + 1;
  const domain = text.slice(at);
  return isAscii(domain) ? text : text.slice(0, at) + (domainToASCII(domain) || domain);
}

/** An ASCII domain with a dot (RFC 5321, 4.1.2). */
const asciiDomain = /^[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)+$/;
/** Letters, marks and digits only: what else has a meaning in a URL would be cut off. */
const anyDomain = /^[\p{L}\p{M}\p{N}.-]+$/u;

/** An ASCII domain, or an internationalized one, whose last label is never a number: that would be an address. */
export function isMailDomain(domain: string): boolean {
  if (isAscii(domain)) return asciiDomain.test(domain);
  const ascii = anyDomain.test(domain) ? domainToASCII(domain) : '';
  return asciiDomain.test(ascii) && !/\.\d[^.]*$/.test(ascii);
}

const isAscii = (text: string): boolean => !/[\u0080-\uffff]/.test(text);

/**
 * What messages to a contact are counted under: one name for the spellings that commonly reach one mailbox (sub-addresses,
 * RFC 5233; Gmail's dots). For counting only: elsewhere they may be the mailboxes of two people.
 */
export function mailboxOf(contact: string): string {
  const text = contactKey(contact).toLowerCase();
  const [whole = '', domain] = text.split('@');
  if (domain === undefined) return text;
  // At its beginning it separates nothing: gateways have phone numbers there.
  const plus = whole.indexOf('+', 1);
  const local = plus < 0 ? whole : whole.slice(0, plus);
  return gmailDomains.includes(domain) ? `${local.replaceAll('.', '')}@${gmailDomains[0]}` : `${local}@${domain}`;
}

const gmailDomains: readonly string[] = ['gmail.com', 'googlemail.com'];
