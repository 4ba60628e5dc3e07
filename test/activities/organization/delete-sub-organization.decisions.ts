import { deleteSubOrganization } from '../../../src/activities/organization/delete-sub-organization.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { vaultsEndedBy } from '../../../src/domain/organization/vaults.js';
import { anApiKey, anOrganization, aRootQuorum, aUser } from '../facts.js';
import { given, id } from '../given.js';
import { aWallet } from '../wallets/wallet-facts.js';

const ann = id(101);
const bob = id(102);
const history: readonly OrganizationEvent[] = [
  anOrganization({ parentOrganizationId: id(600) }),
  aUser(ann),
  aUser(bob, { userName: 'Bob' }),
  anApiKey(ann, 11),
  aRootQuorum(1, ann),
];
const byAnn = { submitterId: ann };
const deleted = (...vaultIds: string[]) =>
  [{ type: 'OrganizationDeleted', data: { organizationId: id(700), vaultIds } }] as const;
const result = { subOrganizationUuid: id(700) };

const aPrivateKey: OrganizationEvent = {
  type: 'PrivateKeyCreated',
  data: {
    privateKeyId: id(301),
    privateKeyName: 'cold',
    curve: 'CURVE_SECP256K1',
    publicKey: `02${'1'.repeat(64)}`,
    addresses: [],
    vaultId: id(1_301),
    imported: false,
    privateKeyTags: [],
  },
};
const walletExported: OrganizationEvent = { type: 'WalletExported', data: { walletId: id(201) } };
const keyExported: OrganizationEvent = { type: 'PrivateKeyExported', data: { privateKeyId: id(301) } };

/** Of each thing that keeps a secret one that is there, and one that is gone: its vault has been shredded before. */
const holders: readonly OrganizationEvent[] = [
  aWallet(201),
  aWallet(202),
  { type: 'WalletDeleted', data: { walletId: id(202), vaultId: id(1_202) } },
  aPrivateKey,
  {
    type: 'ImportStarted',
    data: { importId: id(401), userId: ann, kind: 'wallet', vaultId: id(1_401), targetPublicKey: '04' },
  },
  {
    type: 'Oauth2CredentialCreated',
    data: { oauth2CredentialId: id(501), provider: 'OAUTH2_PROVIDER_X', clientId: 'client', vaultId: id(1_501) },
  },
  {
    type: 'OtpSent',
    data: {
      otpId: id(601),
      purpose: 'verify',
      userIdentifier: 'ann@example.com',
      otpType: 'OTP_TYPE_EMAIL',
      contact: 'ann@example.com',
      codeHash: 'ab',
      expiresAt: Date.UTC(2026, 0, 3),
      vaultId: id(1_601),
      requestedBy: ann,
    },
  },
];

describe('delete a sub-organization', () => {
  it('ends it, and shreds all that it has in the vault', () => {
    given(...history, ...holders)
      .when(deleteSubOrganization, { deleteWithoutExport: true }, byAnn)
      .then(deleted(id(1_201), id(1_301), id(1_401), id(1_601), id(1_501)), result);
    expect(vaultsEndedBy(deleted(id(1_201), id(1_301))[0])).toEqual([id(1_201), id(1_301)]);
  });

  it.each([[{}], [{ deleteWithoutExport: false }], [{ deleteWithoutExport: true }]])(
    'deletes one that has nothing to lose: %j',
    (intent) =>
      given(...history)
        .when(deleteSubOrganization, intent, byAnn)
        .then(deleted(), result),
  );

  it('deletes one when everything was exported', () =>
    given(...history, aWallet(201), aPrivateKey, walletExported, keyExported)
      .when(deleteSubOrganization, {}, byAnn)
      .then(deleted(id(1_201), id(1_301)), result));

  it.each([
    ['wallet', id(201), keyExported, /export_wallet/],
    ['private key', id(301), walletExported, /export_private_key/],
  ])('is refused for a %s that nobody else has', (noun, lost, exported, remedy) => {
    const refused = given(...history, aWallet(201), aPrivateKey, exported).when(deleteSubOrganization, {}, byAnn);
    refused.thenRefused('INVALID_ARGUMENT', new RegExp(`^${noun} has not been exported: \`${lost}\``));
    refused.thenRefused('INVALID_ARGUMENT', remedy);
    refused.thenRefused('INVALID_ARGUMENT', /deleteWithoutExport: true/);
  });

  it('is refused to whoever is not in the root quorum, whatever policies allow', () =>
    given(...history)
      .when(deleteSubOrganization, {}, { submitterId: bob })
      .thenRefused('PERMISSION_DENIED', new RegExp(`user \`${bob}\` is not in the root quorum`)));

  it('is refused where there is no parent', () =>
    given(anOrganization(), aUser(ann), aRootQuorum(1, ann))
      .when(deleteSubOrganization, { deleteWithoutExport: true }, byAnn)
      .thenRefused(
        'FAILED_PRECONDITION',
        /is not a sub-organization: only an organization with a parent can be deleted/,
      ));
});
