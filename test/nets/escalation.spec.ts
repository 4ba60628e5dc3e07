import { readFileSync } from 'node:fs';
import {
  ApiError,
  SeededRandomness,
  send,
  startCoordinator,
  submitPath,
  type ApiKeyPair,
  type StampingClient,
  type TestCoordinator,
} from '../../src/testing/index.js';
import { IdentityProvider } from '../e2e/identity-provider.js';
import { clientSignature, codeOf } from '../e2e/one-time-codes.js';
import { furnish, sampleSettings, sealedTo, submitSamples, type Furnished } from '../e2e/samples.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { isLong } from '../long.js';

/**
 * Members who may do one thing each, and try to do more with it: for every verb a member with an ALLOW for just that, who
 * first does what the grant says, and then up to three steps more, drawn from a seed: requests of every verb aimed at the
 * root user, at others and at itself, the public proxy with a mailbox, a telephone and an identity of its own, and every key
 * and passkey that it has got hold of. After each step nothing of others may have changed, nor have become a way in for the member, but for
 * what is listed here.
 */

/** What a grant of one kind reaches beyond its own effect; the same list stands in docs/how-to/grant-narrowly.md. */
const documented: Readonly<Record<string, 'people' | 'sessions' | 'proxy' | 'logins'>> = {
  // Credentials, contacts and identities of users outside the root quorum are what these are about.
  CREATE_API_KEYS: 'people',
  CREATE_AUTHENTICATORS: 'people',
  CREATE_OAUTH_PROVIDERS: 'people',
  DELETE_API_KEYS: 'people',
  DELETE_AUTHENTICATORS: 'people',
  DELETE_OAUTH_PROVIDERS: 'people',
  DELETE_USERS: 'people',
  UPDATE_USER: 'people',
  UPDATE_USER_EMAIL: 'people',
  UPDATE_USER_PHONE_NUMBER: 'people',
  // Whoever writes policies may write one for each of the above.
  CREATE_POLICIES: 'people',
  CREATE_POLICY: 'people',
  UPDATE_POLICY: 'people',
  // Sends somebody a key that ends, to a proved address; others that end make room for it.
  EMAIL_AUTH: 'sessions',
  // The user of the proxy ends with it.
  DISABLE_AUTH_PROXY: 'proxy',
  // A contact of a sub-organization's user logs nobody in any more; nobody gets in by that.
  RELEASE_CONTACT: 'logins',
};

/** Verbs that no grant gives, with why. */
const ungrantable: Readonly<Record<string, string>> = {
  ACCEPT_INVITATION: 'by the key of its link',
  APPROVE_ACTIVITY: 'a vote',
  REJECT_ACTIVITY: 'a vote',
  DELETE_SUB_ORGANIZATION: 'in a sub-organization, by a root user of it',
  REMOVE_ORGANIZATION_FEATURE: 'root quorum only',
  SET_ORGANIZATION_FEATURE: 'root quorum only',
  UPDATE_ORGANIZATION_NAME: 'root quorum only',
  UPDATE_ROOT_QUORUM: 'root quorum only',
};

/** Sequences for each verb, and for those that name a user. */
const sequences = isLong ? { any: 10, people: 60 } : { any: 1, people: 5 };
const mostSteps = 4;

const random = new SeededRandomness('escalation');
const below = (count: number, from = random): number => Buffer.from(from.bytes(4)).readUInt32BE() % count;
const pick = <Value>(values: readonly Value[]): Value => values[below(values.length)]!;
const chance = (of: number): boolean => below(of) === 0;

type Parameters = Record<string, unknown>;
interface Listed {
  readonly userId: string;
  readonly userName: string;
  readonly userEmail?: string;
  readonly userPhoneNumber?: string;
  readonly apiKeys: readonly { apiKeyId: string; credential: { publicKey: string }; expirationSeconds?: string }[];
  readonly authenticators: readonly { authenticatorId: string; credentialId: string }[];
  readonly oauthProviders: readonly { providerId: string; subject: string }[];
}

/** What only members of a parent may do, in its sub-organization. */
const inChild = (type: string): boolean => kindOf(type) === 'RELEASE_CONTACT';

const kindOf = (type: string): string => submitPath(type).split('/').at(-1)!.toUpperCase();

let provider: IdentityProvider;
const started: TestCoordinator[] = [];

beforeAll(async () => {
  provider = await IdentityProvider.start();
});
afterAll(async () => {
  await Promise.all(started.map((one) => one.close()));
  await provider.close();
});

const everyMethod = { allowedAuthMethods: ['email', 'sms', 'passkey', 'wallet', 'oauth'] };

/** An organization with one of everything, and a root user who has every way in. */
class Place {
  private constructor(
    readonly coordinator: TestCoordinator,
    readonly furnished: Furnished,
    readonly samples: Readonly<Record<string, object>>,
    /** Root user of a sub-organization that the parent has founded, with an address that it has asserted. */
    readonly child: StampingClient,
    private configId = coordinator.root.authProxyConfigId,
  ) {}

  static async open(): Promise<Place> {
    const settings = {
      ...sampleSettings,
      PROXY_RATE_LIMIT_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
      PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONTACT: '0',
    };
    const coordinator = await startCoordinator({ seed: `escalation ${started.length}`, settings });
    started.push(coordinator);
    const furnished = await furnish(coordinator);
    const { client, root, newKey, clock } = coordinator;
    const { userId } = root;
    const childKey = newKey();
    const { result } = await client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: 'a customer',
      rootQuorumThreshold: 1,
      rootUsers: [{ userName: 'Customer', userEmail: 'customer@example.com', apiKeys: [apiKeyOf(childKey)] }],
    });
    const { subOrganizationId } = Object.values(result)[0] as { subOrganizationId: string };
    const oidcToken = await provider.idToken({ subject: 'root', at: clock.now() });
    await client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', { userId, apiKeys: [apiKeyOf(newKey())] });
    await client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
      userId,
      authenticators: [{ authenticatorName: 'passkey', ...new SoftwareAuthenticator().register() }],
    });
    await client.submit('ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', {
      userId,
      oauthProviders: [{ providerName: 'identity', oidcToken }],
    });
    const place = new Place(
      coordinator,
      furnished,
      submitSamples(furnished),
      coordinator.clientFor(childKey, subOrganizationId),
    );
    await client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', everyMethod);
    const { verificationToken } = await place.proved('root@example.com');
    const userEmail = 'root@example.com';
    await client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId, userEmail, verificationToken });
    await client.submit('ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER', { userId, userPhoneNumber: '+12025550100' });
    return place;
  }

  async proxied(name: string, body: object): Promise<Readonly<Record<string, string>>> {
    const ask = async () => {
      const headers = { 'x-auth-proxy-config-id': this.configId, origin: 'https://app.example.com' };
      const url = `${this.coordinator.url}/v1/${name}`;
      return (await send<Readonly<Record<string, string>>>(url, JSON.stringify(body), headers)).body;
    };
    return ask().catch(async (error: unknown) => {
      const { client } = this.coordinator;
      const isOff = error instanceof ApiError && error.status === 404;
      if (!isOff && !(error instanceof ApiError && error.body.message.includes(' disallowed'))) throw error;
      // Somebody may disable it, or change what it allows; the root user wants it back.
      if (isOff) {
        const { result } = await client.submit('ACTIVITY_TYPE_ENABLE_AUTH_PROXY', {});
        this.configId = (Object.values(result)[0] as { configId: string }).configId;
      }
      this.coordinator.clock.advance(1);
      await client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', everyMethod);
      return ask();
    });
  }

  /** What the public proxy gives to whoever receives what is sent to a contact. */
  async proved(contact: string): Promise<{ readonly key: ApiKeyPair; readonly verificationToken: string }> {
    // What is sent to one address is counted by the minute.
    this.coordinator.clock.advance('90s');
    const key = this.coordinator.newKey();
    const { otpId } = await this.proxied('otp_init', { otpType: otpTypeOf(contact), contact });
    const otpCode = await codeOf(this.coordinator, otpId!);
    const { verificationToken } = await this.proxied('otp_verify', { otpId, otpCode, publicKey: key.publicKey });
    return { key, verificationToken: verificationToken! };
  }

  /** The same from the organization's own back end: what the proxy gives logs in to sub-organizations only. */
  async provedToBackEnd(contact: string): Promise<{ readonly key: ApiKeyPair; readonly verificationToken: string }> {
    const { client, clock, newKey } = this.coordinator;
    clock.advance('90s');
    const key = newKey();
    const asked = { otpType: otpTypeOf(contact), contact, ...(contact.startsWith('+') ? {} : { appName: 'App' }) };
    const { otpId } = resultOf<{ otpId: string }>(await client.submit('ACTIVITY_TYPE_INIT_OTP_V3', asked));
    const otpCode = await codeOf(this.coordinator, otpId);
    const verified = await client.submit('ACTIVITY_TYPE_VERIFY_OTP', { otpId, otpCode, publicKey: key.publicKey });
    return { key, ...resultOf<{ verificationToken: string }>(verified) };
  }

  async users(client = this.coordinator.client): Promise<ReadonlyMap<string, Listed>> {
    const { users } = await client.query<{ users: readonly Listed[] }>('list_users');
    return new Map(users.map((user) => [user.userId, user]));
  }

  /** What only the root quorum may change. */
  async foundations(): Promise<string> {
    const { client } = this.coordinator;
    const { organizationName } = await client.query('whoami');
    return JSON.stringify([organizationName, await client.query('get_organization_configs')]);
  }
}

function apiKeyOf({ publicKey }: ApiKeyPair) {
  return { apiKeyName: `key ${publicKey.slice(-8)}`, publicKey, curveType: 'API_KEY_CURVE_P256' };
}

const otpTypeOf = (contact: string): string => (contact.startsWith('+') ? 'OTP_TYPE_SMS' : 'OTP_TYPE_EMAIL');

/** What somebody logs in with, as text; without what ends by itself if `lasting`. */
function waysIn({ apiKeys, authenticators, oauthProviders, userEmail, userPhoneNumber }: Listed, lasting = false) {
  const keys = apiKeys.filter(({ expirationSeconds }) => !lasting || expirationSeconds === undefined);
  return JSON.stringify([
    keys.map(({ apiKeyId }) => apiKeyId),
    authenticators.map(({ authenticatorId }) => authenticatorId),
    oauthProviders.map(({ providerId }) => providerId),
    userEmail ?? '',
    userPhoneNumber ?? '',
  ]);
}

/** The one result of an activity. */
const resultOf = <Result>({ result }: { readonly result: object }): Result => Object.values(result)[0] as Result;

/** What has been tried, by verb or by endpoint of the proxy. */
const tried = new Map<string, { accepted: number; refused: number }>();

function count(what: string, isAccepted: boolean): void {
  const row = tried.get(what) ?? { accepted: 0, refused: 0 };
  row[isAccepted ? 'accepted' : 'refused'] += 1;
  tried.set(what, row);
}

/** What a request is stamped with. */
type Hand = ApiKeyPair | SoftwareAuthenticator;

/** Somebody with one grant, and all that comes into these hands. */
class Member {
  readonly keys: ApiKeyPair[] = [];
  /** Public keys that were given to somebody by a grant, and not with a key of the one who got them. */
  readonly given = new Set<string>();
  readonly passkeys = new Map<string, SoftwareAuthenticator>();
  readonly email: string;
  readonly phone: string;
  /** Which of them the member has proved: the mailbox, but for every third one. */
  readonly proved: string;
  readonly subject: string;
  readonly granted: string[];
  readonly log: string[] = [];
  policyId = '';
  userId = '';
  victim = '';
  /** Everybody, as after the last step. */
  now: ReadonlyMap<string, Listed> = new Map();
  private wentElsewhere = false;
  private before: ReadonlyMap<string, Listed> = new Map();
  private children: ReadonlyMap<string, Listed> = new Map();
  private fundamentals = '';

  constructor(
    readonly place: Place,
    readonly kind: string,
    readonly number: number,
  ) {
    this.email = `mallory-${number}@example.com`;
    this.phone = `+1202556${String(number % 10_000).padStart(4, '0')}`;
    // The codes of the older verbs come by mail.
    this.proved = number % 3 === 0 && !/^(?:EMAIL|INIT_OTP|OTP)_AUTH$/.test(kind) ? this.phone : this.email;
    this.subject = `mallory ${number}`;
    this.granted = [kind];
  }

  /** The member with its grant, and somebody else beside it who has every way in. */
  async begin(): Promise<void> {
    const { coordinator } = this.place;
    const { client, clock } = coordinator;
    const { verificationToken } = await this.place.proved(this.proved);
    const oidcToken = await provider.idToken({ subject: `victim ${this.number}`, at: clock.now() });
    const { result } = await client.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
      users: [
        { userName: `Mallory ${this.number}`, userPhoneNumber: this.phone, apiKeys: [apiKeyOf(this.newKey())] },
        {
          userName: `Victim ${this.number}`,
          userEmail: `victim-${this.number}@example.com`,
          userPhoneNumber: `+1202557${String(this.number % 10_000).padStart(4, '0')}`,
          apiKeys: [apiKeyOf(coordinator.newKey()), apiKeyOf(coordinator.newKey())],
          authenticators: [{ authenticatorName: 'passkey', ...new SoftwareAuthenticator().register() }],
          oauthProviders: [{ providerName: 'identity', oidcToken }],
        },
      ],
    });
    const { userIds } = Object.values(result)[0] as { userIds: [string, string] };
    [this.userId, this.victim] = userIds;
    await client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', {
      userId: this.userId,
      userEmail: this.email,
      ...(this.proved === this.email ? { verificationToken } : {}),
    });
    if (this.proved === this.phone) {
      await client.submit('ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER', {
        userId: this.userId,
        userPhoneNumber: this.phone,
        verificationToken,
      });
    }
    this.policyId = await coordinator.createPolicy({
      policyName: `grant ${this.number}`,
      condition: `activity.kind == '${this.kind}'`,
      consensus: `approvers.any(user, user.id == '${this.userId}')`,
    });
    this.before = await this.place.users();
    this.now = this.before;
    this.children = await this.place.users(this.place.child);
    this.fundamentals = await this.place.foundations();
  }

  /** Takes back the grants and all who came, so that the next one stands alone. */
  async end(): Promise<void> {
    expect([this.kind, this.log, await this.place.foundations()]).toEqual([this.kind, this.log, this.fundamentals]);
    const { client } = this.place.coordinator;
    const { policies } = await client.query<{ policies: readonly { policyId: string; policyName: string }[] }>(
      'list_policies',
    );
    const policyIds = policies
      .filter(({ policyName }) => /^(?:grant|mine) /.test(policyName))
      .map((one) => one.policyId);
    if (policyIds.length > 0) await client.submit('ACTIVITY_TYPE_DELETE_POLICIES', { policyIds });
    const came = [...(await this.place.users()).values()].filter(
      ({ userId, userName }) =>
        userName !== 'Auth proxy' && (userId === this.userId || userId === this.victim || !this.before.has(userId)),
    );
    if (came.length > 0)
      await client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds: came.map(({ userId }) => userId) });
  }

  newKey(): ApiKeyPair {
    const key = this.place.coordinator.newKey();
    this.keys.push(key);
    return key;
  }

  newPasskey() {
    const passkey = new SoftwareAuthenticator();
    this.passkeys.set(passkey.credentialId, passkey);
    return { authenticatorName: `passkey ${passkey.credentialId.slice(0, 8)}`, ...passkey.register() };
  }

  token(publicKey?: string): Promise<string> {
    const at = this.place.coordinator.clock.now();
    return provider.idToken({ subject: this.subject, at, ...(publicKey ? { publicKey } : {}) });
  }

  /** Sends a request with a key or a passkey of these hands. */
  async send(type: string, parameters: object, hand: Hand = this.keys[0]!, organizationId?: string): Promise<boolean> {
    const { coordinator } = this.place;
    const isPasskey = hand instanceof SoftwareAuthenticator;
    const where = organizationId ?? (inChild(type) ? this.place.child.organizationId : undefined);
    const who = isPasskey ? 'passkey' : `key ${this.keys.indexOf(hand)}`;
    this.wentElsewhere ||= where !== undefined;
    const attempt = isPasskey
      ? sentByPasskey(coordinator, hand, type, parameters, where)
      : coordinator.clientFor(hand, where).submit(type, parameters);
    const isAccepted = await attempt.then(
      ({ status }) => status === 'ACTIVITY_STATUS_COMPLETED',
      (error: unknown) => {
        if (!(error instanceof ApiError) || error.status >= 500) throw error;
        this.log.push(`  refused: ${error.body.message}`.slice(0, 240));
        return false;
      },
    );
    this.log.push(`${isAccepted ? 'done' : 'not done'} by ${who}: ${type} ${JSON.stringify(parameters).slice(0, 300)}`);
    count(kindOf(type), isAccepted);
    if (isPasskey) count('(stamped by a passkey)', isAccepted);
    return isAccepted;
  }

  /** What no step may bring about. */
  async check(): Promise<void> {
    const reach = documented[this.kind];
    const { root } = this.place.coordinator;
    const after = await this.place.users();
    this.now = after;
    const problems: string[] = [];
    for (const [userId, was] of this.before) {
      if (userId === this.userId) continue;
      const is = after.get(userId);
      const isSame = (lasting: boolean) => is !== undefined && waysIn(is, lasting) === waysIn(was, lasting);
      const isRoot = userId === root.userId;
      const isProxy = was.userName === 'Auth proxy' && reach === 'proxy';
      const isAllowed = (reach === 'people' && !isRoot) || (reach === 'sessions' && isSame(true)) || isProxy;
      if (!isSame(false) && !isAllowed) problems.push(`ways in of \`${was.userName}\` have changed`);
      if (is && this.holds(is) && (isRoot || reach !== 'people')) problems.push(`\`${was.userName}\` is in its hands`);
    }
    const children = this.wentElsewhere ? await this.place.users(this.place.child) : this.children;
    this.wentElsewhere = false;
    for (const [userId, was] of this.children) {
      const is = children.get(userId);
      if (!is || waysIn(is, reach === 'sessions') !== waysIn(was, reach === 'sessions') || this.holds(is)) {
        problems.push('a user of the sub-organization was touched');
      }
    }
    expect([this.kind, this.log, problems]).toEqual([this.kind, this.log, []]);
  }

  /** The root user, in good faith, takes the victim into the quorum: then nothing in these hands may be the victim's. */
  async promote(): Promise<void> {
    const { client, root } = this.place.coordinator;
    const quorum = (userIds: readonly string[]) =>
      client.submit('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', { threshold: 1, userIds });
    const isTaken = await quorum([root.userId, this.victim]).then(
      () => true,
      (error: unknown) => {
        if (error instanceof ApiError && error.status === 400) return false;
        // Deleted, if that is what the grant is.
        if (error instanceof ApiError && error.status === 404) return false;
        throw error;
      },
    );
    count('(taken into the root quorum)', isTaken);
    if (!isTaken) return;
    const victim = (await this.place.users()).get(this.victim)!;
    expect([this.kind, this.log, this.holds(victim)]).toEqual([this.kind, this.log, false]);
    await quorum([root.userId]);
  }

  /** Whether the user could be entered with something of these hands. */
  holds({ apiKeys, authenticators, oauthProviders, userEmail, userPhoneNumber }: Listed): boolean {
    return (
      apiKeys.some(({ credential }) => this.keys.some(({ publicKey }) => publicKey === credential.publicKey)) ||
      authenticators.some(({ credentialId }) => this.passkeys.has(credentialId)) ||
      oauthProviders.some(({ subject }) => subject === this.subject) ||
      userEmail === this.email ||
      userPhoneNumber === this.phone
    );
  }
}

/** A request that is stamped by a passkey. */
async function sentByPasskey(
  { url, client, clientFor, newKey }: TestCoordinator,
  passkey: SoftwareAuthenticator,
  type: string,
  parameters: object,
  organizationId = client.organizationId,
): Promise<{ readonly status: string }> {
  const body = clientFor(newKey(), organizationId).submitBody(type, parameters);
  const header = { 'x-stamp-webauthn': passkey.assert({ body }) };
  return (await send<{ activity: { status: string } }>(`${url}${submitPath(type)}`, body, header)).body.activity;
}

/** Requests of a verb as the grant means them, for whoever has it: the sample, with the member's own where one is asked for. */
async function plain(member: Member, type: string): Promise<object> {
  const { coordinator, samples } = member.place;
  const { client } = coordinator;
  const publicKey = () => member.newKey().publicKey;
  const emailCustomization = { appName: 'App' };
  const otp = { otpType: 'OTP_TYPE_EMAIL', contact: member.email, appName: 'App' };
  const init = async (kind: 'WALLET' | 'PRIVATE_KEY', secret: string | Uint8Array) => {
    const { result } = await client.submit(`ACTIVITY_TYPE_INIT_IMPORT_${kind}`, { userId: member.userId });
    const { importBundle } = Object.values(result)[0] as { importBundle: string };
    return { userId: member.userId, encryptedBundle: sealedTo(importBundle, secret) };
  };
  const sample = samples[type]!;
  switch (kindOf(type)) {
    case 'RELEASE_CONTACT':
      return { contact: 'customer@example.com' };
    case 'EMAIL_AUTH':
      return { email: member.email, targetPublicKey: publicKey(), emailCustomization };
    case 'INIT_OTP_AUTH':
      return otp;
    case 'OTP_AUTH': {
      const { result } = await client.submit('ACTIVITY_TYPE_INIT_OTP_AUTH_V3', otp);
      const { otpId } = Object.values(result)[0] as { otpId: string };
      return { otpId, otpCode: await codeOf(coordinator, otpId), targetPublicKey: publicKey() };
    }
    case 'OTP_LOGIN':
      return login(member, await member.place.provedToBackEnd(member.proved));
    case 'OAUTH':
    case 'OAUTH_LOGIN': {
      const oauthProviders = [{ providerName: 'mine', oidcToken: await member.token() }];
      const asked = { userId: member.userId, oauthProviders };
      await client.submit('ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', asked).catch((error: unknown) => {
        // An earlier step has given the identity to somebody.
        if (!(error instanceof ApiError) || error.status !== 409) throw error;
      });
      const key = publicKey();
      const oidcToken = await member.token(key);
      return kindOf(type) === 'OAUTH' ? { oidcToken, targetPublicKey: key } : { oidcToken, publicKey: key };
    }
    case 'IMPORT_WALLET':
      return { ...sample, ...(await init('WALLET', 'test test test test test test test test test test test junk')) };
    case 'IMPORT_PRIVATE_KEY':
      return { ...sample, ...(await init('PRIVATE_KEY', Buffer.alloc(32, 1 + (member.number % 250)))) };
    case 'CREATE_POLICY':
      return policy(member);
    case 'CREATE_POLICIES':
      return { policies: [policy(member)] };
    case 'UPDATE_POLICY': {
      const kind = pick(Object.keys(documented));
      member.granted.push(kind);
      return { policyId: member.policyId, policyCondition: `activity.kind in ['UPDATE_POLICY', '${kind}']` };
    }
    default:
      return sample;
  }
}

/** A login with a token of the member's own mailbox. */
async function login(
  member: Member,
  proof?: { readonly key: ApiKeyPair; readonly verificationToken: string },
): Promise<{ publicKey: string; verificationToken: string; clientSignature: object }> {
  const { key, verificationToken } = proof ?? (await member.place.proved(pick([member.email, member.phone])));
  const { publicKey } = member.newKey();
  const asked = { login: { publicKey } };
  return {
    publicKey,
    verificationToken,
    clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_LOGIN', asked),
  };
}

/** A policy by which the member may do one thing more. */
function policy(member: Member) {
  const kind = pick(Object.keys(documented));
  member.granted.push(kind);
  return {
    policyName: `mine ${member.number} ${member.granted.length}`,
    effect: 'EFFECT_ALLOW',
    condition: `activity.kind == '${kind}'`,
    consensus: `approvers.any(user, user.id == '${member.userId}')`,
    notes: '',
  };
}

/** The same request, aimed at somebody, with what is in the member's hands wherever something of a person is asked for. */
async function aimed(member: Member, type: string, target: Listed): Promise<object> {
  if (
    ['CREATE_POLICY', 'CREATE_POLICIES', 'UPDATE_POLICY', 'OTP_LOGIN', 'OAUTH', 'OAUTH_LOGIN'].includes(kindOf(type))
  ) {
    return plain(member, type);
  }
  const others = { email: target.userEmail ?? member.email, phone: target.userPhoneNumber ?? member.phone };
  const email = pick([member.email, member.email, others.email]);
  const oidcToken = await member.token();
  const idsOf: Readonly<Record<string, () => readonly string[]>> = {
    apiKeyIds: () => target.apiKeys.slice(0, 1).map(({ apiKeyId }) => apiKeyId),
    authenticatorIds: () => target.authenticators.map(({ authenticatorId }) => authenticatorId),
    providerIds: () => target.oauthProviders.map(({ providerId }) => providerId),
  };
  const change = (value: unknown, name: string): unknown => {
    if (Array.isArray(value)) {
      if (/userIds$/i.test(name)) return [target.userId];
      return idsOf[name]?.() ?? value.map((element) => change(element, name));
    }
    if (typeof value === 'object' && value !== null) {
      if ('apiKeyName' in value && 'publicKey' in value) {
        const given = member.newKey();
        member.given.add(given.publicKey);
        return { ...value, ...apiKeyOf(given) };
      }
      if ('attestation' in value) return member.newPasskey();
      if ('providerName' in value) return { providerName: 'mine', oidcToken };
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, change(inner, key)]));
    }
    if (/^(?:userId|senderUserId)$/.test(name)) return target.userId;
    if (/^(?:userEmail|email|contact|receiverUserEmail)$/.test(name)) return email;
    if (name === 'userPhoneNumber') return pick([member.phone, others.phone]);
    if (/^(?:publicKey|targetPublicKey)$/.test(name)) return member.newKey().publicKey;
    if (/^(?:userName|receiverUserName|userTagName|newUserTagName|invitationName)$/.test(name)) {
      return `renamed ${member.number} ${below(1_000_000)}`;
    }
    return value;
  };
  const parameters = change(member.place.samples[type], '') as Parameters;
  if (kindOf(type) === 'UPDATE_USER')
    Object.assign(parameters, pick([{}, { userEmail: email }, { userPhoneNumber: member.phone }]));
  if (kindOf(type) === 'UPDATE_USER_EMAIL' && email === member.email && chance(2)) {
    parameters['verificationToken'] = (await member.place.proved(member.email)).verificationToken;
  }
  if (kindOf(type) === 'UPDATE_USER_PHONE_NUMBER' && parameters['userPhoneNumber'] === member.phone && chance(2)) {
    parameters['verificationToken'] = (await member.place.proved(member.phone)).verificationToken;
  }
  return parameters;
}

/** One step more, drawn. */
async function step(member: Member, types: readonly string[], round?: number): Promise<void> {
  const { place, victim, userId, keys, now: users } = member;
  const { root } = place.coordinator;
  const target = users.get(pick([root.userId, root.userId, victim, victim, userId])) ?? users.get(userId);
  if (!target) return;
  // Keys that are somebody else's by now are tried before those that are the member's own or nobody's.
  const ownerOf = (hand: Hand) =>
    [...users.values()].find(({ apiKeys, authenticators }) =>
      hand instanceof SoftwareAuthenticator
        ? authenticators.some(({ credentialId }) => credentialId === hand.credentialId)
        : apiKeys.some(({ credential }) => credential.publicKey === hand.publicKey),
    );
  const hands: readonly Hand[] = [...keys, ...member.passkeys.values()];
  const held = hands.filter((hand) => ownerOf(hand) !== undefined);
  const others = held.filter((hand) => ownerOf(hand)!.userId !== userId);
  const key = pick(others.length > 0 && !chance(8) ? others : held.length > 0 ? held : keys);
  const owner = ownerOf(key);
  const typeOf = (kind: string) => types.find((type) => kindOf(type) === kind)!;
  if (round !== undefined) {
    // What the grant says, of somebody whom it may be about and of the root user.
    const type = typeOf(member.kind);
    const first = users.get(round % 4 === 1 ? root.userId : victim) ?? target;
    await member.send(type, await aimed(member, type, first));
    return;
  }
  if (owner?.userId === victim && !chance(8)) return launder(member, key, owner);
  const organizationId = chance(8) ? place.child.organizationId : undefined;
  const self = owner?.userId ?? userId;
  switch (below(10)) {
    case 0:
    case 1:
    case 2:
    case 3: {
      const type = typeOf(pick(member.granted));
      await member.send(type, await aimed(member, type, target), pick([keys[0]!, key]), organizationId);
      return;
    }
    case 4: {
      const type = pick(types);
      await member.send(type, await aimed(member, type, target), key, organizationId);
      return;
    }
    case 5: {
      const apiKeys = [apiKeyOf(member.newKey())];
      await member.send('ACTIVITY_TYPE_CREATE_API_KEYS_V2', { userId: self, apiKeys }, key);
      return;
    }
    case 6:
      await member.send('ACTIVITY_TYPE_STAMP_LOGIN', { publicKey: member.newKey().publicKey }, key);
      return;
    case 7: {
      // What was given to somebody is taken away again, once it has served.
      const given = owner?.apiKeys.find(({ credential }) =>
        keys.some(({ publicKey }) => publicKey === credential.publicKey),
      );
      const apiKeyIds = [given?.apiKeyId ?? target.apiKeys[0]?.apiKeyId ?? userId];
      await member.send('ACTIVITY_TYPE_DELETE_API_KEYS', { userId: self, apiKeyIds }, key);
      return;
    }
    case 8: {
      const body = {
        ...(await login(member)),
        ...(chance(2) ? { organizationId: place.coordinator.organizationId } : {}),
      };
      await proxied(member, 'otp_login', body);
      return;
    }
    default: {
      const { publicKey } = member.newKey();
      await proxied(member, 'oauth_login', { publicKey, oidcToken: await member.token(publicKey) });
    }
  }
}

/**
 * Hides where a way in has come from: whoever has put a key on somebody gets another with it, as that somebody, and takes
 * the first away.
 */
async function launder(member: Member, key: Hand, { userId, apiKeys, authenticators }: Listed): Promise<void> {
  const given = apiKeys.filter(({ credential }) => member.given.has(credential.publicKey));
  const others =
    apiKeys.some(({ credential: { publicKey } }) =>
      member.keys.some((one) => one.publicKey === publicKey && !member.given.has(publicKey)),
    ) || authenticators.some(({ credentialId }) => member.passkeys.has(credentialId));
  if (others && given.length > 0) {
    await member.send(
      'ACTIVITY_TYPE_DELETE_API_KEYS',
      { userId, apiKeyIds: given.map(({ apiKeyId }) => apiKeyId) },
      key,
    );
    return;
  }
  if (member.number % 2 === 0) {
    await member.send('ACTIVITY_TYPE_STAMP_LOGIN', { publicKey: member.newKey().publicKey }, key);
    return;
  }
  await member.send('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', { userId, authenticators: [member.newPasskey()] }, key);
}

async function proxied(member: Member, name: string, body: object): Promise<void> {
  const isAccepted = await member.place.proxied(name, body).then(
    () => true,
    (error: unknown) => {
      if (!(error instanceof ApiError) || error.status >= 500) throw error;
      return false;
    },
  );
  member.log.push(`${isAccepted ? 'done' : 'not done'} by the proxy: ${name}`);
  count(`(proxy) ${name}`, isAccepted);
}

/** Those that take things away come last, so that the others find them. */
const order = (kind: string): number => (/^(?:DISABLE|DELETE)/.test(kind) ? 1 : 0);

test(
  'nobody with one grant gets further than it says',
  async () => {
    let place = await Place.open();
    const types = Object.keys(place.samples).sort((one, other) => order(kindOf(one)) - order(kindOf(other)));
    const { paths } = (await (await fetch(`${place.coordinator.url}/openapi.json`)).json()) as { paths: object };
    const published = Object.keys(paths).filter((path) => path.startsWith('/public/v1/submit/'));
    expect(types.map(submitPath).sort()).toEqual(published.sort());
    expect(
      [...Object.keys(documented), ...Object.keys(ungrantable)].filter((kind) => !types.map(kindOf).includes(kind)),
    ).toEqual([]);

    const page = readFileSync(new URL('../../docs/how-to/grant-narrowly.md', import.meta.url), 'utf8');
    expect(Object.keys(documented).filter((kind) => !page.includes(`\`${kind.toLowerCase()}\``))).toEqual([]);

    let number = 0;
    for (const type of types) {
      const kind = kindOf(type);
      const isPeoples = documented[kind] === 'people' || documented[kind] === 'sessions';
      for (let round = 0; round < (isPeoples ? sequences.people : sequences.any); round++) {
        const attempt = async () => {
          const member = new Member(place, kind, ++number);
          await member.begin();
          const isAccepted = round > 0 || (await member.send(type, await plain(member, type)));
          if (round === 0 && !(kind in ungrantable)) await member.check();
          return { member, isAccepted };
        };
        let { member, isAccepted } = await attempt();
        if (!isAccepted && !(kind in ungrantable)) {
          // Another verb has used up what this one is about.
          place = await Place.open();
          ({ member, isAccepted } = await attempt());
        }
        expect([kind, isAccepted, isAccepted ? [] : member.log]).toEqual([
          kind,
          !(kind in ungrantable),
          isAccepted ? [] : member.log,
        ]);
        const steps = round === 0 ? 1 + below(mostSteps - 1) : mostSteps - below(2);
        for (let done = 0; done < steps; done++) {
          await step(member, types, round > 0 && done === 0 ? round : undefined);
          await member.check();
        }
        await member.promote();
        await member.end();
      }
    }
    const rows = [...tried].sort(([one], [other]) => one.localeCompare(other));
    const lines = rows.map(([what, { accepted, refused }]) => `${what}: ${accepted} accepted, ${refused} refused`);
    process.stdout.write(`Escalation: ${number} members with one grant each.\n${lines.join('\n')}\n`);
    const never = types.map(kindOf).filter((kind) => !(kind in ungrantable) && !tried.get(kind)?.accepted);
    expect(never).toEqual([]);
  },
  isLong ? 1_200_000 : 300_000,
);

/** What the only root user of an organization has to act with. */
class LastOne {
  readonly keys: { readonly key: ApiKeyPair; readonly endsAt: number }[] = [];
  readonly passkeys: SoftwareAuthenticator[] = [];

  constructor(
    readonly coordinator: TestCoordinator,
    readonly organizationId: string,
    readonly userId: string,
    private readonly luck: SeededRandomness,
    first: ApiKeyPair,
  ) {
    this.keys.push({ key: first, endsAt: Infinity });
  }

  private newKey(expirationSeconds?: number): object {
    const key = this.coordinator.newKey();
    const endsAt =
      expirationSeconds === undefined ? Infinity : this.coordinator.clock.now() + expirationSeconds * 1_000;
    this.keys.push({ key, endsAt });
    return {
      ...apiKeyOf(key),
      ...(expirationSeconds === undefined ? {} : { expirationSeconds: String(expirationSeconds) }),
    };
  }

  /** Does something with whatever works; whether it was done. */
  async act(type: string, parameters: object): Promise<boolean> {
    const now = this.coordinator.clock.now();
    const hands: readonly Hand[] = [
      ...this.keys.filter(({ endsAt }) => endsAt > now).map(({ key }) => key),
      ...this.passkeys,
    ];
    for (const hand of hands) {
      const attempt =
        hand instanceof SoftwareAuthenticator
          ? sentByPasskey(this.coordinator, hand, type, parameters, this.organizationId)
          : this.coordinator.clientFor(hand, this.organizationId).submit(type, parameters);
      const status = await attempt.then(
        () => 200,
        (error: unknown) => {
          if (error instanceof ApiError && error.status < 500) return error.status;
          throw error;
        },
      );
      this.coordinator.clock.advance(1);
      if (status !== 401) return status === 200;
    }
    return false;
  }

  /** The user, as it reads itself; undefined when nothing that it has works any more. */
  private async me(): Promise<Listed | undefined> {
    const { users } = await this.coordinator.client.query<{ users: readonly Listed[] }>('list_users', {
      organizationId: this.organizationId,
    });
    return users.find(({ userId }) => userId === this.userId);
  }

  /** Things that take ways in away, and things that make them look like more than they are. */
  async step(): Promise<string> {
    const { userId } = this;
    const me = await this.me();
    const ids = {
      apiKeyIds: me?.apiKeys.map(({ apiKeyId }) => apiKeyId) ?? [],
      lasting: me?.apiKeys.filter(({ expirationSeconds }) => expirationSeconds === undefined) ?? [],
      authenticatorIds: me?.authenticators.map(({ authenticatorId }) => authenticatorId) ?? [],
    };
    const passkey = new SoftwareAuthenticator();
    const steps: Readonly<Record<string, () => Promise<boolean>>> = {
      'makes a key that ends': () =>
        this.act('ACTIVITY_TYPE_CREATE_API_KEYS_V2', { userId, apiKeys: [this.newKey(600)] }),
      'deletes the keys that last': () =>
        this.act('ACTIVITY_TYPE_DELETE_API_KEYS', { userId, apiKeyIds: ids.lasting.map(({ apiKeyId }) => apiKeyId) }),
      'deletes all keys': () => this.act('ACTIVITY_TYPE_DELETE_API_KEYS', { userId, apiKeyIds: ids.apiKeyIds }),
      'makes a passkey': async () => {
        const authenticators = [{ authenticatorName: 'passkey', ...passkey.register() }];
        const isDone = await this.act('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', { userId, authenticators });
        if (isDone) this.passkeys.push(passkey);
        return isDone;
      },
      'deletes the passkeys': () =>
        this.act('ACTIVITY_TYPE_DELETE_AUTHENTICATORS', { userId, authenticatorIds: ids.authenticatorIds }),
      'writes an address down': () =>
        this.act('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId, userEmail: 'somebody@example.com' }),
      'logs in': () =>
        this.act('ACTIVITY_TYPE_STAMP_LOGIN', {
          publicKey: (this.newKey(900) as { publicKey: string }).publicKey,
          expirationSeconds: '900',
          invalidateExisting: true,
        }),
      'deletes itself': () => this.act('ACTIVITY_TYPE_DELETE_USERS', { userIds: [userId] }),
    };
    const [name, take] = Object.entries(steps)[below(Object.keys(steps).length, this.luck)]!;
    const isDone = await take();
    count(`(the last one) ${name}`, isDone);
    return `${isDone ? 'done' : 'not done'}: ${name}`;
  }
}

test('no root user loses the last way in, whatever it does to itself', async () => {
  const luck = new SeededRandomness('the last one');
  const coordinator = await startCoordinator({ seed: 'the last one' });
  started.push(coordinator);
  const { client, clock } = coordinator;
  for (let number = 0; number < (isLong ? 300 : 60); number++) {
    const key = coordinator.newKey();
    const { result } = await client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: `alone ${number}`,
      rootQuorumThreshold: 1,
      rootUsers: [{ userName: 'Alone', apiKeys: [apiKeyOf(key)] }],
    });
    const { subOrganizationId, rootUserIds } = Object.values(result)[0] as {
      subOrganizationId: string;
      rootUserIds: [string];
    };
    const alone = new LastOne(coordinator, subOrganizationId, rootUserIds[0], luck, key);
    const log: string[] = [];
    for (let done = 0; done < mostSteps; done++) log.push(await alone.step());
    // Once everything that ends has ended.
    clock.advance('2h');
    const name = { organizationName: `still ${number}` };
    expect([log, await alone.act('ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', name)]).toEqual([log, true]);
  }
  const lines = [...tried].filter(([what]) => what.startsWith('(the last one)'));
  process.stdout.write(
    `${lines.map(([what, { accepted, refused }]) => `${what}: ${accepted} accepted, ${refused} refused`).join('\n')}\n`,
  );
  expect(lines.filter(([, { accepted }]) => accepted === 0).map(([what]) => what)).toEqual([
    '(the last one) deletes itself',
  ]);
}, 240_000);
