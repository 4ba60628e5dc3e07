import { Module } from '@nestjs/common';
import type { Config } from '../config/config.js';
import { CONFIG } from '../http/config.token.js';
import { ADDRESSES, type Addresses } from '../http/listening-address.js';
import { RANDOMNESS, type Randomness } from '../ports/randomness.js';
import { InstallationKeys } from './installation-keys.js';
import { InvitationLinks } from './invitation-links.js';
import { OidcIssuer } from './oidc-issuer.js';
import { KEYRING, type OpenKeyring } from './open-keyring.js';
import { WebhookKey } from './webhook-key.js';

/** Signing and verification with the installation's keys. */
@Module({
  providers: [
    { provide: InstallationKeys, inject: [KEYRING], useFactory: ({ keys }: OpenKeyring) => keys },
    { provide: WebhookKey, inject: [InstallationKeys], useFactory: (keys: InstallationKeys) => new WebhookKey(keys) },
    {
      provide: OidcIssuer,
      inject: [InstallationKeys, RANDOMNESS, ADDRESSES],
      useFactory: (keys: InstallationKeys, randomness: Randomness, { told: address }: Addresses) =>
        new OidcIssuer({ keys, randomness, address }),
    },
    {
      provide: InvitationLinks,
      inject: [CONFIG, RANDOMNESS, ADDRESSES],
      useFactory: ({ invitationUrl }: Config, randomness: Randomness, { told }: Addresses) =>
        new InvitationLinks({ randomness, page: () => invitationUrl ?? `${told()}/invitations/accept` }),
    },
  ],
  exports: [InstallationKeys, WebhookKey, OidcIssuer, InvitationLinks],
})
export class KeyringModule {}
