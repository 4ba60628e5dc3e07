import { Module } from '@nestjs/common';
import type { Config } from '../config/config.js';
import { ContactLimits } from '../delivery/contact-limits.js';
import { DELIVERY, deliveryFor, type Delivery } from '../delivery/delivery.js';
import { DeliveryModule } from '../delivery/delivery.module.js';
import type { QueuePath } from '../fairness/fair-queue.js';
import { thisThread } from '../fairness/turns.js';
import { CONFIG } from '../http/config.token.js';
import { HttpClientModule } from '../http-client/http-client.module.js';
import { OutboundHttp } from '../http-client/outbound-http.js';
import { InvitationLinks } from '../keyring/invitation-links.js';
import { KeyringModule } from '../keyring/keyring.module.js';
import { KEYRING, type OpenKeyring } from '../keyring/open-keyring.js';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { LedgerModule } from '../ledger/ledger.module.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { Oauth2Client } from '../oidc/oauth2-client.js';
import { OidcModule } from '../oidc/oidc.module.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { OIDC, type OidcPort } from '../ports/oidc.js';
import type { OrganizationPort } from '../ports/organizations.js';
import type { PreparePorts } from '../ports/prepare.js';
import type { Rows } from '../read-models/database.js';
import { ROWS } from '../read-models/define-query.js';
import { everywhere } from '../read-models/indexes.js';
import { ReadModelsModule } from '../read-models/read-models.module.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { CertificateRoom, verifyRegistration } from '../stamps/webauthn.js';
import { webhookTargets } from '../webhooks/targets.js';
import type { CoordinatorPorts } from './pending-request.js';
import { allowedOrigins } from './passkeys.js';

/** Injects the ports of `prepare`, created anew for each run. */
export const PREPARE = Symbol('Prepare');
const ORGANIZATIONS = Symbol('Organizations');

/** Verifies the registrations of one request, each in a turn of its own. */
function registrationsOf(path: QueuePath): PreparePorts['verifyRegistration'] {
  const room = new CertificateRoom();
  return async (input) => {
    await thisThread.next(path, { alone: true });
    return verifyRegistration(input, room);
  };
}

/** Everything that an activity's `prepare` may use. */
@Module({
  imports: [HttpClientModule, KeyringModule, OidcModule, DeliveryModule, LedgerModule, ReadModelsModule],
  providers: [
    {
      provide: ORGANIZATIONS,
      inject: [EVENT_STORE, CLOCK, OrganizationLoader, ReadModelRunner, ROWS],
      useFactory: (
        store: EventStore,
        clock: Clock,
        loader: OrganizationLoader,
        runner: ReadModelRunner,
        rows: Rows,
      ): OrganizationPort => ({
        authProxySettings: async (id) => (await loader.recorded(id)).organization.authProxy?.settings,
        view: async (id) => (await loader.recorded(id)).organization,
        ...everywhere(store, runner, rows, clock),
      }),
    },
    {
      provide: PREPARE,
      inject: [
        CONFIG,
        OutboundHttp,
        KEYRING,
        DELIVERY,
        ContactLimits,
        InvitationLinks,
        OIDC,
        Oauth2Client,
        OrganizationLoader,
        ORGANIZATIONS,
      ],
      useFactory: (
        { passkeyOrigins }: Config,
        { check }: OutboundHttp,
        { within, tokens }: OpenKeyring,
        delivery: Delivery,
        contactLimits: ContactLimits,
        invitations: InvitationLinks,
        oidc: OidcPort,
        oauth2: Oauth2Client,
        loader: OrganizationLoader,
        organizations: OrganizationPort,
      ): CoordinatorPorts['prepare'] => {
        const targets = webhookTargets(check);
        return (attempt) => ({
          verifyRegistration: registrationsOf(attempt.path),
          passkeyOrigins: (organization) => allowedOrigins(organization, { loader, passkeyOrigins }),
          invitations,
          tokens,
          oidc,
          oauth2,
          webhookTargets: targets,
          delivery: deliveryFor(delivery, attempt.path),
          contactLimits,
          organizations,
          ...within(attempt),
        });
      },
    },
  ],
  exports: [PREPARE],
})
export class PrepareModule {}
