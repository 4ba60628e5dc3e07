import { invalidField } from '../../domain/errors.js';
import { presentMembers } from '../../domain/organization/event.js';
import {
  hasProjects,
  onRampProviderNames,
  type OnRampProviderName,
} from '../../domain/organization/on-ramp-credentials.js';
import { OneOf, Text } from '../../wire/fields.js';
import type { PreparePorts } from '../../ports/prepare.js';

/** Longest sealed key that is opened: base58 takes time that grows with the square of its length. */
const maxSealedLength = 8_192;

/** An account at a fiat on-ramp; an empty text is the same as none. */
export class OnRampCredentialParams {
  @OneOf(onRampProviderNames, { about: 'The clients write ALPHA for COINBASE and BETA for MOONPAY.' })
  onrampProvider!: OnRampProviderName;

  @Text({ optional: true, max: 255, about: 'The project at the provider; required for ALPHA.' })
  projectId?: string;

  @Text({ min: 1, max: 1_024, about: 'The publishable API key.' })
  publishableApiKey!: string;

  @Text({
    min: 1,
    max: maxSealedLength,
    about: 'The secret API key, sealed to `onRampEncryption` from /public/v1/discovery/keys.',
  })
  encryptedSecretApiKey!: string;

  @Text({
    optional: true,
    max: maxSealedLength,
    about: 'The private API key, sealed the same way; required for ALPHA.',
  })
  encryptedPrivateApiKey?: string;
}

/** @throws {CoordinatorError} INVALID_ARGUMENT when something is missing that the provider needs */
export function checkOnRampParams(intent: OnRampCredentialParams): void {
  for (const name of ['projectId', 'publishableApiKey'] as const) {
    // They are shown in lists and logs, and sent in headers and addresses.
    if (/[\p{Cc}\p{Cs}]/u.test(intent[name] ?? '')) {
      throw invalidField(`parameters.${name}`, 'must not contain control characters');
    }
  }
  if (!hasProjects(intent.onrampProvider)) return;
  for (const name of ['projectId', 'encryptedPrivateApiKey'] as const) {
    if (!intent[name]) throw invalidField(`parameters.${name}`, `is required for ${intent.onrampProvider}`);
  }
}

/** Seals the keys of an account for us, in a new vault, whose id it gives. */
export function keepOnRampKeys(
  { encryptedSecretApiKey, encryptedPrivateApiKey }: OnRampCredentialParams,
  { onRampSecrets }: PreparePorts,
  organizationId: string,
): Promise<string> {
  return onRampSecrets.keep(organizationId, {
    encryptedSecretApiKey,
    ...(encryptedPrivateApiKey ? { encryptedPrivateApiKey } : {}),
  });
}

/** What events say of an account, as it was asked for. */
export function onRampFacts({ onrampProvider, projectId, publishableApiKey }: OnRampCredentialParams) {
  return { onrampProvider, publishableApiKey, ...presentMembers({ projectId: projectId || undefined }) };
}
