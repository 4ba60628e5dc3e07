import type { credentialChanges } from '../../../src/domain/organization/credentials.js';
import { emptyOrganization, evolve, type OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { anApiKey, anIdentity, anOrganization, aPasskey, aUser } from '../../activities/facts.js';
import { id } from '../../activities/given.js';

const ann = id(101);
const history = [anOrganization(), aUser(ann), anApiKey(ann, 11), aPasskey(ann, 21), anIdentity(ann, 31)];

test.each<[string, OrganizationEvent & { readonly type: keyof typeof credentialChanges }]>([
  ['an API key more', anApiKey(ann, 12)],
  ['an API key less', { type: 'ApiKeyDeleted', data: { userId: ann, apiKeyId: id(11) } }],
  ['a passkey more', aPasskey(ann, 22)],
  ['a passkey less', { type: 'AuthenticatorDeleted', data: { userId: ann, authenticatorId: id(21) } }],
  ['an identity more', anIdentity(ann, 32)],
  ['an identity less', { type: 'OauthProviderDeleted', data: { userId: ann, providerId: id(31) } }],
])('%s changes the user at the time of the event, and leaves everything else as it is', (_what, event) => {
  const organization = emptyOrganization();
  for (const earlier of history) evolve(organization, earlier, 1_000);
  const { apiKeys, authenticators, oauthProviders, ...before } = organization.users.get(ann)!;
  const old = new Set<unknown>([...apiKeys, ...authenticators, ...oauthProviders]);
  evolve(organization, event, 2_000);
  const user = organization.users.get(ann)!;
  const rest = [...user.apiKeys, ...user.authenticators, ...user.oauthProviders];
  expect(user).toMatchObject({ ...before, updatedAt: 2_000 });
  expect(user.createdAt).toBe(1_000);
  const isDeleted = event.type.endsWith('Deleted');
  expect(rest.filter((one) => old.has(one))).toHaveLength(isDeleted ? 2 : 3);
  const added = { createdAt: 2_000, updatedAt: 2_000 };
  expect(rest.filter((one) => !old.has(one))).toMatchObject(isDeleted ? [] : [added]);
});
