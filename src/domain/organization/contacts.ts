/** The two kinds of contact that a user has. */
export type ContactKind = 'email' | 'phone-number';

/** What a contact of a user is known by: among additions, which credentials and identities are by their ids, and others. */
export function contactName(userId: string, kind: ContactKind): string {
  return `${userId} ${kind}`;
}
