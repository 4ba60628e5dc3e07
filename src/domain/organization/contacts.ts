/** The two kinds of contact that a user has. */
export type ContactKind = 'email' | 'phone-number';

/**
 * The key of a user's contact among additions, where credentials and identities are known by their ids; and elsewhere.
 */
export function contactName(userId: string, kind: ContactKind): string {
  return `${userId} ${kind}`;
}
