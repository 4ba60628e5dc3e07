import { randomBytes, randomUUID } from 'node:crypto';
import {
  type ActivityClient,
  submitPath,
  type PolicyCredential,
  type PolicyUser,
  type PolicyFile,
  generateApiKeyPair,
  type ApiKeyPair,
  type ActivityEnvelope,
  isEmail,
} from 'countersign/internal';
import type { AnalysedSet, FoundCase } from '../analysis-subject.js';
import { Passkey } from './passkey.js';
import type { TrialCoordinator } from './trial-coordinator.js';

/** A real user, with one API key and one passkey, as the analysis has them. */
interface Person {
  readonly user: PolicyUser;
  readonly key: ApiKeyPair;
  readonly passkey: Passkey;
  /** Of who is no user yet. */
  readonly invitationId?: string;
}

/** An organization of its own for one example: the users, tags, wallets and keys of the file, and no policies yet. */
export class TrialOrganization {
  private constructor(
    private readonly coordinator: TrialCoordinator,
    /** Stamps as a member of the root quorum, whose threshold is 1 until the organization is `closed`. */
    readonly founder: ActivityClient,
    private readonly people: Map<string, Person>,
    private readonly realIds: Map<string, string>,
    private readonly guestId: string | undefined,
  ) {}

  /** Real ids by those of the file. */
  get ids(): ReadonlyMap<string, string> {
    return this.realIds;
  }

  static async found(
    coordinator: TrialCoordinator,
    { users }: FoundCase,
    { quorum }: AnalysedSet,
    names: PolicyFile['names'],
    { isParent = false, guestId }: { readonly isParent?: boolean; readonly guestId?: string | undefined } = {},
  ): Promise<TrialOrganization> {
    const people = users.map((user, index) => ({
      user: withEmail(user.userId === guestId ? { email: newEmail(), ...user } : user, index),
      key: newKey(),
      passkey: new Passkey(),
    }));
    const members = people.filter(({ user }) => quorum.userIds.includes(user.userId));
    const { founder, memberIds } = await (isParent ? parentOf : childOf)(coordinator, members);
    const ids = new Map(members.map(({ user }, index) => [user.userId, memberIds[index]!]));
    const others = people.filter(({ user }) => !ids.has(user.userId));
    if (others.length > 0) {
      // Nobody else has the guest's address.
      const reached = others.map((one) => (one.user.userId === guestId ? withoutEmail(one) : one));
      const userIds = await usersIn(founder, reached);
      for (const [index, { user }] of others.entries()) ids.set(user.userId, userIds[index]!);
    }
    for (const [userTagName, id] of names.get('tag') ?? []) {
      const userIds = users.filter(({ tags }) => tags.includes(id)).map(({ userId }) => ids.get(userId)!);
      const made = await founder.perform('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName, userIds });
      ids.set(id, made.userTagId);
    }
    for (const [privateKeyTagName, id] of names.get('private key tag') ?? []) {
      const input = { privateKeyTagName, privateKeyIds: [] };
      ids.set(id, (await founder.perform('ACTIVITY_TYPE_CREATE_PRIVATE_KEY_TAG', input)).privateKeyTagId);
    }
    const byId = new Map(people.map((one) => [one.user.userId, one]));
    return new TrialOrganization(coordinator, founder, byId, ids, guestId);
  }

  /** By the ids of the file. */
  get userIds(): readonly string[] {
    return [...this.people.keys()];
  }

  /** Who is to be invited, besides the user who has that name and these tags, whom policies know. @throws {Error} if it is nobody */
  get guest(): PolicyUser & { readonly email: string } {
    const guest = this.people.get(this.guestId ?? '');
    if (!guest) throw new Error('nobody is invited');
    const { email = '' } = guest.user;
    return { ...guest.user, email, tags: guest.user.tags.map((tag) => this.ids.get(tag) ?? tag) };
  }

  /** The guest stamps with the key of the invitation. */
  invited(invitationId: string, key: ApiKeyPair): void {
    this.people.set(this.guestId!, { ...this.people.get(this.guestId!)!, key, invitationId });
  }

  /** That its parent lets it invite people, as only a parent can. */
  async letInvite(): Promise<void> {
    const feature = { name: 'FEATURE_NAME_SUB_ORGANIZATION_INVITATIONS', value: '' } as const;
    await this.coordinator.root.perform('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', feature);
  }

  /** The keys to which secrets for others are sealed. */
  sealingKeys(): ReturnType<TrialCoordinator['sealingKeys']> {
    return this.coordinator.sealingKeys();
  }

  /** The text of the newest mail to an address. */
  mailTo(address: string): Promise<string> {
    return this.coordinator.mailTo(address);
  }

  /** Creates the policies, and raises the threshold of the root quorum: from here on, only its members together decide. */
  async close({ policies, quorum }: AnalysedSet): Promise<void> {
    for (let first = 0; first < policies.length; first += 100) {
      await this.founder.perform('ACTIVITY_TYPE_CREATE_POLICIES', {
        policies: policies
          .slice(first, first + 100)
          .map(({ policyName, effect, notes, condition, consensus, time }) => ({
            policyName,
            effect,
            notes,
            ...(condition === undefined ? {} : { condition }),
            ...(consensus === undefined ? {} : { consensus }),
            ...(time === undefined ? {} : { time }),
          })),
      });
    }
    const { threshold, userIds } = quorum;
    if (userIds.length === 0 || threshold === 1) return;
    await this.founder.perform('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', { threshold, userIds: [...new Set(userIds)] });
  }

  /** The users as the coordinator has them, with real ids and keys. */
  async users(): Promise<readonly PolicyUser[]> {
    return Promise.all(
      Array.from(this.people.values(), async ({ user, key: invitedKey, invitationId }): Promise<PolicyUser> => {
        if (invitationId !== undefined) return this.guestWith(invitationId, invitedKey);
        const userId = this.ids.get(user.userId)!;
        const { user: real } = await this.founder.query('get_user', { userId });
        const [key, passkey] = [real.apiKeys[0]!, real.authenticators[0]!];
        const credentials: readonly PolicyCredential[] = [
          { id: key.apiKeyId, userId, type: key.credential.type, publicKey: key.credential.publicKey },
          {
            id: passkey.authenticatorId,
            userId,
            type: passkey.credential.type,
            publicKey: passkey.credential.publicKey,
            credentialId: passkey.credentialId,
          },
        ];
        return {
          userId,
          userName: user.userName,
          ...(user.email === undefined ? {} : { email: user.email }),
          tags: user.tags.map((tag) => this.ids.get(tag) ?? tag),
          credentials,
        };
      }),
    );
  }

  /** With an id that no policy has. */
  private guestWith(id: string, { publicKey }: ApiKeyPair): PolicyUser {
    const userId = randomUUID();
    this.realIds.set(this.guestId!, userId);
    return { ...this.guest, userId, credentials: [{ id, userId, type: 'CREDENTIAL_TYPE_API_KEY_P256', publicKey }] };
  }

  /** Submits with one of a user's credentials; both by their ids in the file. @throws {ApiError} */
  async submit(
    by: PolicyCredential,
    organizationId: string,
    type: string,
    parameters: object,
  ): Promise<ActivityEnvelope> {
    const { key, passkey } = this.people.get(by.userId)!;
    const client = this.coordinator.clientOf(key, organizationId);
    if (by.credentialId === undefined) return client.submit(type, parameters);
    const body = this.founder.submitBody(type, parameters, { organizationId });
    const headers = { 'X-Stamp-WebAuthn': passkey.stamp(body) };
    const answer = await this.coordinator.post<{ activity: ActivityEnvelope }>(submitPath(type), body, headers);
    return answer.activity;
  }
}

/** Of nobody else: codes for one address are limited, and the clock may stand. */
export const newEmail = (): string => `${randomUUID()}@example.com`;

/** A new P-256 key pair. */
export const newKey = (): ApiKeyPair => generateApiKeyPair((count) => randomBytes(count));

/** A sub-organization whose root quorum these are, each alone. */
async function childOf(coordinator: TrialCoordinator, members: readonly Person[]) {
  // Without members of their own, somebody must have founded it.
  const founders = members.length > 0 ? members : [founderOnly()];
  const { subOrganizationId, rootUserIds = [] } = await coordinator.root.perform(
    'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8',
    { subOrganizationName: 'Example', rootQuorumThreshold: 1, rootUsers: founders.map(parametersOf) },
  );
  return { founder: coordinator.clientOf(founders[0]!.key, subOrganizationId), memberIds: rootUserIds };
}

/** The same, without a parent. */
async function parentOf(coordinator: TrialCoordinator, members: readonly Person[]) {
  const first = await coordinator.found(newKey());
  if (members.length === 0) return { founder: first, memberIds: [] };
  const memberIds = await usersIn(first, members);
  await first.perform('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', { threshold: 1, userIds: [...memberIds] });
  return { founder: coordinator.clientOf(members[0]!.key, first.organizationId), memberIds };
}

async function usersIn(founder: ActivityClient, people: readonly Person[]): Promise<readonly string[]> {
  const users = people.map((person) => ({ ...parametersOf(person), oauthProviders: [], userTags: [] }));
  return (await founder.perform('ACTIVITY_TYPE_CREATE_USERS_V4', { users })).userIds;
}

const founderOnly = (): Person => ({
  user: { userId: '', userName: 'Founder', tags: [], credentials: [] },
  key: newKey(),
  passkey: new Passkey(),
});

/** An e-mail address that is none becomes another. */
const withEmail = (user: PolicyUser, index: number): PolicyUser =>
  user.email === undefined || isEmail(user.email) ? user : { ...user, email: `user${index}@example.com` };

const withoutEmail = ({ user: { email: _, ...user }, ...rest }: Person): Person => ({ ...rest, user });

function parametersOf({ user: { userName, email }, key, passkey }: Person) {
  return {
    userName,
    ...(email === undefined ? {} : { userEmail: email }),
    apiKeys: [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve }],
    authenticators: [passkey.registration('passkey')],
    oauthProviders: [],
  };
}
