import type { PrepareContext } from '../../../src/activities/define-activity.js';
import type { VerificationClaims } from '../../../src/ports/tokens.js';
import { emptyOrganization, evolve, type OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { id, usualLimits } from '../given.js';

type Fact<Type extends OrganizationEvent['type']> = Extract<OrganizationEvent, { type: Type }>;

/** When `given` decides. */
export const decidedAt = Date.UTC(2026, 0, 2);

/** The hash of the right code. */
export const rightHash = 'a1'.repeat(32);
export const wrongHash = `${'a1'.repeat(31)}a2`;

/** A code to Ann's e-mail address that lives when `given` decides; its number names its id. */
export function anOtp(number: number, more: Partial<Fact<'OtpSent'>['data']> = {}): Fact<'OtpSent'> {
  return {
    type: 'OtpSent',
    data: {
      otpId: id(number),
      purpose: 'auth',
      otpType: 'OTP_TYPE_EMAIL',
      contact: 'ann@example.com',
      codeHash: rightHash,
      expiresAt: decidedAt + 300_000,
      userIdentifier: 'ann@example.com',
      requestedBy: id(900),
      ...more,
    },
  };
}

export function feature(name: Fact<'OrganizationFeatureSet'>['data']['name']): Fact<'OrganizationFeatureSet'> {
  return { type: 'OrganizationFeatureSet', data: { name, value: '' } };
}

export const failedGuess = (number: number): Fact<'OtpGuessFailed'> => ({
  type: 'OtpGuessFailed',
  data: { otpId: id(number) },
});

export const ended = (
  number: number,
  reason: Fact<'OtpInvalidated'>['data']['reason'],
  more: { vaultId?: string } = {},
): Fact<'OtpInvalidated'> => ({ type: 'OtpInvalidated', data: { otpId: id(number), reason, ...more } });

/** What a verification token of the organization says of Ann's e-mail address. */
export function someClaims(more: Partial<VerificationClaims> = {}): VerificationClaims {
  return {
    tokenId: id(600),
    verificationType: 'OTP_TYPE_EMAIL',
    contact: 'ann@example.com',
    organizationId: id(700),
    logsInToIssuer: true,
    expiresAt: decidedAt + 3_600_000,
    ...more,
  };
}

/** What `prepare` is shown of an organization with this history; of a parent, only that it is there. */
export function contextOf(...history: readonly OrganizationEvent[]): PrepareContext {
  const organization = emptyOrganization();
  for (const event of history) evolve(organization, event, decidedAt);
  const { parentOrganizationId } = organization;
  const parent =
    parentOrganizationId === undefined ? undefined : { ...emptyOrganization(), organizationId: parentOrganizationId };
  let count = 0;
  return { organization, parent, submitterId: id(900), now: decidedAt, newId: () => id(++count), ...usualLimits };
}
