import { apiKeyPairFromPrivate, type ApiKeyPair } from 'countersign/internal';
import { none } from './organization-parameters.js';
import { NotExecuted } from './trial-facts.js';
import { newEmail, newKey } from './trial-organization.js';
import type { Makers, Making } from './trial-parameters.js';

const appName = 'Example';
const feature = 'FEATURE_NAME_EMAIL_AUTH';

/** What reaches people by mail, changes how they are reached, or how they log in. What is sent stays in the coordinator. */
export const contactParameters = {
  async ACTIVITY_TYPE_INIT_OTP_V3(making) {
    const { email: contact } = await reached(making);
    return { parameters: { otpType: 'OTP_TYPE_EMAIL', contact, appName } };
  },
  async ACTIVITY_TYPE_INIT_OTP_AUTH_V3(making) {
    const { email: contact } = await reached(making);
    const length = making.givenAmount('otp_length');
    if (length !== undefined && (length < 6n || length > 9n)) throw new NotExecuted(`no code has ${length} characters`);
    const input = length === undefined ? {} : { otpLength: Number(length) };
    return { parameters: { otpType: 'OTP_TYPE_EMAIL', contact, appName, ...input } };
  },
  async ACTIVITY_TYPE_EMAIL_AUTH_V3(making) {
    const { email } = await reached(making);
    return { parameters: { email, targetPublicKey: newKey().publicKey, emailCustomization: { appName } } };
  },
  async ACTIVITY_TYPE_UPDATE_USER_EMAIL({ user }) {
    return { parameters: { userId: user(), userEmail: 'changed@example.com' } };
  },
  async ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER({ user }) {
    return { parameters: { userId: user(), userPhoneNumber: '+13214567890' } };
  },
  async ACTIVITY_TYPE_CREATE_INVITATIONS(making) {
    return { parameters: { invitations: [await invitation(making)] } };
  },
  async ACTIVITY_TYPE_DELETE_INVITATION(making) {
    const { invitationIds } = await making.organization.founder.perform('ACTIVITY_TYPE_CREATE_INVITATIONS', {
      invitations: [await invitation(making)],
    });
    return { parameters: { invitationId: invitationIds[0]! } };
  },
  async ACTIVITY_TYPE_ACCEPT_INVITATION(making) {
    const { organization } = making;
    const { userName, email, tags } = organization.guest;
    const guest = { receiverUserName: userName, receiverUserEmail: email, receiverUserTags: [...tags] };
    const { invitationIds } = await organization.founder.perform('ACTIVITY_TYPE_CREATE_INVITATIONS', {
      invitations: [{ ...(await invitation(making)), ...guest }],
    });
    const [invitationId] = invitationIds as [string];
    organization.invited(invitationId, keyIn(await organization.mailTo(email)));
    const { publicKey, curve: curveType } = newKey();
    return { parameters: { invitationId, apiKeys: [{ apiKeyName: 'key', publicKey, curveType }] } };
  },
  async ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE() {
    return { parameters: { name: feature, value: '' } };
  },
  async ACTIVITY_TYPE_REMOVE_ORGANIZATION_FEATURE() {
    return { parameters: { name: feature } };
  },
} satisfies Makers;

/** Somebody with an e-mail address of their own: a sub-organization reaches only its users. */
export async function reached({ organization: { founder } }: Making) {
  const email = newEmail();
  const { userIds } = await founder.perform('ACTIVITY_TYPE_CREATE_USERS_V4', {
    users: [{ userName: 'Reached', userEmail: email, ...none }],
  });
  return { userId: userIds[0]!, email };
}

/** The key in the link of an invitation. */
function keyIn(mail: string): ApiKeyPair {
  const [link] = /^\S+#\S+$/m.exec(mail) ?? [''];
  return apiKeyPairFromPrivate(new URLSearchParams(link.slice(link.indexOf('#') + 1)).get('privateKey') ?? '');
}

async function invitation(making: Making) {
  await making.organization.letInvite();
  const { userId: senderUserId } = await reached(making);
  return {
    receiverUserName: 'Invited',
    receiverUserEmail: 'invited@example.com',
    receiverUserTags: [],
    accessType: 'ACCESS_TYPE_ALL' as const,
    senderUserId,
  };
}
