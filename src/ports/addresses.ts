/** The addresses of this server, known once it listens. */
export interface Addresses {
  /** The address for others: PUBLIC_URL if set. */
  readonly told: () => string;
  /** On this machine. */
  readonly own: () => string;
  /** The page where invitations are accepted. */
  readonly invitations: () => string;
}

export const ADDRESSES = Symbol('Addresses');
