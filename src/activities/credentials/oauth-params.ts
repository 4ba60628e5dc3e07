import { invalidField } from '../../domain/errors.js';
import { Label, Nested, Text } from '../../schema/fields.js';
import type { OidcIdentity, PreparePorts } from '../ports.js';

/** Longest OIDC token, in characters: 16 KiB, and base64 around them. */
export const maxOidcToken = 22_528;

class OidcClaims {
  @Text({ min: 1, about: 'Issuer of the identity.' })
  iss!: string;

  @Text({ min: 1, about: 'Subject: who it is at the issuer.' })
  sub!: string;

  @Text({ min: 1, about: 'Audience: the application it was issued for.' })
  aud!: string;
}

/** An identity at an OpenID provider, first version. */
export class OauthProviderParams {
  @Label({ about: 'The name of the identity.' })
  providerName!: string;

  @Text({ min: 1, max: maxOidcToken, about: 'An OIDC token that proves it.' })
  oidcToken!: string;
}

/** An identity at an OpenID provider. */
export class OauthProviderParamsV2 {
  @Label({ about: 'The name of the identity.' })
  providerName!: string;

  @Text({ optional: true, max: maxOidcToken, about: 'An OIDC token that proves it.' })
  oidcToken?: string;

  @Nested(() => OidcClaims, {
    optional: true,
    about: 'Instead of a token: the same person for another audience, by issuer and subject of a token in the list.',
  })
  oidcClaims?: OidcClaims;
}

/** An identity with the name that it was given here. */
export interface NamedIdentity extends Pick<OidcIdentity, 'issuer' | 'audience' | 'subject'> {
  readonly providerName: string;
}

/**
 * The identities behind a list of providers: each proved by its token, or by claims that name the person of a proved
 * one (client protocol 6.3). `field` names the list in errors.
 * @throws {CoordinatorError} INVALID_ARGUMENT for what is not proved
 */
export async function verifiedIdentities(
  providers: readonly OauthProviderParamsV2[],
  ports: PreparePorts,
  field: string,
): Promise<readonly NamedIdentity[]> {
  return namedIdentities(providers, await tokenIdentities(providers, ports), field);
}

/** What the token of each provider says; undefined for one without a token. */
export function tokenIdentities(
  providers: readonly OauthProviderParamsV2[],
  { oidc }: Pick<PreparePorts, 'oidc'>,
): Promise<readonly (OidcIdentity | undefined)[]> {
  return Promise.all(
    providers.map(async ({ oidcToken }) => (oidcToken ? oidc.verify(oidcToken, 'registration') : undefined)),
  );
}

/** The identities, of which `proved` has what tokens say. @throws {CoordinatorError} as `verifiedIdentities` */
export function namedIdentities(
  providers: readonly OauthProviderParamsV2[],
  proved: readonly (OidcIdentity | undefined)[],
  field: string,
): readonly NamedIdentity[] {
  return providers.map(({ providerName, oidcClaims }, index) => {
    const own = proved[index];
    const where = `${field}[${index}]`;
    if (own) {
      if (oidcClaims) throw invalidField(`${where}.oidcClaims`, 'must not stand beside oidcToken: send one of them');
      const { issuer, audience, subject } = own;
      return { providerName, issuer, audience, subject };
    }
    if (!oidcClaims) throw invalidField(where, 'needs oidcToken or oidcClaims: nothing proves the identity');
    const { iss, sub, aud } = oidcClaims;
    const isProved = proved.some((one) => one?.issuer === iss && one.subject === sub);
    if (!isProved) {
      throw invalidField(
        `${where}.oidcClaims`,
        `no oidcToken in the list proves issuer \`${iss}\` and subject \`${sub}\`: send one for the same person`,
      );
    }
    return { providerName, issuer: iss, audience: aud, subject: sub };
  });
}
