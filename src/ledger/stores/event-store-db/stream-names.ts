/** Streams that are never deleted: what a reader waits for must not be able to vanish. */
const KEPT_PREFIXES = ['organization-', 'denials-', 'claims-', 'installation-', 'lease-', 'webhook-deliveries-'];
/** Renewals of leases and counts of messages are not among them: there are thousands, and no feed needs them. */
const DELETABLE_PREFIXES = ['vault-', 'snapshot-'];

/** Prefixes of the streams that a feed shows. */
export const FED_PREFIXES: readonly string[] = [...KEPT_PREFIXES, ...DELETABLE_PREFIXES];

/** Whether a stream is never deleted. */
export function isKept(stream: string): boolean {
  return KEPT_PREFIXES.some((prefix) => stream.startsWith(prefix));
}
