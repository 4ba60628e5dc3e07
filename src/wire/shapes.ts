import { appProofScheme } from '../domain/activity/app-proof.js';
import { activityStatuses, type ActivityStatus, type VoteSelection } from '../domain/activity/events.js';
import { limitNames, type LimitName } from '../domain/organization/limits.js';
import { Described, Flag, ListOf, Nested, OneOf, Text, TextList, Uuid } from './fields.js';

/** What answers look like, for the OpenAPI document and for tests that hold answers against it. */

export const redactedAbout =
  'Left out: what still proves something, such as the signature of a token until it is over, and unused codes (docs/adr/0027).';

/** Of whatever may lack what would still prove something. */
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

  @Text({ optional: true, about: 'Life in seconds from createdAt, decimal.' })
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

  @Described({ anyOf: [{ $shape: () => UserShape }, { type: 'null' }] }, { about: 'The voter as of the vote.' })
  user!: UserShape | null;

  @Uuid()
  activityId!: string;

  @OneOf(['VOTE_SELECTION_APPROVED', 'VOTE_SELECTION_REJECTED'])
  selection!: VoteSelection;

  @Described({ type: 'string' }, { about: 'The request body that this voter stamped.' })
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

  @Text({ about: 'Key of the boot that has signed: get_boot_proof takes it.' })
  publicKey!: string;

  @Described({ type: 'string' }, { about: 'JSON: type, timestampMs and what is proved. Exactly this text is signed.' })
  proofPayload!: string;

  @Text({ about: 'r and s over SHA-256 of the payload, hex.' })
  signature!: string;
}

/** The part of a policy's text that decided what the policy said. */
export class ClauseShape {
  @OneOf(['condition', 'consensus', 'time'])
  name!: string;

  @Described({ type: 'string' }, { about: 'As the policy has it, on one line; cut after 200 characters.' })
  text!: string;

  @OneOf(['true', 'false', 'unreadable', 'not-applicable'])
  outcome!: string;
}

class ApprovalsMissingShape {
  @Described(
    { type: 'integer' },
    { optional: true, about: 'The fewest that would do; absent where that takes too long to tell.' },
  )
  approvalsMissing?: number;

  @Described(
    { type: 'array', items: { type: 'string', format: 'uuid' } },
    { about: 'Users whose approval could count; 20 at most.' },
  )
  approverIds!: readonly string[];
}

class PolicyWaitShape extends ApprovalsMissingShape {
  @Uuid()
  policyId!: string;

  @Text()
  policyName!: string;

  @Nested(() => ClauseShape, { optional: true, about: 'The part of its consensus that is not met.' })
  clause?: ClauseShape;

  @Described({ type: 'string' }, { optional: true, about: 'The payload that it waits for, where it is not all.' })
  of?: string;
}

export class WaitsForShape {
  @Described({ type: 'string' }, { about: 'In a sentence, for people.' })
  text!: string;

  @ListOf(() => PolicyWaitShape, { about: 'Any one of them is enough.' })
  policies!: readonly PolicyWaitShape[];

  @Nested(() => ApprovalsMissingShape, { optional: true, about: 'The root quorum is enough too.' })
  rootQuorum?: ApprovalsMissingShape;

  @Uuid({ optional: true, about: 'Member of the root quorum whom it concerns, and who has to approve it.' })
  memberId?: string;
}

class DecodedFactShape {
  @Text()
  name!: string;

  @Text()
  value!: string;
}

export class DecodedShape {
  @Described({ type: 'string' }, { optional: true, about: 'The payload, where there are several.' })
  of?: string;

  @Described(
    { type: 'string' },
    { about: 'In a sentence: amounts and addresses, and nothing that a caller has worded.' },
  )
  text!: string;

  @ListOf(() => DecodedFactShape, { about: 'Amounts in the unit of the chain. Words of whoever signs are in quotes.' })
  facts!: readonly DecodedFactShape[];

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

export class ActivityShape extends Readable {
  @Uuid()
  id!: string;

  @Uuid()
  organizationId!: string;

  @OneOf(activityStatuses)
  status!: ActivityStatus;

  @Text()
  type!: string;

  @Described({ type: 'object' }, { about: 'One key, named after the submitted version: the parameters.' })
  intent!: Readonly<Record<string, unknown>>;

  @Described({ type: 'object' }, { about: 'One key, named after the submitted version; empty until completed.' })
  result!: Readonly<Record<string, unknown>>;

  @ListOf(() => VoteShape)
  votes!: readonly VoteShape[];

  @ListOf(() => AppProofShape, { optional: true, about: 'When generateAppProofs was true and it has ended.' })
  appProofs?: readonly AppProofShape[];

  @Text({ about: '`sha256:` and the hex of SHA-256 of the request body.' })
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
        'Telling canApprove and canReject of this and the activities before it would have taken too long: both are false ' +
        'here, and get_activity tells them.',
    },
  )
  rightsNotComputed?: true;

  @Nested(() => WaitsForShape, {
    optional: true,
    about:
      'What it waits for, of an activity that waits for votes: in get_activity, list_activities and in answers to submits and ' +
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
      'What it would sign, of an activity that waits for votes: where `waitsFor` is, and in webhooks. Decoded as policies ' +
      'read it.',
  })
  decoded?: readonly DecodedShape[];

  @Text({ about: 'As submitted.' })
  timestampMs!: string;

  @Described({ type: 'string', format: 'date-time' }, { about: 'RFC 3339, UTC, milliseconds.' })
  createdAt!: string;

  @Described({ type: 'string', format: 'date-time' }, { about: 'RFC 3339, UTC, milliseconds.' })
  updatedAt!: string;

  @Described({ anyOf: [{ $shape: () => StatusShape }, { type: 'null' }] }, { about: 'Why it failed.' })
  failure!: StatusShape | null;
}
