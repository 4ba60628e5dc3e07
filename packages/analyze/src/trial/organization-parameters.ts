import { Passkey } from './passkey.js';
import { newKey } from './trial-organization.js';
import type { Makers, Making } from './trial-parameters.js';

const policy = {
  policyName: 'Made by an example',
  effect: 'EFFECT_DENY',
  condition: "activity.kind == 'CREATE_FIAT_ON_RAMP_CREDENTIAL'",
  notes: '',
} as const;
/** What a new user has none of. */
export const none = { apiKeys: [], authenticators: [], oauthProviders: [], userTags: [] };

/** What makes, changes and deletes users, tags, credentials and policies, and changes who decides. */
export const organizationParameters = {
  async ACTIVITY_TYPE_CREATE_USER_TAG() {
    return { parameters: { userTagName: 'Made by an example', userIds: [] } };
  },
  async ACTIVITY_TYPE_UPDATE_USER_TAG(making) {
    return { parameters: { userTagId: await tagIn(making), newUserTagName: 'Renamed by an example' } };
  },
  async ACTIVITY_TYPE_DELETE_USER_TAGS(making) {
    return { parameters: { userTagIds: [await tagIn(making)] } };
  },
  async ACTIVITY_TYPE_CREATE_USERS_V4() {
    return { parameters: { users: [{ userName: 'Made by an example', ...none }] } };
  },
  async ACTIVITY_TYPE_CREATE_API_ONLY_USERS() {
    const apiKeys = [{ apiKeyName: 'key', publicKey: newKey().publicKey }];
    return { parameters: { apiOnlyUsers: [{ userName: 'Made by an example', userTags: [], apiKeys }] } };
  },
  async ACTIVITY_TYPE_UPDATE_USER({ user }) {
    return { parameters: { userId: user(), userName: 'Renamed by an example' } };
  },
  async ACTIVITY_TYPE_UPDATE_USER_NAME({ user }) {
    return { parameters: { userId: user(), userName: 'Renamed by an example' } };
  },
  async ACTIVITY_TYPE_DELETE_USERS({ user }) {
    return { parameters: { userIds: [user()] } };
  },
  async ACTIVITY_TYPE_CREATE_API_KEYS_V2({ user }) {
    return { parameters: { userId: user(), apiKeys: [anotherKey()] } };
  },
  async ACTIVITY_TYPE_DELETE_API_KEYS({ user, organization: { founder } }) {
    const made = { userId: user(), apiKeys: [anotherKey()] };
    const { apiKeyIds } = await founder.perform('ACTIVITY_TYPE_CREATE_API_KEYS_V2', made);
    return { parameters: { userId: made.userId, apiKeyIds } };
  },
  async ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2({ user }) {
    return { parameters: { userId: user(), authenticators: [new Passkey().registration('another')] } };
  },
  async ACTIVITY_TYPE_DELETE_AUTHENTICATORS({ user, organization: { founder } }) {
    const made = { userId: user(), authenticators: [new Passkey().registration('another')] };
    const { authenticatorIds } = await founder.perform('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', made);
    return { parameters: { userId: made.userId, authenticatorIds } };
  },
  async ACTIVITY_TYPE_CREATE_POLICY_V3() {
    return { parameters: policy };
  },
  async ACTIVITY_TYPE_CREATE_POLICIES() {
    return { parameters: { policies: [policy] } };
  },
  async ACTIVITY_TYPE_UPDATE_POLICY_V2(making) {
    return { parameters: { policyId: await policyIn(making), policyNotes: 'changed by an example' } };
  },
  async ACTIVITY_TYPE_DELETE_POLICY(making) {
    return { parameters: { policyId: await policyIn(making) } };
  },
  async ACTIVITY_TYPE_DELETE_POLICIES(making) {
    return { parameters: { policyIds: [await policyIn(making)] } };
  },
  async ACTIVITY_TYPE_UPDATE_ROOT_QUORUM({ organization: { founder } }) {
    return { parameters: { threshold: 1, userIds: [(await founder.query('whoami')).userId] } };
  },
  async ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME() {
    return { parameters: { organizationName: 'Renamed by an example' } };
  },
} satisfies Makers;

const anotherKey = () => {
  const { publicKey, curve: curveType } = newKey();
  return { apiKeyName: 'another', publicKey, curveType };
};

async function tagIn({ organization: { founder } }: Making): Promise<string> {
  return (await founder.perform('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'Spare', userIds: [] })).userTagId;
}

async function policyIn({ organization: { founder } }: Making): Promise<string> {
  return (await founder.perform('ACTIVITY_TYPE_CREATE_POLICY_V3', policy)).policyId;
}
