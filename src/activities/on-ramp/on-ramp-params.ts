import { invalidField } from '../../domain/errors.js';
import { presentMembers } from '../../domain/organization/event.js';
import {
  hasProjects,
  onRampProviderNames,
  type OnRampProviderName,
} from '../../domain/organization/on-ramp-credentials.js';
import { OneOf, Text } from '../../wire/fields.js';
import type { PreparePorts } from '../../ports/prepare.js';

/** Longest sealed key that is decoded: base58 takes time quadratic in the length. */
const maxSealedLength = 8_192;

/** An account at a fiat on-ramp; an empty string means none. */
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

/** @throws {CoordinatorError} INVALID_ARGUMENT if something that the provider needs is missing */
export function checkOnRampParams(intent: OnRampCredentialParams): void {
  for (const name of ['projectId', 'publishableApiKey'] as const) {
    // These appear in lists and logs, and are sent in headers and URLs.
    if (/[\p{Cc}\p{Cs}]/u.test(intent[name] ?? '')) {
      throw invalidField(`parameters.${name}`, 'must not contain control characters');
    }
  }
  if (!hasProjects(intent.onrampProvider)) return;
  for (const name of ['projectId', 'encryptedPrivateApiKey'] as const) {
    if (!intent[name]) throw invalidField(`parameters.${name}`, `is required for ${intent.onrampProvider}`);
  }
}

/** Seals the keys of an account in a new vault, and returns the vault's id. */
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

/** What events record of an account, as requested. */
export function onRampFacts({ onrampProvider, projectId, publishableApiKey }: OnRampCredentialParams) {
  return { onrampProvider, publishableApiKey, ...presentMembers({ projectId: projectId || undefined }) };
}
