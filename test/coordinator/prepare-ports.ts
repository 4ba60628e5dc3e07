import type { PreparePorts } from '../../src/ports/prepare.js';
import { OrganizationLoader } from '../../src/ledger/load-organization.js';
import { uuidV7 } from '../../src/ledger/ids.js';
import { ContactLimits } from '../../src/delivery/contact-limits.js';
import { RetryingDelivery } from '../../src/delivery/retrying.js';
import type { EventStore } from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { InvitationLinks } from '../../src/keyring/invitation-links.js';
import { OidcIssuer } from '../../src/keyring/oidc-issuer.js';
import { SendDigest } from '../../src/keyring/send-digest.js';
import { openKeyring, type OpenKeyring } from '../../src/keyring/open-keyring.js';
import { guardedFetch, guardedTarget } from '../../src/http-client/guarded-fetch.js';
import { Oauth2Client } from '../../src/oidc/oauth2-client.js';
import { OidcVerifier } from '../../src/oidc/verify-token.js';
import { verifyRegistration } from '../../src/stamps/webauthn.js';
import { ManualClock, SeededRandomness } from '../../src/testing/deterministic.js';
import { CapturedMessages } from '../../src/testing/captured-messages.js';
import { LocalKeyEncryption } from '../../src/vault/key-encryption.js';
import { webhookTargets } from '../../src/http-client/webhook-targets.js';

const nothing = () => undefined;
const noMetrics = {
  decided: nothing,
  spent: nothing,
  appended: nothing,
  appendFailed: nothing,
  conflict: nothing,
  folded: nothing,
};

/** The real ports of `prepare` over a store, a fresh one by default, with keys that follow from the seed. */
export async function preparePorts(
  store: EventStore = new InMemoryEventStore(),
  seed = 'prepare',
): Promise<PreparePorts & OpenKeyring & { readonly kept: CapturedMessages }> {
  const randomness = new SeededRandomness(seed);
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const keyEncryption = new LocalKeyEncryption([Buffer.alloc(32, 7)], randomness);
  const newId = () => uuidV7(clock, randomness);
  const kept = new CapturedMessages();
  const opened = await openKeyring({ store, keyEncryption, clock, randomness, newId });
  const fetch = guardedFetch({ allowPrivateNetwork: false });
  const issuer = new OidcIssuer(opened.keys, randomness, { told: () => 'https://countersign.example' });
  const loader = new OrganizationLoader(store, noMetrics);
  return {
    verifyRegistration,
    passkeyOrigins: () => Promise.resolve([]),
    ...opened,
    oidc: new OidcVerifier({ clock, fetch, own: issuer }),
    oauth2: new Oauth2Client({ oauth2Providers: {} }, clock, { fetch }, opened.oauthSecrets, issuer),
    webhookTargets: webhookTargets(guardedTarget({ allowPrivateNetwork: false })),
    invitations: new InvitationLinks(randomness, {
      invitations: () => 'https://countersign.example/invitations/accept',
    }),
    contactLimits: new ContactLimits(store, clock, randomness, new SendDigest(opened.keys)),
    delivery: new RetryingDelivery({ email: kept, sms: kept }, () => undefined),
    organizations: {
      authProxySettings: async (id) => (await loader.load(id)).organization.authProxy?.settings,
      view: async (id) => (await loader.load(id)).organization,
      // These tests show each token once.
      tokenUses: () => Promise.resolve(new Set()),
      homeOfContact: () => Promise.resolve(undefined),
    },
    kept,
  };
}
