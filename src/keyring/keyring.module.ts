import { Module } from '@nestjs/common';
import { InvitationLinks } from './invitation-links.js';
import { OidcIssuer } from './oidc-issuer.js';
import { SendDigest } from './send-digest.js';
import { WebhookKey } from './webhook-key.js';

const providers = [WebhookKey, OidcIssuer, InvitationLinks, SendDigest];

/** Signing and verification with the installation's keys. */
@Module({ providers, exports: providers })
export class KeyringModule {}
