import fc from 'fast-check';
import type { ActivityResponse } from '../../src/coordinator/activity-responses.js';
import type { OrganizationView } from '../../src/domain/organization/organization.js';
import { generateApiKeyPair } from '../../src/stamps/sign.js';
import { SeededRandomness } from '../../src/testing/deterministic.js';
import { BareCoordinator, organizationId, type Signer, type Stamped } from './bare-coordinator.js';
import { SeededPasskey } from './seeded-passkey.js';

/**
 * A random life of an organization. Numbers in it choose among whatever is there when their moment comes, so that every
 * part of a story makes sense after any other.
 */
export type Story = readonly (readonly Deed[])[];

interface Choice {
  readonly by: number;
  readonly which: number;
  readonly how: number;
}

type DeedKind =
  | 'vote'
  | 'resend'
  | 'echo'
  | 'wait'
  | 'name'
  | 'email'
  | 'user'
  | 'doom'
  | 'users-gone'
  | 'tag'
  | 'retag'
  | 'tags-gone'
  | 'policy'
  | 'policies'
  | 'policy-change'
  | 'policy-gone'
  | 'quorum'
  | 'key'
  | 'key-gone'
  | 'passkey'
  | 'passkey-gone'
  | 'organization-name'
  | 'feature'
  | 'feature-gone';

type Deed = Choice & { readonly kind: DeedKind };

const weights: Readonly<Record<DeedKind, number>> = {
  vote: 45,
  resend: 4,
  echo: 4,
  wait: 9,
  name: 14,
  email: 3,
  user: 4,
  doom: 6,
  'users-gone': 4,
  tag: 4,
  retag: 4,
  'tags-gone': 2,
  policy: 12,
  policies: 2,
  'policy-change': 3,
  'policy-gone': 6,
  quorum: 5,
  key: 3,
  'key-gone': 3,
  passkey: 4,
  'passkey-gone': 2,
  'organization-name': 3,
  feature: 2,
  'feature-gone': 1,
};

const number = fc.nat(1_000);
const deed: fc.Arbitrary<Deed> = fc.record({
  kind: fc.oneof(
    ...Object.entries(weights).map(([kind, weight]) => ({ weight, arbitrary: fc.constant(kind as DeedKind) })),
  ),
  by: number,
  which: number,
  how: number,
});

/** Moments, one after the other; what is in one moment is sent at once. */
export const stories: fc.Arbitrary<Story> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: deed.map((one) => [one]) },
    { weight: 1, arbitrary: fc.array(deed, { minLength: 2, maxLength: 5 }) },
  ),
  { minLength: 15, maxLength: 45, size: 'max' },
);

/** A request of a story and what became of it. */
interface Told {
  readonly request: Stamped;
  readonly answer: PromiseSettledResult<ActivityResponse>;
}

export interface Played {
  readonly coordinator: BareCoordinator;
  readonly told: readonly Told[];
  /** Private keys of everybody, lower-case hex. */
  readonly secrets: readonly string[];
}

/** Plays a story on a new coordinator. Whoever asks for it closes the coordinator. */
export async function play(story: Story): Promise<Played> {
  const coordinator = await BareCoordinator.start();
  const teller = new Teller(coordinator);
  await teller.begin();
  for (const moment of story) await teller.tell(moment);
  return { coordinator, told: teller.told, secrets: teller.secrets };
}

const curves = ['API_KEY_CURVE_P256', 'API_KEY_CURVE_ED25519', 'API_KEY_CURVE_SECP256K1'] as const;

class Teller {
  readonly told: Told[] = [];
  readonly secrets: string[] = [];
  /** By public key or credential id: whoever can stamp with it. */
  private readonly signers = new Map<string, Signer>();
  private readonly randomness = new SeededRandomness('story');
  private count = 0;

  constructor(private readonly coordinator: BareCoordinator) {
    this.know(coordinator.root.key);
  }

  /** Four users of different credentials, two tags: enough for votes to have an outcome. */
  async begin(): Promise<void> {
    const { key } = this.coordinator.root;
    const users = ['Ann', 'Bob', 'Eve', 'Joe'].map((userName, index) => ({
      userName,
      ...(index % 2 ? { userEmail: `${userName.toLowerCase()}@example.com` } : {}),
      apiKeys: [this.newKey(index)],
      authenticators: index === 3 ? [this.newPasskey()] : [],
      oauthProviders: [],
      userTags: [],
    }));
    const { result } = await this.coordinator.submit(key, 'ACTIVITY_TYPE_CREATE_USERS_V4', { users });
    const { userIds } = result['createUsersResult'] as { userIds: string[] };
    await this.coordinator.createUserTag('finance', userIds.slice(0, 2));
    await this.coordinator.createUserTag('operations', userIds.slice(1, 3));
    await this.coordinator.createPolicy({
      condition: "activity.resource in ['USER', 'POLICY', 'CREDENTIAL']",
      consensus: 'approvers.count() >= 2',
    });
  }

  async tell(moment: readonly Deed[]): Promise<void> {
    const { organization } = await this.coordinator.loader.load(organizationId);
    const requests = moment.flatMap((one) => this.requestOf(one, organization) ?? []);
    const answers = await Promise.allSettled(requests.map((request) => this.coordinator.send(request)));
    requests.forEach((request, index) => this.told.push({ request, answer: answers[index]! }));
  }

  private requestOf(one: Deed, organization: OrganizationView): Stamped | undefined {
    const { by, which, how } = one;
    const signer = this.signerOf(organization, one.kind === 'doom' ? 0 : by, how);
    if (!signer) return undefined;
    const users = [...organization.users.keys()];
    const tags = [...organization.userTags.keys()];
    const policies = [...organization.policies.keys()];
    const open = [...organization.openActivities.values()];
    // Users manage their own credentials as often as those of others.
    const owner = pick([...organization.users.values()], which % 2 ? by : which)!;
    const submit = (type: string, parameters: object) =>
      this.coordinator.stamp(signer, `ACTIVITY_TYPE_${type}`, parameters);

    switch (one.kind) {
      case 'wait':
        this.coordinator.clock.advance(pick(['90s', '30m', '11h', '25h', '25h'] as const, how)!);
        return undefined;
      case 'vote': {
        const target = pick(open, which);
        const verb = how % 6 === 0 ? 'REJECT_ACTIVITY' : 'APPROVE_ACTIVITY';
        return target && submit(verb, { fingerprint: target.fingerprint });
      }
      case 'resend':
        return pick(this.told, which)?.request;
      case 'echo': {
        const known = pick(this.told, which)?.request;
        return known && this.coordinator.stampAgain({ key: signer }, known.path, known.body);
      }
      case 'name':
        return submit('UPDATE_USER_NAME', { userId: pick(users, which), userName: this.name('user') });
      case 'email':
        return submit('UPDATE_USER_EMAIL', { userId: pick(users, which), userEmail: how % 2 ? 'a@example.com' : '' });
      case 'user': {
        const authenticators = how % 3 === 0 ? [this.newPasskey(), this.newPasskey()] : [];
        const user = { userName: this.name('user'), apiKeys: [this.newKey(how)], authenticators, oauthProviders: [] };
        return submit('CREATE_USERS_V4', { users: [{ ...user, userTags: some(tags, which) }] });
      }
      case 'doom': {
        // What somebody waits to have done can no longer be done.
        const { userId, policyId } = (pick(open, which)?.intent ?? {}) as { userId?: string; policyId?: string };
        if (userId !== undefined) return submit('DELETE_USERS', { userIds: [userId] });
        return policyId === undefined ? undefined : submit('DELETE_POLICY', { policyId });
      }
      case 'users-gone':
        return submit('DELETE_USERS', { userIds: some(users, which, 1) });
      case 'tag':
        return submit('CREATE_USER_TAG', { userTagName: this.name('tag'), userIds: some(users, which) });
      case 'retag': {
        const userTagId = pick(tags, which);
        const moves = { addUserIds: some(users, how), removeUserIds: some(users, how >> 3) };
        return userTagId === undefined
          ? undefined
          : submit('UPDATE_USER_TAG', { userTagId, newUserTagName: this.name('tag'), ...moves });
      }
      case 'tags-gone':
        return submit('DELETE_USER_TAGS', { userTagIds: some(tags, which, 1) });
      case 'policy':
        return submit('CREATE_POLICY_V3', this.policy(organization, one));
      case 'policies': {
        const another = this.policy(organization, { ...one, which: which + 1, how: how + 3 });
        return submit('CREATE_POLICIES', { policies: [this.policy(organization, one), another] });
      }
      case 'policy-change': {
        const policyId = pick(policies, which);
        const policyConsensus = consensusOf(organization, by, how);
        return policyId === undefined ? undefined : submit('UPDATE_POLICY_V2', { policyId, policyConsensus });
      }
      case 'policy-gone': {
        const policyId = pick(policies, which);
        if (how % 4 === 0 && policyId) return submit('DELETE_POLICIES', { policyIds: some(policies, how, 1) });
        return policyId === undefined ? undefined : submit('DELETE_POLICY', { policyId });
      }
      case 'quorum': {
        const userIds = some(users, which | 1, 1);
        return submit('UPDATE_ROOT_QUORUM', { threshold: 1 + (how % userIds.length), userIds });
      }
      case 'key': {
        const expiring = how % 2 ? { expirationSeconds: '3600' } : {};
        return submit('CREATE_API_KEYS_V2', { userId: owner.userId, apiKeys: [{ ...this.newKey(how), ...expiring }] });
      }
      case 'key-gone': {
        const gone = pick(owner.apiKeys, how);
        return gone && submit('DELETE_API_KEYS', { userId: owner.userId, apiKeyIds: [gone.apiKeyId] });
      }
      case 'passkey': {
        // Now and then one that somebody has already, which is found out only when it is decided.
        const taken =
          how % 4 === 0 ? [...this.signers.values()].find((one) => one instanceof SeededPasskey) : undefined;
        const authenticators = [taken ? taken.register('again') : this.newPasskey()];
        return submit('CREATE_AUTHENTICATORS_V2', { userId: owner.userId, authenticators });
      }
      case 'passkey-gone': {
        const gone = pick(owner.authenticators, how);
        return (
          gone && submit('DELETE_AUTHENTICATORS', { userId: owner.userId, authenticatorIds: [gone.authenticatorId] })
        );
      }
      case 'organization-name':
        return submit('UPDATE_ORGANIZATION_NAME', { organizationName: this.name('organization') });
      case 'feature':
        return submit('SET_ORGANIZATION_FEATURE', { name: pick(features, how), value: 'https://wallet.example.com' });
      case 'feature-gone':
        return submit('REMOVE_ORGANIZATION_FEATURE', { name: pick(features, how) });
    }
  }

  /** A credential of a user as of now; expired ones are tried too. */
  private signerOf({ users }: OrganizationView, by: number, how: number): Signer | undefined {
    const user = pick([...users.values()], by);
    const credentials = user && [
      ...user.apiKeys.map(({ publicKey }) => publicKey),
      ...user.authenticators.map(({ credentialId }) => credentialId),
    ];
    return this.signers.get(pick(credentials ?? [], how) ?? '');
  }

  private policy(organization: OrganizationView, { by, which, how }: Choice) {
    const optional = {
      condition: pick(conditions, which),
      consensus: consensusOf(organization, by, how),
      time: pick(times, by),
    };
    const given = Object.entries(optional).filter(([, text]) => text !== undefined);
    return {
      policyName: this.name('policy'),
      effect: (which + how) % 6 === 0 ? 'EFFECT_DENY' : 'EFFECT_ALLOW',
      notes: '',
      ...Object.fromEntries(given),
    };
  }

  private newKey(index: number) {
    const key = generateApiKeyPair((bytes) => this.randomness.bytes(bytes), curves[index % curves.length]);
    this.know(key);
    return { apiKeyName: this.name('key'), publicKey: key.publicKey, curveType: key.curve };
  }

  private newPasskey() {
    const passkey = new SeededPasskey(this.name('seed'));
    this.know(passkey);
    return passkey.register(this.name('passkey'));
  }

  private know(signer: Signer): void {
    this.signers.set(signer instanceof SeededPasskey ? signer.credentialId : signer.publicKey, signer);
    this.secrets.push(signer.privateKey);
  }

  private name(of: string): string {
    this.count += 1;
    return `${of} ${this.count}`;
  }
}

const features = ['FEATURE_NAME_WEBAUTHN_ORIGINS', 'FEATURE_NAME_EMAIL_AUTH', 'FEATURE_NAME_WEBHOOK'] as const;

const conditions = [
  undefined,
  'true',
  "activity.resource == 'USER'",
  "activity.resource == 'USER' && activity.action == 'UPDATE'",
  "activity.resource in ['POLICY', 'CREDENTIAL']",
  "activity.kind == 'UPDATE_USER_NAME' || activity.type == 'ACTIVITY_TYPE_CREATE_POLICY_V3'",
  // An error for every verb that has no such parameter.
  'activity.params.user_ids.count() == 1',
] as const;

const times = [
  undefined,
  undefined,
  undefined,
  "time.now < Timestamp('2026-01-02T00:00:00Z')",
  "CronSpan('0 0 * * *', '12h', 'Europe/Berlin')",
] as const;

function consensusOf({ users, userTags }: OrganizationView, by: number, how: number): string | undefined {
  const user = pick([...users.keys()], by);
  const another = pick([...users.keys()], by + 1);
  const tag = pick([...userTags.keys()], by) ?? 'none';
  return pick(
    [
      undefined,
      'approvers.count() >= 2',
      'approvers.count() >= 2',
      `approvers.any(one, one.id == '${user}') && approvers.any(one, one.id == '${another}')`,
      `approvers.any(one, one.id == '${user}') || approvers.count() >= 3`,
      `approvers.filter(one, one.tags.contains('${tag}')).count() >= 2`,
      `approvers.any(one, one.tags.contains('${tag}')) && approvers.count() >= 2`,
      "credentials.any(one, one.type == 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR')",
      `approvers.all(one, one.tags.contains('${tag}'))`,
      `!approvers.any(one, one.id == '${user}') && approvers.count() >= 2`,
      `approvers[1].id == '${user}'`,
      "approvers.any(one, one.email == 'bob@example.com')",
    ],
    how,
  );
}

function pick<Item>(items: readonly Item[], choice: number): Item | undefined {
  return items[choice % Math.max(1, items.length)];
}

/** A part of the items, as the bits of the choice say; at least so many. */
function some<Item>(items: readonly Item[], choice: number, least = 0): Item[] {
  const chosen = items.filter((_, index) => (choice >> (index % 10)) & 1);
  return chosen.length >= least ? chosen : items.slice(0, least);
}
