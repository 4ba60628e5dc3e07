import type { DomainEvent, Evolvers } from './event.js';

/** A key created by a test harness, and the API key or passkey that it stands for. */
export interface TestKey {
  readonly userId: string;
  /** Id of the API key or authenticator. */
  readonly credentialId: string;
  /** Lower-case hex, P-256. */
  readonly publicKey: string;
}

/**
 * Marks a history that was imported into a test harness (docs/adr/0029): what precedes it was recorded elsewhere, and
 * the holder of the test keys can stamp for its users. Only the coordinator of a harness accepts it.
 */
export type ImportedEvent = DomainEvent<
  'HistoryImported',
  {
    /** Personal data before this mark was replaced. */
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
