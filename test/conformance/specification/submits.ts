import {
  flag,
  label,
  list,
  number,
  object,
  oneOf,
  optional,
  required,
  shownAsOptional,
  shownAsRequired,
  text,
  uuid,
  type SubmitEndpoint,
} from './shape.js';

/** 400kb, read as 400,000 characters as the client protocol does (`tk_max_length=400000`). */
const maxInterface = 400_000;

const seconds = text({ form: 'decimal' });
const hex = text({ form: 'hex' });
const address = text({ form: 'email' });
const expression = text({ form: 'policy expression' });
const effect = oneOf(['EFFECT_ALLOW', 'EFFECT_DENY']);

/** Section 4.3. */
export const submits: readonly SubmitEndpoint[] = [
  {
    section: '4.3.1',
    path: 'oauth',
    type: 'ACTIVITY_TYPE_OAUTH',
    intent: 'oauthIntent',
    result: 'oauthResult',
    stampOnly: false,
    parameters: [
      shownAsRequired('oidcToken', text()),
      shownAsRequired('targetPublicKey', hex),
      optional('apiKeyName', label),
      optional('expirationSeconds', seconds),
      shownAsOptional('invalidateExisting', flag),
    ],
    results: [
      shownAsRequired('userId', uuid),
      shownAsRequired('apiKeyId', uuid),
      shownAsRequired('credentialBundle', text()),
    ],
  },
  {
    section: '4.3.2',
    path: 'otp_auth',
    type: 'ACTIVITY_TYPE_OTP_AUTH',
    intent: 'otpAuthIntent',
    result: 'otpAuthResult',
    stampOnly: false,
    parameters: [
      required('otpId', uuid, { names: 'otp' }),
      required('otpCode', text()),
      required('targetPublicKey', text({ form: 'hex', emptyAllowed: 'client protocol' })),
      optional('apiKeyName', label),
      optional('expirationSeconds', seconds),
      optional('invalidateExisting', flag),
    ],
    results: [required('userId', uuid), optional('apiKeyId', uuid), optional('credentialBundle', text())],
  },
  {
    section: '4.3.3',
    path: 'init_otp_auth',
    type: 'ACTIVITY_TYPE_INIT_OTP_AUTH_V3',
    intent: 'initOtpAuthIntentV3',
    result: 'initOtpAuthResultV2',
    stampOnly: true,
    parameters: [
      shownAsRequired('otpType', oneOf([], ['OTP_TYPE_SMS', 'OTP_TYPE_EMAIL'])),
      shownAsRequired('contact', address),
      shownAsOptional('otpLength', number({ least: 6, most: 9, source: 'client protocol' })),
      shownAsRequired('appName', label),
      shownAsOptional(
        'emailCustomization',
        object(
          shownAsOptional('logoUrl', text()),
          shownAsOptional('magicLinkTemplate', text()),
          shownAsOptional('templateVariables', text({ form: 'JSON' })),
          shownAsOptional('templateId', text()),
        ),
      ),
      shownAsOptional('smsCustomization', object(shownAsOptional('template', text()))),
      shownAsOptional('userIdentifier', text()),
      shownAsOptional('sendFromEmailAddress', address),
      shownAsOptional('alphanumeric', flag),
      shownAsOptional('sendFromEmailSenderName', text()),
      shownAsOptional(
        'expirationSeconds',
        text({ form: 'decimal', limit: { least: 1, most: 600, source: 'client protocol' } }),
      ),
      shownAsOptional('replyToEmailAddress', address),
    ],
    results: [shownAsRequired('otpId', uuid)],
  },
  {
    section: '4.3.4',
    path: 'update_policy',
    type: 'ACTIVITY_TYPE_UPDATE_POLICY_V2',
    intent: 'updatePolicyIntentV2',
    result: 'updatePolicyResultV2',
    stampOnly: false,
    parameters: [
      required('policyId', uuid, { names: 'policy' }),
      optional('policyName', label),
      optional('policyEffect', effect),
      optional('policyCondition', expression),
      optional('policyConsensus', expression),
      optional('policyNotes', text()),
    ],
    results: [shownAsRequired('policyId', uuid)],
  },
  {
    section: '4.3.5',
    path: 'create_policies',
    type: 'ACTIVITY_TYPE_CREATE_POLICIES',
    intent: 'createPoliciesIntent',
    result: 'createPoliciesResult',
    stampOnly: false,
    parameters: [
      shownAsRequired(
        'policies',
        list(
          object(
            shownAsRequired('policyName', label),
            shownAsRequired('effect', effect),
            shownAsOptional('condition', expression),
            shownAsOptional('consensus', expression),
            // Required by the public description, and to be accepted missing.
            shownAsOptional('notes', text()),
          ),
        ),
      ),
    ],
    results: [shownAsRequired('policyIds', list(uuid))],
  },
  {
    section: '4.3.6',
    path: 'delete_policy',
    type: 'ACTIVITY_TYPE_DELETE_POLICY',
    intent: 'deletePolicyIntent',
    result: 'deletePolicyResult',
    stampOnly: false,
    parameters: [shownAsRequired('policyId', uuid, { names: 'policy' })],
    results: [shownAsRequired('policyId', uuid)],
  },
  {
    section: '4.3.7',
    path: 'create_smart_contract_interface',
    type: 'ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE',
    intent: 'createSmartContractInterfaceIntent',
    result: 'createSmartContractInterfaceResult',
    stampOnly: false,
    parameters: [
      required('smartContractAddress', text()),
      required(
        'smartContractInterface',
        text({ form: 'JSON', limit: { most: maxInterface, source: 'specification' } }),
      ),
      required('type', oneOf(['SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM', 'SMART_CONTRACT_INTERFACE_TYPE_SOLANA'])),
      required('label', label),
      optional('notes', text()),
    ],
    results: [shownAsRequired('smartContractInterfaceId', uuid)],
  },
  {
    section: '4.3.8',
    path: 'delete_webhook_endpoint',
    type: 'ACTIVITY_TYPE_DELETE_WEBHOOK_ENDPOINT',
    intent: 'deleteWebhookEndpointIntent',
    result: 'deleteWebhookEndpointResult',
    stampOnly: false,
    parameters: [required('endpointId', uuid, { names: 'webhook endpoint' })],
    results: [shownAsRequired('endpointId', uuid)],
  },
  {
    section: '4.3.9',
    path: 'create_fiat_on_ramp_credential',
    type: 'ACTIVITY_TYPE_CREATE_FIAT_ON_RAMP_CREDENTIAL',
    intent: 'createFiatOnRampCredentialIntent',
    result: 'createFiatOnRampCredentialResult',
    stampOnly: false,
    parameters: [
      required(
        'onrampProvider',
        oneOf(
          ['FIAT_ON_RAMP_PROVIDER_ALPHA', 'FIAT_ON_RAMP_PROVIDER_BETA'],
          // The names that published clients send.
          ['FIAT_ON_RAMP_PROVIDER_COINBASE', 'FIAT_ON_RAMP_PROVIDER_MOONPAY'],
        ),
      ),
      optional('projectId', text()),
      required('publishableApiKey', text()),
      required('encryptedSecretApiKey', text()),
      optional('encryptedPrivateApiKey', text()),
      optional('sandboxMode', flag),
    ],
    results: [shownAsRequired('fiatOnRampCredentialId', uuid)],
  },
  {
    section: '4.3.10',
    path: 'delete_wallet_accounts',
    type: 'ACTIVITY_TYPE_DELETE_WALLET_ACCOUNTS',
    intent: 'deleteWalletAccountsIntent',
    result: 'deleteWalletAccountsResult',
    stampOnly: false,
    parameters: [
      required('walletAccountIds', list(uuid), { names: 'wallet account' }),
      optional('deleteWithoutExport', flag),
    ],
    results: [shownAsRequired('walletAccountIds', list(uuid))],
  },
  {
    section: '4.3.11',
    path: 'delete_user_tags',
    type: 'ACTIVITY_TYPE_DELETE_USER_TAGS',
    intent: 'deleteUserTagsIntent',
    result: 'deleteUserTagsResult',
    stampOnly: false,
    parameters: [required('userTagIds', list(uuid), { names: 'user tag' })],
    results: [shownAsRequired('userTagIds', list(uuid)), shownAsRequired('userIds', list(uuid))],
  },
  {
    section: '4.3.12',
    path: 'update_wallet',
    type: 'ACTIVITY_TYPE_UPDATE_WALLET',
    intent: 'updateWalletIntent',
    result: 'updateWalletResult',
    stampOnly: false,
    parameters: [required('walletId', uuid, { names: 'wallet' }), optional('walletName', label)],
    results: [shownAsRequired('walletId', uuid)],
  },
  {
    section: '4.3.13',
    path: 'sign_raw_payloads',
    type: 'ACTIVITY_TYPE_SIGN_RAW_PAYLOADS',
    intent: 'signRawPayloadsIntent',
    result: 'signRawPayloadsResult',
    stampOnly: false,
    parameters: [
      shownAsRequired('signWith', text(), { names: 'wallet account address' }),
      shownAsRequired('payloads', list(text())),
      shownAsRequired(
        'encoding',
        oneOf([
          'PAYLOAD_ENCODING_HEXADECIMAL',
          'PAYLOAD_ENCODING_TEXT_UTF8',
          'PAYLOAD_ENCODING_EIP712',
          'PAYLOAD_ENCODING_EIP7702_AUTHORIZATION',
        ]),
      ),
      shownAsRequired(
        'hashFunction',
        oneOf([
          'HASH_FUNCTION_NO_OP',
          'HASH_FUNCTION_SHA256',
          'HASH_FUNCTION_KECCAK256',
          'HASH_FUNCTION_NOT_APPLICABLE',
        ]),
      ),
    ],
    results: [
      required(
        'signatures',
        list(
          object(
            required('r', text({ form: 'hex' })),
            required('s', text({ form: 'hex' })),
            required('v', text({ form: 'hex' })),
          ),
        ),
      ),
    ],
  },
  {
    section: '4.3.14',
    path: 'update_user_phone_number',
    type: 'ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER',
    intent: 'updateUserPhoneNumberIntent',
    result: 'updateUserPhoneNumberResult',
    stampOnly: false,
    parameters: [
      shownAsRequired('userId', uuid, { names: 'user' }),
      shownAsRequired('userPhoneNumber', text({ form: 'E.164', emptyAllowed: 'specification' })),
      shownAsOptional('verificationToken', text()),
    ],
    results: [shownAsRequired('userId', uuid)],
  },
  {
    section: '4.3.15',
    path: 'create_private_key_tag',
    type: 'ACTIVITY_TYPE_CREATE_PRIVATE_KEY_TAG',
    intent: 'createPrivateKeyTagIntent',
    result: 'createPrivateKeyTagResult',
    stampOnly: false,
    parameters: [
      shownAsRequired('privateKeyTagName', label),
      shownAsRequired('privateKeyIds', list(uuid, { least: 0, source: 'client protocol' }), { names: 'private key' }),
    ],
    results: [shownAsRequired('privateKeyTagId', uuid), shownAsRequired('privateKeyIds', list(uuid))],
  },
  {
    section: '4.3.16',
    path: 'export_private_key',
    type: 'ACTIVITY_TYPE_EXPORT_PRIVATE_KEY',
    intent: 'exportPrivateKeyIntent',
    result: 'exportPrivateKeyResult',
    stampOnly: false,
    parameters: [
      shownAsRequired('privateKeyId', uuid, { names: 'private key' }),
      shownAsRequired('targetPublicKey', hex),
    ],
    results: [shownAsRequired('privateKeyId', uuid), shownAsRequired('exportBundle', text())],
  },
  {
    section: '4.3.17',
    path: 'create_invitations',
    type: 'ACTIVITY_TYPE_CREATE_INVITATIONS',
    intent: 'createInvitationsIntent',
    result: 'createInvitationsResult',
    stampOnly: true,
    parameters: [
      shownAsRequired(
        'invitations',
        list(
          object(
            shownAsRequired('receiverUserName', label),
            shownAsRequired('receiverUserEmail', address),
            shownAsRequired('receiverUserTags', list(uuid, { least: 0, source: 'client protocol' }), {
              names: 'user tag',
            }),
            shownAsRequired('accessType', oneOf(['ACCESS_TYPE_WEB'], ['ACCESS_TYPE_API', 'ACCESS_TYPE_ALL'])),
            shownAsRequired('senderUserId', uuid, { names: 'user' }),
          ),
        ),
      ),
    ],
    results: [shownAsRequired('invitationIds', list(uuid))],
  },
];
