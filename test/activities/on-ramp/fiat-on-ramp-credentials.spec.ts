import { createFiatOnRampCredential } from '../../../src/activities/on-ramp/create-fiat-on-ramp-credential.js';
import { deleteFiatOnRampCredential } from '../../../src/activities/on-ramp/delete-fiat-on-ramp-credential.js';
import { updateFiatOnRampCredential } from '../../../src/activities/on-ramp/update-fiat-on-ramp-credential.js';
import { emptyOrganization, evolve } from '../../../src/domain/organization/organization.js';
import { vaultsEndedBy, vaultsOf } from '../../../src/domain/organization/vaults.js';
import { anOrganization } from '../facts.js';
import { given, id } from '../given.js';

const alpha = {
  onrampProvider: 'FIAT_ON_RAMP_PROVIDER_ALPHA',
  projectId: 'project',
  publishableApiKey: 'pk',
  encryptedSecretApiKey: 'sealed',
  encryptedPrivateApiKey: 'sealed too',
} as const;
const beta = {
  onrampProvider: 'FIAT_ON_RAMP_PROVIDER_BETA',
  publishableApiKey: 'pk',
  encryptedSecretApiKey: 'sealed',
} as const;

const known = {
  type: 'FiatOnRampCredentialCreated',
  data: {
    fiatOnRampCredentialId: id(401),
    onrampProvider: 'FIAT_ON_RAMP_PROVIDER_ALPHA',
    projectId: 'project',
    publishableApiKey: 'pk',
    sandboxMode: true,
    vaultId: 'v1',
  },
} as const;

describe('create_fiat_on_ramp_credential', () => {
  it.each(['FIAT_ON_RAMP_PROVIDER_ALPHA', 'FIAT_ON_RAMP_PROVIDER_COINBASE'] as const)(
    'keeps an account at %s under the name that was sent, and nothing of what was sealed',
    (onrampProvider) =>
      given(anOrganization())
        .when(createFiatOnRampCredential, { ...alpha, onrampProvider, sandboxMode: true }, { prepared: 'v1' })
        .then([{ ...known, data: { ...known.data, fiatOnRampCredentialId: id(1), onrampProvider } }], {
          fiatOnRampCredentialId: id(1),
        }),
  );

  it.each(['FIAT_ON_RAMP_PROVIDER_BETA', 'FIAT_ON_RAMP_PROVIDER_MOONPAY'] as const)(
    'needs no project and no private key for %s; an empty text is none, and it is no sandbox unless said',
    (onrampProvider) =>
      given(anOrganization())
        .when(
          createFiatOnRampCredential,
          { ...beta, onrampProvider, projectId: '', encryptedPrivateApiKey: '' },
          { prepared: 'v2' },
        )
        .then(
          [
            {
              type: 'FiatOnRampCredentialCreated',
              data: {
                fiatOnRampCredentialId: id(1),
                onrampProvider,
                publishableApiKey: 'pk',
                sandboxMode: false,
                vaultId: 'v2',
              },
            },
          ],
          { fiatOnRampCredentialId: id(1) },
        ),
  );

  it.each([
    ['a provider nobody knows', { onrampProvider: 'FIAT_ON_RAMP_PROVIDER_GAMMA' }, /onrampProvider: must be one of/],
    ['no project', { projectId: undefined }, /parameters\.projectId: is required for FIAT_ON_RAMP_PROVIDER_ALPHA/],
    ['an empty project', { projectId: '' }, /parameters\.projectId: is required for FIAT_ON_RAMP_PROVIDER_ALPHA/],
    [
      'no private key, by the name of the clients',
      { onrampProvider: 'FIAT_ON_RAMP_PROVIDER_COINBASE', encryptedPrivateApiKey: undefined },
      /parameters\.encryptedPrivateApiKey: is required for FIAT_ON_RAMP_PROVIDER_COINBASE/,
    ],
    ['no publishable key', { publishableApiKey: '' }, /parameters\.publishableApiKey/],
    ['a publishable key that would break a header', { publishableApiKey: 'a\r\nb' }, /control characters/],
    ['no secret key', { encryptedSecretApiKey: '' }, /parameters\.encryptedSecretApiKey/],
    ['a secret key without end', { encryptedSecretApiKey: 'x'.repeat(8_193) }, /parameters\.encryptedSecretApiKey/],
  ])('refuses %s', (_what, more, message) =>
    given(anOrganization())
      .when(createFiatOnRampCredential, { ...alpha, ...more }, { prepared: 'v1' })
      .thenRefused('INVALID_ARGUMENT', message),
  );
});

describe('update_fiat_on_ramp_credential', () => {
  const event = {
    type: 'FiatOnRampCredentialUpdated',
    data: {
      fiatOnRampCredentialId: id(401),
      onrampProvider: 'FIAT_ON_RAMP_PROVIDER_BETA',
      publishableApiKey: 'pk',
      vaultId: 'v9',
      replacedVaultId: 'v1',
    },
  } as const;

  it('replaces everything except the mode, and ends the vault of the old keys', () => {
    given(anOrganization(), known)
      .when(updateFiatOnRampCredential, { ...beta, fiatOnrampCredentialId: id(401) }, { prepared: 'v9' })
      .then([event], { fiatOnRampCredentialId: id(401) });
    expect(vaultsEndedBy(event)).toEqual(['v1']);
    const organization = emptyOrganization();
    for (const fact of [anOrganization(), known, event]) evolve(organization, fact, 5);
    expect(vaultsOf(organization)).toEqual(['v9']);
    const after = organization.onRampCredentials.get(id(401));
    expect([after?.sandboxMode, after?.projectId]).toEqual([true, undefined]);
  });

  it('refuses missing provider fields, and an unknown account', () => {
    given(anOrganization(), known)
      .when(
        updateFiatOnRampCredential,
        { ...alpha, projectId: '', fiatOnrampCredentialId: id(401) },
        { prepared: 'v9' },
      )
      .thenRefused('INVALID_ARGUMENT', /projectId: is required for FIAT_ON_RAMP_PROVIDER_ALPHA/);
    given(anOrganization())
      .when(updateFiatOnRampCredential, { ...beta, fiatOnrampCredentialId: id(401) }, { prepared: 'v9' })
      .thenRefused('NOT_FOUND', /no fiat on-ramp credential/);
  });
});

describe('delete_fiat_on_ramp_credential', () => {
  it('deletes an account and ends its vault, once', () => {
    const event = {
      type: 'FiatOnRampCredentialDeleted',
      data: { fiatOnRampCredentialId: id(401), vaultId: 'v1' },
    } as const;
    given(anOrganization(), known)
      .when(deleteFiatOnRampCredential, { fiatOnrampCredentialId: id(401) })
      .then([event], { fiatOnRampCredentialId: id(401) });
    expect(vaultsEndedBy(event)).toEqual(['v1']);
    given(anOrganization(), known, event)
      .when(deleteFiatOnRampCredential, { fiatOnrampCredentialId: id(401) })
      .thenRefused('NOT_FOUND', /no fiat on-ramp credential/);
  });
});
