import { hash } from 'node:crypto';
import { compactJws } from '../../domain/compact-jws.js';
import { CoordinatorError } from '../../domain/errors.js';
import type { OrganizationEvent } from '../../domain/organization/organization.js';
import type { OidcIdentity } from '../../ports/oidc.js';
import type { PreparePorts } from '../../ports/prepare.js';

/**
 * What an OIDC token was recorded for. It may log in repeatedly with its key, but register only if nobody could have
 * read it.
 */
type OidcUsage = 'USAGE_TYPE_OIDC_LOGIN' | 'USAGE_TYPE_OIDC_REGISTRATION';

/** An OIDC token that is about to be recorded. */
type RecordedToken = Pick<OidcIdentity, 'tokenId' | 'expiresAt'>;

/** The OIDC tokens of a request. */
export interface RecordedTokens {
  readonly tokens?: readonly RecordedToken[];
}

/** What is remembered of a request's tokens. */
export function recordedTokens(verified: readonly OidcIdentity[]): RecordedTokens {
  return verified.length > 0 ? { tokens: verified.map(({ tokenId, expiresAt }) => ({ tokenId, expiresAt })) } : {};
}

/** The same, from the tokens in a request that was recorded. */
export function recalledTokens(oidcTokens: readonly (string | undefined)[]): RecordedTokens {
  const tokens = oidcTokens.flatMap((token) => (token ? [compactJws(token)] : []));
  return {
    tokens: tokens.map((token) => ({
      tokenId: hash('sha256', token.slice(0, token.lastIndexOf('.'))),
      expiresAt: Math.floor(Number(claimsOf(token)['exp']) * 1_000),
    })),
  };
}

/** Claims of a token, unchecked: it was verified before it was recorded. */
export function claimsOf(token: string): Readonly<Partial<Record<string, string>>> {
  const [, claims = ''] = compactJws(token).split('.');
  return JSON.parse(Buffer.from(claims, 'base64url').toString()) as Partial<Record<string, string>>;
}

/** Remembers that OIDC tokens were recorded. */
export function oidcTokensUsed(tokens: readonly RecordedToken[], usage: OidcUsage): OrganizationEvent[] {
  return tokens.map(({ tokenId, expiresAt }) => ({ type: 'OidcTokenUsed', data: { tokenId, usage, expiresAt } }));
}

/** A token of three parts without its signature: the part that others may read. */
export function withoutSignature(token: string): string {
  return token.slice(0, token.lastIndexOf('.') + 1);
}

/**
 * Refuses a token that was recorded anywhere before: someone who read it there must not register it as theirs.
 * @throws {CoordinatorError} FAILED_PRECONDITION
 */
export async function checkNeverUsed(
  { tokenId, what, remedy }: { readonly tokenId: string; readonly what: string; readonly remedy: string },
  { organizations }: Pick<PreparePorts, 'organizations'>,
  isBar: (usage: string) => boolean = () => true,
): Promise<void> {
  const bar = [...(await organizations.tokenUses(tokenId))].find(isBar);
  if (bar === undefined) return;
  throw new CoordinatorError(
    'FAILED_PRECONDITION',
    `${what} \`${tokenId}\` has already been used for ${bar}: ${remedy}`,
  );
}
