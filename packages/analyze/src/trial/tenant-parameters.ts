import { isEmail, isPhone } from 'countersign/internal';
import { NotExecuted } from './trial-facts.js';
import { newKey } from './trial-organization.js';
import type { Makers, Making } from './trial-parameters.js';

/** What only an organization without a parent does: it has sub-organizations, and an auth proxy. */
export const parentParameters = {
  async ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8() {
    return { parameters: subOrganization({}) };
  },
  async ACTIVITY_TYPE_RELEASE_CONTACT({ organization: { founder }, given: input, givenFlag }) {
    const contact = input('contact') ?? 'released@example.com';
    if (!isEmail(contact) && !isPhone(contact)) throw new NotExecuted(`nobody is reached by \`${contact}\``);
    const { subOrganizationId } = await founder.perform(
      'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8',
      subOrganization(isEmail(contact) ? { userEmail: contact } : { userPhoneNumber: contact }),
    );
    const leaveUnreachable = givenFlag('leave_unreachable') ?? false;
    return { parameters: { contact, leaveUnreachable }, organizationId: subOrganizationId };
  },
  async ACTIVITY_TYPE_ENABLE_AUTH_PROXY() {
    return { parameters: {} };
  },
  async ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG(making) {
    await enableProxy(making);
    return { parameters: { otpLength: 8 } };
  },
  async ACTIVITY_TYPE_DISABLE_AUTH_PROXY(making) {
    await enableProxy(making);
    return { parameters: {} };
  },
} satisfies Makers;

/** What only a sub-organization does. */
export const childParameters = {
  async ACTIVITY_TYPE_DELETE_SUB_ORGANIZATION() {
    return { parameters: { deleteWithoutExport: true } };
  },
} satisfies Makers;

function subOrganization(contact: { readonly userEmail?: string; readonly userPhoneNumber?: string }) {
  const { publicKey, curve: curveType } = newKey();
  const apiKeys = [{ apiKeyName: 'key', publicKey, curveType }];
  const rootUser = { userName: 'Made by an example', ...contact, apiKeys, authenticators: [], oauthProviders: [] };
  return { subOrganizationName: 'Made by an example', rootQuorumThreshold: 1, rootUsers: [rootUser] };
}

async function enableProxy({ organization: { founder } }: Making): Promise<void> {
  await founder.perform('ACTIVITY_TYPE_ENABLE_AUTH_PROXY', {});
}
