import { isDeepStrictEqual } from 'node:util';
import { activityVersion, newestIntent, type Registry } from '../../decide/registry.js';
import type { DenialEvent } from '../../domain/activity/denial.js';
import type { ActivityEvent } from '../../domain/activity/events.js';
import type { BootEvent, BootFacts } from '../../domain/boots.js';
import {
  organizationStream,
  type OrganizationEvent,
  type OrganizationView,
} from '../../domain/organization/organization.js';
import type { EventReader, RecordedEvent } from '../../ledger/event-store.js';
import { isSignedByBoot, verifyBootProof } from '../../proofs/verify.js';
import { claimedRegistration } from '../../stamps/webauthn.js';
import type { Deciding } from './deciding-events.js';
import { messageOf } from './finding.js';

/**
 * What is signed, and no decision computes: passkeys in their registrations, app proofs and boots by their keys, denied requests by
 * their users. What is wrong is returned as a sentence.
 */

type Passkey = Extract<OrganizationEvent, { type: 'AuthenticatorCreated' }>['data'];
type Attestation = Parameters<typeof claimedRegistration>[0];

/** The passkeys that a signed request registers, in its order, as they come out of its decision. */
export class SignedPasskeys {
  private attestations: Attestation[] | undefined;

  /** @param organization as it was before the decision */
  constructor(
    private readonly registry: Registry,
    private readonly deciding: Deciding,
    private readonly organization: OrganizationView,
  ) {}

  /** Whether the next ones are recorded as their registrations have them. */
  async problemWith(event: OrganizationEvent): Promise<string | undefined> {
    for (const { userId: _user, authenticatorId: _id, authenticatorName: _name, ...passkey } of passkeysIn(event)) {
      this.attestations ??= attestationsIn(this.intent());
      const attestation = this.attestations.shift();
      const isSame = attestation && isDeepStrictEqual(await claimedRegistration(attestation), passkey);
      if (!isSame) return `passkey \`${passkey.credentialId}\` is not the one that the signed request registers`;
    }
    return undefined;
  }

  private intent(): object {
    const { type: how, data } = this.deciding;
    const { type, intent } =
      how === 'ActivitySubmitted' ? data : this.organization.openActivities.get(data.activityId)!;
    return newestIntent(activityVersion(this.registry, type), intent);
  }
}

function passkeysIn(event: OrganizationEvent): Passkey[] {
  if (event.type === 'SubOrganizationCreated') return event.data.initialEvents.flatMap(passkeysIn);
  return event.type === 'AuthenticatorCreated' ? [event.data] : [];
}

function attestationsIn(value: unknown): Attestation[] {
  if (typeof value !== 'object' || value === null) return [];
  if ('attestationObject' in value) return [value as Attestation];
  return Object.values(value).flatMap(attestationsIn);
}

type Issued = Extract<ActivityEvent, { type: 'AppProofsIssued' }>['data'];

/** The boots of an installation, and what their keys have signed. */
export class SignedBoots {
  /** The certificate that the installation has issued, DER. */
  private root: Uint8Array | undefined;
  private readonly keys = new Set<string>();

  /** Whether a boot matches its attestation and its manifest. */
  async problemWith({ type, data }: Pick<RecordedEvent, 'type' | 'data'>): Promise<string | undefined> {
    const event = { type, data } as BootEvent;
    switch (event.type) {
      case 'AttestationRootIssued':
        if (this.root) return 'a root certificate is recorded before it';
        this.root = Buffer.from(event.data.certificate, 'base64');
        return undefined;
      case 'CoordinatorBooted':
        this.keys.add(event.data.ephemeralPublicKey);
        if (!this.root) return 'no root certificate is recorded before it';
        return problemWithBoot(event.data, this.root);
      case 'HistoryRestored':
        return undefined;
      default:
        return `an event \`${type}\` is recorded among boots`;
    }
  }

  /** Whether the key that app proofs name has signed them, and is that of a boot. */
  problemWithProofs({ publicKey, proofs }: Issued): string | undefined {
    // A part of a store may be verified without its boots.
    if (this.keys.size > 0 && !this.keys.has(publicKey)) return 'no boot has recorded the key of its app proofs';
    const isSigned = proofs.every(({ proofPayload, signature }) => isSignedByBoot(publicKey, proofPayload, signature));
    return isSigned ? undefined : 'the key of a boot has not signed its app proofs';
  }
}

async function problemWithBoot(boot: BootFacts, root: Uint8Array): Promise<string | undefined> {
  const proof = {
    ephemeralPublicKeyHex: boot.ephemeralPublicKey,
    cloudAttestationDocB64: boot.attestationDocument,
    qosManifestB64: boot.manifest,
    qosManifestEnvelopeB64: boot.manifestEnvelope,
    qosManifestVersion: boot.manifestVersion,
  };
  try {
    const { manifest } = await verifyBootProof(proof, { root });
    const { deploymentLabel, app, owner } = boot;
    const name = manifest?.['app'];
    const isSame = deploymentLabel === `v${String(manifest?.['release'])}` && app === name && owner === name;
    return isSame ? undefined : 'it is not as its manifest says';
  } catch (error) {
    return `its boot proof does not verify: ${messageOf(error)}`;
  }
}

type Denied = Pick<DenialEvent['data'], 'userId' | 'publicKey' | 'credentialId'>;

/**
 * Whether the key that stamped a denied request is the user's, or was. Read from their streams only if it is not any more: it may
 * have been deleted before the denial was recorded.
 */
export async function isKeyOf(
  { userId, publicKey, credentialId }: Denied,
  organizations: readonly OrganizationView[],
  store: EventReader,
): Promise<boolean> {
  const isNow = organizations.some(
    ({ apiKeyOwners, authenticatorOwners }) =>
      apiKeyOwners.get(publicKey ?? '') === userId || authenticatorOwners.get(credentialId ?? '') === userId,
  );
  if (isNow) return true;
  for (const { organizationId } of organizations) {
    for await (const { data } of store.read(organizationStream(organizationId))) {
      const recorded = data as Partial<Denied>;
      const isKey = publicKey === undefined ? recorded.credentialId === credentialId : recorded.publicKey === publicKey;
      if (isKey && recorded.userId === userId) return true;
    }
  }
  return false;
}
