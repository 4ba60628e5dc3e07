import type { Rows } from './database.js';
import { eachEvent, type ReadModel } from './read-model.js';

/**
 * What unexpired tokens were used for, in all organizations: someone who has read one may try it in another
 * organization.
 */
export const tokenUsesModel: ReadModel = {
  name: 'token-uses',
  version: 1,
  tables: ['token_uses'],
  guards: ['token_uses'],
  schema: `
    CREATE TABLE token_uses (
      token_id TEXT NOT NULL, usage TEXT NOT NULL, expires_at INTEGER NOT NULL, PRIMARY KEY (token_id, usage)
    ) WITHOUT ROWID;
    CREATE INDEX token_uses_by_expiry ON token_uses (expires_at);`,

  project: eachEvent((rows, { at, event }) => {
    if (event.type !== 'VerificationTokenUsed' && event.type !== 'OidcTokenUsed') return;
    const { tokenId, usage, expiresAt } = event.data;
    // Whoever recorded this may have a clock that is ahead of those that the token is still good for.
    rows.run('DELETE FROM token_uses WHERE expires_at < ?', BigInt(at - keptMs));
    rows.run('INSERT OR REPLACE INTO token_uses VALUES (?, ?, ?)', tokenId, usage, BigInt(expiresAt));
  }),
};

/** How long a use is kept after its token has expired, in milliseconds. */
const keptMs = 24 * 60 * 60 * 1000;

/** What a token was used for. */
export function tokenUsesOf(rows: Rows, tokenId: string): ReadonlySet<string> {
  const found = rows.all('SELECT usage FROM token_uses WHERE token_id = ?', tokenId);
  return new Set(found.map((row) => String(row['usage'])));
}
