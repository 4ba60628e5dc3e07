/**
 * The normalized form of a contact: letter case does not make another mailbox. ASCII only, because other letters may.
 */
export function contactKey(contact: string): string {
  return contact.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
