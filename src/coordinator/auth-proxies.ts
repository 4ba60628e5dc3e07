import { Inject, Injectable } from '@nestjs/common';
import { CoordinatorError, invalidField } from '../domain/errors.js';
import { passkeyClaim, type ClaimedIdentifier } from '../domain/organization/claims.js';
import { claimedIdentity, oauthIdentity } from '../domain/organization/oauth-identity.js';
import { contactKey } from '../domain/contact-key.js';
import { isUuid } from '../domain/uuid.js';
import { OIDC, type OidcPort } from '../ports/oidc.js';
import { isAuthProxyKind, type AuthProxy, type AuthProxySettings } from '../domain/organization/auth-proxy.js';
import { parseStrictJson } from '../wire/strict-json.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { PROXY_STAMPS, type ProxyStampPort } from '../ports/proxy-keys.js';
import { authProxiesModel, isOriginAllowedAnywhere, organizationOfConfig } from '../read-models/auth-proxies.js';
import { accountOf, claimsModel, keysOfCredentialId } from '../read-models/claims.js';
import type { Rows } from '../read-models/database.js';
import { ROWS } from '../read-models/define-query.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { REGISTRY, type Registry } from '../decide/registry.js';

/** What an auth proxy learns about a configuration. */
interface ToldConfiguration {
  readonly configId: string;
  readonly organizationId: string;
  readonly organizationName: string;
  readonly settings: AuthProxySettings;
}

/** Serves auth proxies with configurations and stamps: their keys stay here (docs/adr/0019). */
@Injectable()
export class AuthProxies {
  constructor(
    private readonly loader: OrganizationLoader,
    @Inject(REGISTRY) private readonly registry: Registry,
    private readonly runner: ReadModelRunner,
    @Inject(ROWS) private readonly rows: Rows,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(OIDC) private readonly oidc: OidcPort,
    @Inject(PROXY_STAMPS) private readonly stamps: ProxyStampPort,
  ) {}

  /** A configuration as it is now. @throws {CoordinatorError} NOT_FOUND unless it is enabled */
  async configuration(configId: string, minPosition: bigint): Promise<ToldConfiguration> {
    const { authProxy, organizationId, organizationName } = await this.enabled(configId, minPosition);
    return { configId: authProxy.configId, organizationId, organizationName, settings: authProxy.settings };
  }

  /**
   * The `X-Stamp` for a request body, made with the key of a configuration. Only requests that a proxy forwards are
   * stamped, so a stolen proxy secret is worth no more than a proxy, whatever the organization's policies.
   * @throws {CoordinatorError} NOT_FOUND unless the configuration is enabled, PERMISSION_DENIED for other activities
   */
  async stamp(configId: string, body: string, minPosition: bigint): Promise<string> {
    const { value } = parseStrictJson(Buffer.from(body));
    const { type } = value;
    if (type !== undefined && !(typeof type === 'string' && this.isForwarded(type))) {
      const shown = JSON.stringify(type).slice(0, 100);
      throw new CoordinatorError('PERMISSION_DENIED', `an auth proxy cannot submit \`${shown}\``);
    }
    const { authProxy, organizationId } = await this.enabled(configId, minPosition);
    return this.stamps.stamp({ organizationId, vaultId: authProxy.vaultId }, body);
  }

  /**
   * The sub-organization that a public identifier, or an OIDC token, leads to (docs/adr/0016); undefined if none may be
   * disclosed. An identity that nobody has leads to its verified e-mail address, if a login may link it.
   * @throws {CoordinatorError} NOT_FOUND unless the configuration is enabled, INVALID_ARGUMENT
   */
  async account(
    configId: string,
    { filterType, filterValue }: { readonly filterType: string; readonly filterValue: string },
    minPosition: bigint,
  ): Promise<string | undefined> {
    const { authProxy, organizationId } = await this.enabled(configId, minPosition);
    const leadsTo = (identifier: ClaimedIdentifier) =>
      accountOf(this.rows, organizationId, identifier, this.clock.now());
    switch (filterType) {
      case 'EMAIL':
      case 'PHONE_NUMBER':
        return leadsTo({ kind: filterType, value: contactKey(filterValue) });
      case 'PUBLIC_KEY':
        return leadsTo({ kind: filterType, value: filterValue.toLowerCase() });
      case 'CREDENTIAL_ID': {
        // Nobody else could know the id when the passkey was created, so the first key is the passkey's own.
        const [publicKey] = keysOfCredentialId(this.rows, organizationId, filterValue);
        return publicKey === undefined ? undefined : leadsTo(passkeyClaim(filterValue, publicKey));
      }
      case 'OIDC_CLAIMS':
        return leadsTo({ kind: 'OIDC', value: claimedIdentity(filterValue) });
      case 'OIDC_TOKEN': {
        const identity = await this.oidc.verify(filterValue, 'registration');
        const own = leadsTo({ kind: 'OIDC', value: oauthIdentity(identity) });
        const { verifiedEmail, audience } = identity;
        const { socialLinkingClientIds = [] } = authProxy.settings;
        if (own !== undefined || verifiedEmail === undefined || !socialLinkingClientIds.includes(audience)) return own;
        return leadsTo({ kind: 'EMAIL', value: contactKey(verifiedEmail) });
      }
      default:
        throw invalidField(
          'filterType',
          `unknown value \`${filterType}\`: use EMAIL, PHONE_NUMBER, PUBLIC_KEY, CREDENTIAL_ID, OIDC_CLAIMS or OIDC_TOKEN`,
        );
    }
  }

  /**
   * A request that does not name its organization, completed with the one that `account` finds, and its `stamp`: logging
   * in takes one question instead of two. Undefined if there is no account.
   * @throws {CoordinatorError} as `account` and `stamp` do
   */
  async stampForAccount(
    configId: string,
    identifier: { readonly filterType: string; readonly filterValue: string },
    request: string,
    minPosition: bigint,
  ): Promise<{ organizationId: string; body: string; stamp: string } | undefined> {
    const { value } = parseStrictJson(Buffer.from(request));
    const organizationId = await this.account(configId, identifier, minPosition);
    if (organizationId === undefined) return undefined;
    const body = JSON.stringify({ ...value, organizationId });
    return { organizationId, body, stamp: await this.stamp(configId, body, minPosition) };
  }

  /** Whether any configuration allows an origin: a preflight request does not name its configuration. */
  async allowsOrigin(origin: string, minPosition: bigint): Promise<boolean> {
    await this.passed(minPosition);
    return isOriginAllowedAnywhere(this.rows, origin);
  }

  /** Waits until the read models have passed a position. */
  private passed(position: bigint): Promise<void> {
    return this.runner.current(position, authProxiesModel, claimsModel);
  }

  private isForwarded(type: string): boolean {
    const version = this.registry.versions.get(type);
    return version !== undefined && isAuthProxyKind(version.kind);
  }

  private async enabled(
    configId: string,
    minPosition: bigint,
  ): Promise<{ authProxy: AuthProxy; organizationId: string; organizationName: string }> {
    if (!isUuid(configId)) throw invalidField('configId', 'must be a UUID');
    await this.passed(minPosition);
    const organizationId = organizationOfConfig(this.rows, configId.toLowerCase());
    if (organizationId !== undefined) {
      // The read models only say where to look; the stream says what is true now.
      const { organization } = await this.loader.recorded(organizationId);
      const { authProxy, name: organizationName } = organization;
      if (authProxy?.configId === configId.toLowerCase()) return { authProxy, organizationId, organizationName };
    }
    throw new CoordinatorError(
      'NOT_FOUND',
      `no auth proxy configuration \`${configId}\`: get the id from get_auth_proxy_config`,
    );
  }
}
