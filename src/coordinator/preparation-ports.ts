import { Inject, Injectable } from '@nestjs/common';
import type { Config } from '../config/config.js';
import { CONFIG } from '../config/config.token.js';
import { ContactLimits } from '../delivery/contact-limits.js';
import { DELIVERY, deliveryFor, type Delivery } from '../delivery/delivery.js';
import type { QueuePath } from '../fairness/fair-queue.js';
import { thisThread } from '../fairness/turns.js';
import { OutboundHttp } from '../http-client/outbound-http.js';
import { webhookTargets } from '../http-client/webhook-targets.js';
import { InvitationLinks } from '../keyring/invitation-links.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { Oauth2Client } from '../oidc/oauth2-client.js';
import { OIDC, type OidcPort } from '../ports/oidc.js';
import { SECRETS_WITHIN, type PreparePorts, type SecretsWithin } from '../ports/prepare.js';
import { TOKENS, type TokenPort } from '../ports/tokens.js';
import type { WebhookTargetPort } from '../ports/webhook-targets.js';
import { CertificateRoom, verifyRegistration } from '../stamps/webauthn.js';
import type { Attempt } from './attempts.js';
import { allowedOrigins } from './passkeys.js';
import { RecordedOrganizations } from './recorded-organizations.js';

/** Everything that an activity's `prepare` may use. */
@Injectable()
export class PreparationPorts {
  private readonly webhookTargets: WebhookTargetPort;

  constructor(
    @Inject(CONFIG) private readonly config: Pick<Config, 'passkeyOrigins'>,
    outbound: OutboundHttp,
    @Inject(SECRETS_WITHIN) private readonly secretsWithin: SecretsWithin,
    @Inject(TOKENS) private readonly tokens: TokenPort,
    @Inject(DELIVERY) private readonly delivery: Delivery,
    private readonly contactLimits: ContactLimits,
    private readonly invitations: InvitationLinks,
    @Inject(OIDC) private readonly oidc: OidcPort,
    private readonly oauth2: Oauth2Client,
    private readonly loader: OrganizationLoader,
    private readonly organizations: RecordedOrganizations,
  ) {
    this.webhookTargets = webhookTargets(outbound.check);
  }

  /** The ports for one run. */
  for(attempt: Attempt): PreparePorts {
    const { tokens, contactLimits, invitations, oidc, oauth2, loader, organizations, webhookTargets: targets } = this;
    const { passkeyOrigins } = this.config;
    return {
      verifyRegistration: registrationsOf(attempt.path),
      passkeyOrigins: (organization) => allowedOrigins(organization, { loader, passkeyOrigins }),
      invitations,
      tokens,
      oidc,
      oauth2,
      webhookTargets: targets,
      delivery: deliveryFor(this.delivery, attempt.path),
      contactLimits,
      organizations,
      ...this.secretsWithin(attempt),
    };
  }
}

/** Verifies the registrations of one request, each in a turn of its own. */
function registrationsOf(path: QueuePath): PreparePorts['verifyRegistration'] {
  const room = new CertificateRoom();
  return async (input) => {
    await thisThread.next(path, { alone: true });
    return verifyRegistration(input, room);
  };
}
