import type { Foreseen } from '../activities/define-activity.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import { existingPolicy } from '../domain/organization/policies.js';
import { existingUserTag } from '../domain/organization/tags.js';
import { existingUser } from '../domain/organization/users.js';
import { exact, limited, longestShown, oneLine, type Change, type Decoded } from '../domain/policy/decoded/account.js';
import type { Policy } from '../domain/policy/types.js';
import { quoted } from './waits-for.js';

/** Maximum policies, users, tags and other things of one activity whose changes are shown. */
const mostSubjects = 20;
/** Characters of a long text that are shown before the first difference. */
const before = 100;

/** What changes about one thing: pairs of values, of which one is absent if it is added or removed. */
interface Subject {
  readonly text: string;
  readonly changes: Change[];
  /** Not all of a value is shown. */
  isCut: boolean;
}

type Text = string | undefined;

const policyMembers = [
  ['policyName', 'name'],
  ['effect', 'effect'],
  ['condition', 'condition'],
  ['consensus', 'consensus'],
  ['time', 'time'],
  ['notes', 'notes'],
] as const;

/**
 * What events would change, each policy, user and tag as it is now and as it would be. Names are quoted, so that nobody can
 * write the words of the coordinator by choosing one.
 * @returns undefined if nothing is known about any of the events
 * @throws {CoordinatorError} NOT_FOUND for a thing that does not exist
 */
export function describedChanges(
  events: readonly Foreseen[],
  organization: OrganizationView,
): readonly Decoded[] | undefined {
  return new Describing(organization).all(events);
}

class Describing {
  /** By the kind and the id of the thing. */
  private readonly subjects = new Map<string, Subject>();
  /** Names of tags that the activity itself creates. */
  private readonly newTags = new Map<string, string>();

  constructor(private readonly organization: OrganizationView) {}

  all(events: readonly Foreseen[]): readonly Decoded[] | undefined {
    for (const event of events) this.note(event);
    const subjects = [...this.subjects.values()];
    if (subjects.length === 0) return undefined;
    const left = subjects.length - mostSubjects;
    return [
      ...subjects.slice(0, mostSubjects).map(decodedOf),
      ...(left > 0 ? [{ text: `And ${left} more changes, which are not shown here.`, facts: [], changes: [] }] : []),
    ];
  }

  private note(event: Foreseen): void {
    const { organization } = this;
    const userId = ('userId' in event.data && event.data.userId) || '';
    switch (event.type) {
      case 'PolicyCreated': {
        const { policyName = '' } = event.data;
        const subject = this.subject(`new policy ${this.subjects.size}`, `Create policy ${quoted(policyName)}.`);
        return comparePolicies(subject, {}, event.data);
      }
      case 'PolicyUpdated': {
        const policy = existingPolicy(organization, event.data.policyId ?? '');
        return comparePolicies(this.policy('Change', policy), policy, { ...policy, ...event.data });
      }
      case 'PolicyDeleted': {
        const policy = existingPolicy(organization, event.data.policyId ?? '');
        return comparePolicies(this.policy('Delete', policy), policy, {});
      }
      case 'UserCreated': {
        const { userName = '', userEmail, userPhoneNumber, userTags = [] } = event.data;
        const subject = this.subject(userId, `Create user ${quoted(userName)}.`);
        compare(subject, 'name', undefined, userName);
        compare(subject, 'e-mail', undefined, userEmail);
        compare(subject, 'phone number', undefined, userPhoneNumber);
        return this.compareTags(subject, [], userTags);
      }
      case 'UserUpdated': {
        const { userName, userEmail, userPhoneNumber, userTags } = event.data;
        const user = existingUser(organization, userId);
        const subject = this.user(userId);
        if (userName !== undefined) compare(subject, 'name', user.userName, userName);
        if (userEmail !== undefined) compare(subject, 'e-mail', user.userEmail, userEmail);
        if (userPhoneNumber !== undefined) compare(subject, 'phone number', user.userPhoneNumber, userPhoneNumber);
        return userTags && this.compareTags(subject, user.userTags, userTags);
      }
      case 'UserDeleted': {
        const { userName, userEmail, userPhoneNumber, userTags } = existingUser(organization, userId);
        const subject = this.user(userId, 'Delete');
        compare(subject, 'name', userName, undefined);
        compare(subject, 'e-mail', userEmail, undefined);
        compare(subject, 'phone number', userPhoneNumber, undefined);
        return this.compareTags(subject, userTags, []);
      }
      case 'ApiKeyCreated': {
        const { apiKeyName = '', publicKey = '' } = event.data;
        return added(this.user(userId), 'API key', `${quoted(apiKeyName)} ${oneLine(publicKey)}`);
      }
      case 'ApiKeyDeleted': {
        const { apiKeys } = existingUser(organization, userId);
        const key = apiKeys.find(({ apiKeyId }) => apiKeyId === event.data.apiKeyId);
        return removed(this.user(userId), 'API key', key && `${quoted(key.apiKeyName)} ${key.publicKey}`);
      }
      case 'AuthenticatorCreated':
        return added(this.user(userId), 'passkey', quoted(event.data.authenticatorName ?? ''));
      case 'AuthenticatorDeleted': {
        const { authenticators } = existingUser(organization, userId);
        const passkey = authenticators.find(({ authenticatorId }) => authenticatorId === event.data.authenticatorId);
        return removed(this.user(userId), 'passkey', passkey && quoted(passkey.authenticatorName));
      }
      case 'OauthProviderCreated':
        return added(this.user(userId), 'OAuth provider', quoted(event.data.providerName ?? ''));
      case 'OauthProviderDeleted': {
        const { oauthProviders } = existingUser(organization, userId);
        const provider = oauthProviders.find(({ providerId }) => providerId === event.data.providerId);
        return removed(this.user(userId), 'OAuth provider', provider && quoted(provider.providerName));
      }
      case 'UserTagCreated': {
        const { tagId = '', tagName = '' } = event.data;
        this.newTags.set(tagId, tagName);
        return compare(this.subject(tagId, `Create user tag ${quoted(tagName)}.`), 'name', undefined, tagName);
      }
      case 'UserTagUpdated': {
        const { tagId, tagName } = existingUserTag(organization, event.data.tagId ?? '');
        const subject = this.subject(tagId, `Change user tag ${quoted(tagName)} (${tagId}).`);
        return compare(subject, 'name', tagName, event.data.tagName);
      }
      case 'UserTagDeleted': {
        const { tagId, tagName } = existingUserTag(organization, event.data.tagId ?? '');
        const subject = this.subject(tagId, `Delete user tag ${quoted(tagName)} (${tagId}).`);
        for (const user of organization.users.values()) {
          if (user.userTags.includes(tagId)) removed(subject, 'user', this.userName(user.userId));
        }
        return;
      }
      case 'RootQuorumUpdated': {
        const { rootQuorum } = organization;
        const { threshold, userIds = [] } = event.data;
        const subject = this.subject('root quorum', 'Change the root quorum.');
        compare(subject, 'threshold', String(rootQuorum.threshold), String(threshold), plain);
        return compareLists(subject, 'member', rootQuorum.userIds, userIds, (id) => this.userName(id));
      }
      case 'OrganizationRenamed':
        return compare(this.subject('name', 'Rename the organization.'), 'name', organization.name, event.data.name);
      default:
        return;
    }
  }

  private subject(key: string, text: string): Subject {
    const known = this.subjects.get(key) ?? { text, changes: [], isCut: false };
    this.subjects.set(key, known);
    return known;
  }

  private policy(verb: string, { policyId, policyName }: Policy): Subject {
    return this.subject(policyId, `${verb} policy ${quoted(policyName)} (${policyId}).`);
  }

  private user(userId: string, verb = 'Change'): Subject {
    return this.subjects.get(userId) ?? this.subject(userId, `${verb} user ${this.userName(userId)}.`);
  }

  private userName(userId: string): string {
    return `${quoted(existingUser(this.organization, userId).userName)} (${userId})`;
  }

  private compareTags(subject: Subject, was: readonly string[], is: readonly string[]): void {
    compareLists(subject, 'tag', was, is, (tagId) => {
      const { userTags } = this.organization;
      const name = this.newTags.get(tagId) ?? userTags.get(tagId)?.tagName;
      return name === undefined ? tagId : `${quoted(name)} (${tagId})`;
    });
  }
}

function comparePolicies(subject: Subject, was: Partial<Policy>, is: Partial<Policy>): void {
  for (const [member, name] of policyMembers) {
    compare(subject, name, was[member], is[member], member === 'effect' ? plain : exact);
  }
}

const plain = (text: string): string => text;

/** Of long texts, both are shown from just before they differ. */
function compare(subject: Subject, name: string, was: Text = '', is: Text = '', shown = exact): void {
  if (was === is) return;
  const isLong = Math.max(was.length, is.length) > longestShown;
  if (isLong) subject.isCut = true;
  const from = isLong ? Math.max(0, firstDifference(was, is) - before) : 0;
  const part = (text: string) => {
    const end = from + longestShown;
    return `${from > 0 ? '…' : ''}${shown(text.slice(from, end))}${end < text.length ? '…' : ''}`;
  };
  subject.changes.push({ name, ...(was ? { before: part(was) } : {}), ...(is ? { after: part(is) } : {}) });
}

function firstDifference(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at;
}

function compareLists(
  subject: Subject,
  name: string,
  was: readonly string[],
  is: readonly string[],
  shown: (id: string) => string,
): void {
  const [were, are] = [new Set(was), new Set(is)];
  for (const id of were) if (!are.has(id)) removed(subject, name, shown(id));
  for (const id of are) if (!were.has(id)) added(subject, name, shown(id));
}

function added({ changes }: Subject, name: string, after: string): void {
  changes.push({ name, after });
}

function removed({ changes }: Subject, name: string, was = 'unknown'): void {
  changes.push({ name, before: was });
}

const cut = 'long texts are shown from where they differ: compare the whole ones';

function decodedOf({ text, changes, isCut }: Subject): Decoded {
  const notDecoded = changes.length === 0 ? 'nothing about it would be different' : isCut ? cut : undefined;
  return limited({ text, facts: [], changes, ...(notDecoded ? { notDecoded } : {}) });
}
