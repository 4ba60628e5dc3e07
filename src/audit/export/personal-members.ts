/**
 * The kind of data in each member of events and signed bodies, by its name: what a redacted export replaces, and how. A
 * test checks that no string of an event or an activity is missing here; unknown members are replaced as text.
 */

/** How a text is replaced. `kept`: it is not, except contacts in it. */
export type MemberKind =
  | 'kept'
  /** By a pseudonym, the same everywhere. */
  | 'name'
  /** An e-mail address or a phone number by one of the same shape; `kept` if it is neither. */
  | 'contact'
  /** A contact, or anything else that identifies callers. */
  | 'identifier'
  /** Someone's name elsewhere, such as at an OpenID provider. */
  | 'subject'
  | 'url'
  /** Prose that nothing compares. */
  | 'text'
  /** Our own prose, with the same replacements as elsewhere. */
  | 'quotes'
  /** A clause of a policy, with the same replacements as elsewhere. */
  | 'clause'
  /** A signed body, or prose. */
  | 'message'
  /** JSON of a proof. */
  | 'json'
  /** Header, payload and signature between dots. */
  | 'token'
  /** Digits or letters that could confirm a guess of what was signed: replaced by as many zeros. */
  | 'zeros'
  | 'fingerprint'
  | 'vote-id';

const named = <Kind extends MemberKind>(kind: Kind, names: string) =>
  Object.fromEntries(names.split(/\s+/).map((name) => [name, kind]));

export const memberKinds: Readonly<Record<string, MemberKind>> = {
  ...named(
    'name',
    `alias apiKeyName authenticatorName appName label name newPrivateKeyTagName newUserTagName organizationName policyName
     privateKeyName privateKeyTagName providerName receiverUserName sendFromEmailSenderName subOrganizationName tagName userName
     username userTagName walletName`,
  ),
  ...named(
    'contact',
    `contact email receiverUserEmail replyToEmailAddress sendFromEmailAddress userEmail userPhoneNumber value`,
  ),
  userIdentifier: 'identifier',
  ...named('subject', 'sub subject'),
  ...named('url', 'allowedOrigins logoUrl magicLinkTemplate oauthRedirectUrl redirectUri url'),
  ...named('text', 'notes policyNotes templateVariables emailCustomizationParams smsCustomizationParams'),
  ...named('quotes', 'description error reason'),
  ...named('clause', 'condition consensus time policyCondition policyConsensus target targets text'),
  message: 'message',
  proofPayload: 'json',
  ...named('token', 'oidcToken session verificationToken'),
  ...named(
    'zeros',
    'attestationObject authCode authenticatorData challenge clientDataJson codeVerifier digest otpCode signature',
  ),
  fingerprint: 'fingerprint',
  voteId: 'vote-id',
  ...named(
    'kept',
    `@type aaguid activityId addPrivateKeyIds addUserIds address addresses allowedAuthMethods apiKeyId apiKeyIds apiPublicKey app
     apple attemptId attestationDocument attestationType aud audience authenticatorId authenticatorIds
     bearerTokenTargetPublicKey category certificate clientId code codeHash configId credentialBundle credentialId
     createdBy credentialType curve decidedBy deploymentLabel discord doubt effect emailAuthTemplateId encryptedBundle encryptedClientSecret
     encryptedOtpBundle encryptedPrivateApiKey encryptedSecretApiKey endpointId ephemeralPublicKey eventId expirationSeconds
     exportBundle facebook fiatOnRampCredentialId fiatOnrampCredentialId field filtersJson google id importBundle
     importId invitationId invitationIds iss issuer issuerOrganizationId kekId kind manifest manifestEnvelope manifestVersion
     nonce oauth2CredentialId operator organizationId otpEncryptionTargetBundle otpExpirationSeconds otpId otpLength
     otpTemplateId outcome owner ownerId parentOrganizationId path payload payloads policyId policyIds privateKeyId privateKeyIds
     privateKeyTagId privateKeyTagIds privateKeyTags projectId provedBy provider providerId providerIds publicKey publishableApiKey r
     rawId receiverUserTags removePrivateKeyIds removeUserIds replacedVaultId requestedBy rootUserIds rpIdHash rule s scheme sealed
     senderUserId sessionExpirationSeconds sessionExpiry sessionProfileId signWith signedTransaction smartContractAddress
     smartContractInterface smartContractInterfaceId socialLinkingClientIds status submitterId subOrganizationId subOrganizationUuid tagId
     targetPublicKey template templateId timestampMs tokenId transports turnkeyErrorCode type unsignedTransaction usage userId
     userIds userTagId userTagIds userTags v vaultId vaultIds verificationTokenExpirationSeconds walletAccountId
     walletAccountIds walletId walletIds walletKitSettings wrappedKey x`,
  ),
  // One of a list of ours.
  ...named(
    'kept',
    `accessType addressFormat addressFormats authenticatorAttachment curveType enabledSocialProviders encoding eventType format
     hashFunction language logsInToIssuer onrampProvider otpType outranks pathFormat policyEffect purpose selection
     verificationType`,
  ),
  // Claims of tokens.
  ...named(
    'kept',
    'issuer_login decisionContextDigest organizationDataDigest derivationPath alg azp exp expiry iat id jti kid nbf organization_id public_key session_type tokenId typ user_id verification_type',
  ),
};
