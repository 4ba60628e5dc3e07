import { appProofScheme } from '../domain/activity/app-proof.js';
import { activityStatuses, type ActivityStatus, type VoteSelection } from '../domain/activity/events.js';
import { limitNames, type LimitName } from '../domain/organization/limits.js';
import { Described, Flag, ListOf, Nested, OneOf, Text, TextList, Uuid } from './fields.js';

/** Shapes of responses, for the OpenAPI document and for tests that validate responses against it. */

export const redactedAbout =
  'Omits what could still be used, such as the signature of an unexpired token, unused codes, ids of live codes and sealed secrets (docs/adr/0017).';

/** For anything that may lack secrets that are still usable. */
class Readable {
  @Described({ type: 'boolean', const: true }, { optional: true, about: redactedAbout })
  redacted?: true;
}

export class TimestampShape {
  @Text({ about: 'Whole seconds since the epoch, decimal.' })
  seconds!: string;

  @Text({ about: 'Nanoseconds within the second, decimal.' })
  nanos!: string;
}

class Dated {
  @Nested(() => TimestampShape)
  createdAt!: TimestampShape;

  @Nested(() => TimestampShape)
  updatedAt!: TimestampShape;
}

class CredentialShape {
  @Text({ about: 'Hex for API keys, a base64url COSE key for passkeys.' })
  publicKey!: string;

  @Text()
  type!: string;
}

export class ApiKeyShape extends Dated {
  @Nested(() => CredentialShape)
  credential!: CredentialShape;

  @Uuid()
  apiKeyId!: string;

  @Text()
  apiKeyName!: string;

  @Text({ optional: true, about: 'Lifetime in seconds from createdAt, decimal.' })
  expirationSeconds?: string;
}

export class AuthenticatorShape extends Dated {
  @TextList()
  transports!: readonly string[];

  @Text()
  attestationType!: string;

  @Text()
  aaguid!: string;

  @Text()
  credentialId!: string;

  @Text()
  model!: string;

  @Nested(() => CredentialShape)
  credential!: CredentialShape;

  @Uuid()
  authenticatorId!: string;

  @Text()
  authenticatorName!: string;
}

export class OauthProviderShape extends Dated {
  @Uuid()
  providerId!: string;

  @Text()
  providerName!: string;

  @Text({ about: 'Token issuer URL.' })
  issuer!: string;

  @Text({ about: 'Expected aud claim.' })
  audience!: string;

  @Text({ about: 'Expected sub claim.' })
  subject!: string;
}

export class UserShape extends Dated {
  @Uuid()
  userId!: string;

  @Text()
  userName!: string;

  @Text({ optional: true })
  userEmail?: string;

  @Text({ optional: true, about: 'E.164.' })
  userPhoneNumber?: string;

  @ListOf(() => AuthenticatorShape)
  authenticators!: readonly AuthenticatorShape[];

  @ListOf(() => ApiKeyShape)
  apiKeys!: readonly ApiKeyShape[];

  @TextList({ about: 'Ids of user tags.' })
  userTags!: readonly string[];

  @ListOf(() => OauthProviderShape)
  oauthProviders!: readonly OauthProviderShape[];

  @Described({ type: 'array', items: {} })
  mfaPolicies!: readonly unknown[];
}

export class PolicyShape extends Dated {
  @Uuid()
  policyId!: string;

  @Text()
  policyName!: string;

  @OneOf(['EFFECT_ALLOW', 'EFFECT_DENY'])
  effect!: 'EFFECT_ALLOW' | 'EFFECT_DENY';

  @Text({ about: 'Empty when unset.' })
  condition!: string;

  @Text({ about: 'Empty when unset.' })
  consensus!: string;

  @Text()
  notes!: string;

  @Text({ optional: true })
  time?: string;
}

export class TagShape extends Dated {
  @Uuid()
  tagId!: string;

  @Text()
  tagName!: string;

  @OneOf(['TAG_TYPE_USER', 'TAG_TYPE_PRIVATE_KEY'])
  tagType!: 'TAG_TYPE_USER' | 'TAG_TYPE_PRIVATE_KEY';
}

export class FeatureShape {
  @Text()
  name!: string;

  @Text({ optional: true })
  value?: string;
}

/** A limit of what is stored. */
export class LimitShape {
  @OneOf(limitNames)
  name!: LimitName;

  @Described({ type: 'integer' })
  value!: number;
}

export class QuorumShape {
  @Described({ type: 'integer' })
  threshold!: number;

  @TextList()
  userIds!: readonly string[];
}

export class VoteShape extends Readable {
  @Uuid()
  id!: string;

  @Uuid()
  userId!: string;

  @Nested(() => UserShape, {
    about: 'The voter at the time of the vote; of a voter from elsewhere, such as a member of the parent, only the id.',
  })
  user!: UserShape;

  @Uuid()
  activityId!: string;

  @OneOf(['VOTE_SELECTION_APPROVED', 'VOTE_SELECTION_REJECTED'])
  selection!: VoteSelection;

  @Described({ type: 'string' }, { about: 'The request body that the voter stamped.' })
  message!: string;

  @Text()
  publicKey!: string;

  @Text()
  signature!: string;

  @Text()
  scheme!: string;

  @Text({ optional: true, about: 'Passkey votes: authenticator data, base64url.' })
  authenticatorData?: string;

  @Text({ optional: true, about: 'Passkey votes: client data, base64url.' })
  clientDataJson?: string;

  @Nested(() => TimestampShape)
  createdAt!: TimestampShape;
}

export class AppProofShape extends Readable {
  @OneOf([appProofScheme])
  scheme!: typeof appProofScheme;

  @Text({ about: 'Key of the boot that signed it; pass it to get_boot_proof.' })
  publicKey!: string;

  @Described(
    { type: 'string' },
    { about: 'JSON: type, timestampMs and the proved facts. Exactly this text is signed.' },
  )
  proofPayload!: string;

  @Text({ about: 'r and s over SHA-256 of the payload, hex.' })
  signature!: string;
}

/** The part of a policy's text that decided its outcome. */
export class ClauseShape {
  @OneOf(['condition', 'consensus', 'time'])
  name!: string;

  @Described({ type: 'string' }, { about: 'Text from the policy, on one line; cut after 200 characters.' })
  text!: string;

  @OneOf(['true', 'false', 'unreadable', 'not-applicable'])
  outcome!: string;
}

class ApprovalsMissingShape {
  @Described(
    { type: 'integer' },
    { optional: true, about: 'The smallest number that would suffice; absent if that takes too long to compute.' },
  )
  approvalsMissing?: number;

  @Described(
    { type: 'array', items: { type: 'string', format: 'uuid' } },
    { about: 'Users whose approval could count; at most 20.' },
  )
  approverIds!: readonly string[];
}

class PolicyWaitShape extends ApprovalsMissingShape {
  @Uuid()
  policyId!: string;

  @Text()
  policyName!: string;

  @Nested(() => ClauseShape, { optional: true, about: 'The part of its consensus that is not met yet.' })
  clause?: ClauseShape;

  @Described(
    { type: 'string' },
    { optional: true, about: 'Index of the payload it is waiting for, unless it is all of them.' },
  )
  payload?: string;
}

class OverriddenPolicyShape {
  @Uuid()
  policyId!: string;

  @Described({ type: 'string' })
  policyName!: string;
}

export class WaitsForShape {
  @Described({ type: 'string' }, { about: 'One human-readable sentence.' })
  text!: string;

  @ListOf(() => PolicyWaitShape, { about: 'Any one of these is enough.' })
  policies!: readonly PolicyWaitShape[];

  @Nested(() => ApprovalsMissingShape, { optional: true, about: 'Approval by the root quorum is also enough.' })
  rootQuorum?: ApprovalsMissingShape;

  @ListOf(() => OverriddenPolicyShape, {
    optional: true,
    about: 'Policies that deny it today: the approval of the root quorum would override them. Up to 10.',
  })
  overrides?: readonly OverriddenPolicyShape[];

  @Uuid({ optional: true, about: 'The affected member of the root quorum, who must approve it.' })
  memberId?: string;
}

class DecodedFactShape {
  @Text()
  name!: string;

  @Text()
  value!: string;
}

class ChangeShape {
  @Text({ about: 'What changes, such as condition, e-mail, tag or member.' })
  name!: string;

  @Described({ type: 'string' }, { optional: true, about: 'What it is now; absent if it is added.' })
  before?: string;

  @Described({ type: 'string' }, { optional: true, about: 'What it would be; absent if it is removed.' })
  after?: string;
}

export class DecodedShape {
  @Described({ type: 'string' }, { optional: true, about: 'Index of the payload, if there are several.' })
  payload?: string;

  @Described(
    { type: 'string' },
    {
      about:
        'One sentence with amounts and addresses, or what would be changed. Names that somebody chose are in quotes.',
    },
  )
  text!: string;

  @ListOf(() => DecodedFactShape, {
    about: 'Amounts are in the unit of the chain. Text supplied by the signer is in quotes.',
  })
  facts!: readonly DecodedFactShape[];

  @ListOf(() => ChangeShape, {
    optional: true,
    about:
      'Of an activity that would change policies, users, their credentials and tags, or the root quorum: only what would be ' +
      'different. Text that somebody chose is in quotes, as in JSON; of a long one, the part around the first difference.',
  })
  changes?: readonly ChangeShape[];

  @Described({ type: 'string' }, { optional: true, about: 'What could not be decoded, and why.' })
  notDecoded?: string;
}

/** A google.rpc.Status. */
class StatusShape {
  @Described({ type: 'integer' }, { about: 'Number of its gRPC code.' })
  code!: number;

  @Described({ type: 'string' }, { about: 'Why, in words.' })
  message!: string;

  @Described({ type: 'array', items: {} }, { about: 'Always empty.' })
  details!: readonly unknown[];
}

function ActivityTime() {
  return Described(
    { anyOf: [{ type: 'string', format: 'date-time' }, { $shape: () => TimestampShape }] },
    {
      about:
        'RFC 3339, UTC, milliseconds; an object for typed SDKs, and where ACTIVITY_TIMESTAMPS or ' +
        'FEATURE_NAME_ACTIVITY_TIMESTAMPS says so.',
    },
  );
}

export class ActivityShape extends Readable {
  @Uuid()
  id!: string;

  @Uuid()
  organizationId!: string;

  @OneOf(activityStatuses)
  status!: ActivityStatus;

  @Text()
  type!: string;

  @Described({ type: 'object' }, { about: 'The parameters, under one key named after the submitted version.' })
  intent!: Readonly<Record<string, unknown>>;

  @Described(
    { type: 'object' },
    { about: 'The result, under one key named after the submitted version; empty until completed.' },
  )
  result!: Readonly<Record<string, unknown>>;

  @ListOf(() => VoteShape)
  votes!: readonly VoteShape[];

  @ListOf(() => AppProofShape, {
    optional: true,
    about: 'Present if generateAppProofs was true and the activity has ended.',
  })
  appProofs?: readonly AppProofShape[];

  @Text({ about: '`sha256:` followed by the SHA-256 of the request body in hex.' })
  fingerprint!: string;

  @Flag()
  canApprove!: boolean;

  @Flag()
  canReject!: boolean;

  @Described(
    { type: 'boolean', const: true },
    {
      optional: true,
      about:
        'Computing canApprove and canReject for this activity and those before it would have taken too long: both are false ' +
        'here; call get_activity for the answer.',
    },
  )
  rightsNotComputed?: true;

  @Nested(() => WaitsForShape, {
    optional: true,
    about:
      'What an activity that is waiting for votes needs. In get_activity, list_activities and in responses to submits and ' +
      'votes, for users of the organization.',
  })
  waitsFor?: WaitsForShape;

  @Described(
    { type: 'boolean', const: true },
    {
      optional: true,
      about:
        'Telling what this and the activities before it in the list wait for would have taken too long: get_activity tells it.',
    },
  )
  waitsForNotComputed?: true;

  @ListOf(() => DecodedShape, {
    optional: true,
    about:
      'What an activity that is waiting for votes would sign, decoded as policies read it; or what it would change. Wherever ' +
      '`waitsFor` appears; webhooks have only what it would sign.',
  })
  decoded?: readonly DecodedShape[];

  @Text({ about: 'As submitted.' })
  timestampMs!: string;

  @ActivityTime()
  createdAt!: string | TimestampShape;

  @ActivityTime()
  updatedAt!: string | TimestampShape;

  @Described({ anyOf: [{ $shape: () => StatusShape }, { type: 'null' }] }, { about: 'Why it failed.' })
  failure!: StatusShape | null;
}
