import type { Rows } from './database.js';
import { eachEvent, type ReadModel } from './read-model.js';

/**
 * What tokens were used for, in all organizations: someone who has read one may try it in another
 * organization.
 */
export const tokenUsesModel: ReadModel = {
  name: 'token-uses',
  version: 2,
  tables: ['token_uses'],
  guards: ['token_uses'],
  schema: `
    CREATE TABLE token_uses (
      token_id TEXT NOT NULL, usage TEXT NOT NULL, PRIMARY KEY (token_id, usage)
    ) WITHOUT ROWID;`,

  project: eachEvent((rows, { event }) => {
    if (event.type !== 'VerificationTokenUsed' && event.type !== 'OidcTokenUsed') return;
    const { tokenId, usage } = event.data;
    // For ever, like fingerprints: a clock that was ahead would have expired what is alive again once it is right.
    rows.run('INSERT OR REPLACE INTO token_uses VALUES (?, ?)', tokenId, usage);
  }),
};

/** What a token was used for. */
export function tokenUsesOf(rows: Rows, tokenId: string): ReadonlySet<string> {
  const found = rows.all('SELECT usage FROM token_uses WHERE token_id = ?', tokenId);
  return new Set(found.map((row) => String(row['usage'])));
}
