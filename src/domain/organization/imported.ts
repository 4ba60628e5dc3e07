import type { DomainEvent, Evolvers } from './event.js';

/** A key that a test harness has made, and the API key or passkey that it stands for. */
export interface TestKey {
  readonly userId: string;
  /** Id of the API key or authenticator. */
  readonly credentialId: string;
  /** Lower-case hex, P-256. */
  readonly publicKey: string;
}

/**
 * The mark of a history that was brought into a test harness (docs/adr/0065): what stands before it was recorded elsewhere,
 * and its users can be stamped for by whoever has the test keys. No coordinator but that of a harness takes it.
 */
export type ImportedEvent = DomainEvent<
  'HistoryImported',
  {
    /** Personal data was replaced in what stands before it. */
    redacted: boolean;
    testKeys: readonly TestKey[];
  }
>;

/** Whether the event is such a mark. */
export function marksImport({ type }: { readonly type: string }): boolean {
  return type === 'HistoryImported';
}

export const evolveImported: Evolvers<ImportedEvent> = {
  HistoryImported(organization, { testKeys }) {
    organization.testKeys = new Map(testKeys.map((key) => [key.publicKey, key]));
  },
};
