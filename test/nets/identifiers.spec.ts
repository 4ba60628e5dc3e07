import {
  generateApiKeyPair,
  SeededRandomness,
  stampBody,
  startCoordinator,
  submitPath,
  type ApiKeyPair,
  type TestCoordinator,
} from '../../src/testing/index.js';
import { exchange } from '../e2e/exchange.js';
import { IdentityProvider } from '../e2e/identity-provider.js';
import { claimsOf, clientSignature, codeOf } from '../e2e/one-time-codes.js';
import { until } from '../e2e/until.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { isLong } from '../long.js';

/**
 * One public identifier after the other goes through what its owner, strangers who know it, and the parent's members may do
 * with it, in an order that is drawn: sign-ups with it alone and beside other things, sub-organizations that the parent makes,
 * additions, forgeries, uses by the parent's id and by name, changes, removals, releases, and time. After each step it is
 * looked up in every way, and the answer is what the rule says (R4), which stands here once more in a dozen lines.
 */

const episodes = isLong ? 120 : 10;
const steps = isLong ? 14 : 10;

const random = new SeededRandomness('what is drawn of identifiers');
const below = (count: number): number => Buffer.from(random.bytes(4)).readUInt32BE() % count;
const pick = <One>(from: readonly One[]): One => from[below(from.length)]!;
const chance = (of: number): boolean => below(of) === 0;

let provider: IdentityProvider;
let coordinator: TestCoordinator;
beforeAll(async () => {
  provider = await IdentityProvider.start();
  coordinator = await startCoordinator({
    seed: 'identifiers',
    settings: {
      ...provider.settings,
      PASSKEY_COUNTERS: 'strict',
      PROXY_RATE_LIMIT_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
      PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONTACT: '0',
    },
  });
  await allow(everyMethod);
});
afterAll(() => Promise.all([coordinator.close(), provider.close()]));

const everyMethod = ['email', 'sms', 'passkey', 'wallet', 'oauth'] as const;
type Method = (typeof everyMethod)[number];
const allow = (allowedAuthMethods: readonly Method[]) =>
  coordinator.client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', { allowedAuthMethods });

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly text: string;
}

async function post(path: string, body: string, headers: Readonly<Record<string, string>>): Promise<Answer> {
  const answer = await exchange(`${coordinator.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  if (answer.status >= 500) throw new Error(`${path}: ${answer.status} ${answer.text}`);
  return { status: answer.status, body: (answer.body ?? {}) as Answer['body'], text: answer.text };
}

const proxy = (name: string, body: object) =>
  post(`/v1/${name}`, JSON.stringify(body), { 'x-auth-proxy-config-id': coordinator.root.authProxyConfigId });

function accepted({ status, body, text }: Answer): Readonly<Record<string, string>> {
  if (status !== 200) throw new Error(`${status} ${text}`);
  return body as Readonly<Record<string, string>>;
}

let count = 0;
let lastTime = 0;
const nextTime = () => String((lastTime = Math.max(lastTime + 1, coordinator.clock.now())));
const nothing = { apiKeys: [], authenticators: [], oauthProviders: [] };

/** What a request is stamped with, in the header that says so. */
type Stamping = (body: string) => Readonly<Record<string, string>>;

const byKey =
  (key: ApiKeyPair): Stamping =>
  (body) => {
    const { headerName, headerValue } = stampBody(body, key);
    return { [headerName]: headerValue };
  };

function submit(stamp: Stamping, organizationId: string, type: string, parameters: object): Promise<Answer> {
  const body = coordinator.client.submitBody(type, parameters, { organizationId, timestampMs: nextTime() });
  return post(submitPath(type), body, stamp(body));
}

const resultOf = (answer: Answer): Readonly<Record<string, string>> => {
  const { activity } = accepted(answer) as unknown as { activity: { result: object; status: string } };
  return Object.values(activity.result)[0] as Readonly<Record<string, string>>;
};

/** A sub-organization of the parent, as far as the rule asks. */
interface Home {
  readonly id: string;
  readonly userId: string;
  readonly isMembers: boolean;
  readonly foundedAt: number;
  /** Somebody's who is there, beside the identifier. */
  readonly own: ApiKeyPair | undefined;
  /** Keys, passkeys, identities and contacts that were ever there. */
  credentials: number;
  /** Something of it was proved. */
  isProved: boolean;
  isFounding: boolean;
  isDeleted: boolean;
}

/** That a home has the identifier. */
interface Claim {
  readonly home: Home;
  readonly asserted: number;
  /** By the parent's members, when they made the home. */
  readonly isParents: boolean;
  /** A key that ends, and when. */
  readonly expires?: number;
  proved?: { readonly at: number; readonly wasLed: boolean };
  outranks: boolean;
}

const lifeMs = 3_600_000;
let order = 0;

/** What the rule says of an identifier, from what was done with it. */
class Rule {
  readonly claims: Claim[] = [];
  readonly homes: Home[] = [];
  /** Every claim there ever was, also those that have ended. */
  readonly all: Claim[] = [];
  private isSettled = false;

  constructor(readonly kind: 'key' | 'passkey' | 'contact' | 'identity') {}

  assert(home: Home, more: Pick<Claim, 'expires'> = {}): Claim {
    const isParents = home.isMembers && home.isFounding;
    const claim: Claim = { home, asserted: ++order, isParents, outranks: false, ...more };
    this.claims.push(claim);
    this.all.push(claim);
    return claim;
  }

  /** Whether the claim outranks the first one from now on. */
  prove(claim: Claim, by: 'being led' | 'name' | 'token'): boolean {
    claim.home.isProved = true;
    if (claim.proved) return false;
    const first = this.inOrder()[0];
    claim.proved = { at: ++order, wasLed: by === 'being led' };
    claim.outranks = by === 'name' && !this.isSettled && first?.proved?.wasLed === true && first.home !== claim.home;
    this.isSettled ||= claim.outranks;
    return claim.outranks;
  }

  /** The claims of contacts that the parent has released. */
  readonly released = new Set<Claim>();

  release(claim: Claim): void {
    delete claim.proved;
    this.released.add(claim);
  }

  end(claim: Claim): void {
    this.claims.splice(this.claims.indexOf(claim), 1);
  }

  of(home: Home): Claim | undefined {
    return this.claims.find((one) => one.home === home);
  }

  private inOrder(): readonly Claim[] {
    const rank = ({ outranks, proved }: Claim) => (outranks ? 0 : proved!.at);
    return this.claims
      .filter(({ proved, home }) => proved && !home.isDeleted)
      .toSorted((one, other) => rank(one) - rank(other));
  }

  /** Where it leads, to those who may be told, and to whoever has it. */
  leads(now: number): { readonly told: readonly Home[]; readonly led: readonly Home[] } {
    const stands = ({ home, expires = Infinity }: Claim) => isStanding(home, now) && expires > now;
    const [first] = this.inOrder().filter(stands);
    if (first) return { told: [first.home], led: [first.home] };
    if (this.kind === 'contact' || this.kind === 'identity') return { told: [], led: [] };
    const live = this.claims.filter(stands);
    const told = [...new Set(live.filter(({ isParents }) => isParents).map(({ home }) => home))];
    if (told.length > 0) return { told, led: told };
    if (this.kind === 'passkey') return { told, led: live.slice(0, 1).map(({ home }) => home) };
    const alone = live.filter(({ home }) => home.credentials === 1).at(-1);
    // The key of a minute is its sign-up's, which had it first.
    const minute = this.all[0]?.expires !== undefined && live.includes(this.all[0]) ? this.all[0] : undefined;
    return { told, led: (alone ?? minute) ? [(alone ?? minute)!.home] : [] };
  }
}

const isStanding = ({ isDeleted, isMembers, isProved, foundedAt }: Home, now: number): boolean =>
  !isDeleted && (isMembers || isProved || now - foundedAt < lifeMs);

const apiKeyOf = ({ publicKey, curve }: ApiKeyPair, more: object = {}) => ({
  apiKeyName: `key ${++count}`,
  publicKey,
  curveType: curve,
  ...more,
});

interface Parts {
  readonly apiKeys?: readonly object[];
  readonly authenticators?: readonly object[];
  readonly oauthProviders?: readonly object[];
  readonly userEmail?: string;
  readonly userPhoneNumber?: string;
}

const sizeOf = ({ apiKeys = [], authenticators = [], oauthProviders = [], userEmail, userPhoneNumber }: Parts) =>
  apiKeys.length + authenticators.length + oauthProviders.length + (userEmail ? 1 : 0) + (userPhoneNumber ? 1 : 0);

/** What was done, and how often it was accepted and refused. */
const tried = new Map<string, { accepted: number; refused: number }>();
let log: string[] = [];

function note(what: string, isAccepted = true): void {
  const row = tried.get(what) ?? { accepted: 0, refused: 0 };
  row[isAccepted ? 'accepted' : 'refused'] += 1;
  tried.set(what, row);
  log.push(isAccepted ? what : `not: ${what}`);
}

/** Makes a home: somebody signs up, or the parent's members make it for them. */
async function makeHome(isMembers: boolean, parts: Parts, own?: ApiKeyPair, more: object = {}): Promise<Home> {
  const user = { userName: `Person ${++count}`, ...nothing, ...parts };
  let id: string;
  let userId: string;
  if (isMembers) {
    const made = resultOf(
      await submit(
        byKey(coordinator.client.key),
        coordinator.organizationId,
        'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8',
        {
          subOrganizationName: `Sub ${++count}`,
          rootUsers: [user],
          rootQuorumThreshold: 1,
        },
      ),
    );
    id = made['subOrganizationId']!;
    userId = String(made['rootUserIds']);
  } else {
    const made = accepted(await proxy('signup_v2', { ...user, ...more }));
    id = made['organizationId']!;
    userId = made['userId']!;
  }
  return {
    id,
    userId,
    isMembers,
    own,
    foundedAt: coordinator.clock.now(),
    credentials: sizeOf(parts),
    isProved: false,
    isFounding: true,
    isDeleted: false,
  };
}

/** Whoever is there acts, by a key of their own. */
async function actAt(home: Home, type: string, parameters: object): Promise<Answer> {
  const answer = await submit(byKey(home.own!), home.id, type, parameters);
  if (answer.status === 200) Object.assign(home, { isProved: true, isFounding: false });
  return answer;
}

/** The organization that a request was recorded in, or why it was not. */
const whereOf = ({ status, body }: Answer): string =>
  status === 200
    ? String(
        (body as { activity?: { organizationId: string }; organizationId?: string }).activity?.organizationId ??
          (body as { organizationId?: string }).organizationId,
      )
    : body['turnkeyErrorCode'] === 'CREDENTIAL_CONFLICT'
      ? 'several'
      : 'nobody';

const nameOf = (homes: readonly Home[]): string => (homes.length > 1 ? 'several' : (homes[0]?.id ?? 'nobody'));

/** A key or a passkey. */
interface Credential {
  readonly rule: Rule;
  readonly stamp: Stamping;
  parts(more?: object): Parts;
  add(home: Home): Promise<Answer>;
  remove(home: Home): Promise<Answer>;
  /** Somebody registers what is known of it as theirs. */
  forge?(): Promise<void>;
  account?(): Promise<string>;
}

interface ListedUser {
  readonly apiKeys: readonly { apiKeyId: string; credential: { publicKey: string } }[];
  readonly authenticators: readonly { authenticatorId: string; credentialId: string }[];
  readonly oauthProviders: readonly { providerId: string; subject: string }[];
}

async function userAt({ id }: Home): Promise<ListedUser> {
  const { users } = await coordinator.client.query<{ users: readonly ListedUser[] }>('list_users', {
    organizationId: id,
  });
  return users[0]!;
}

function keyCredential(curve: ApiKeyPair['curve']): Credential & { readonly key: ApiKeyPair } {
  const key = generateApiKeyPair((length) => random.bytes(length), curve);
  return {
    key,
    rule: new Rule('key'),
    stamp: byKey(key),
    parts: (more) => ({ apiKeys: [apiKeyOf(key, more)] }),
    add: (home) => actAt(home, 'ACTIVITY_TYPE_CREATE_API_KEYS_V2', { userId: home.userId, apiKeys: [apiKeyOf(key)] }),
    async remove(home) {
      const { apiKeys } = await userAt(home);
      const { apiKeyId } = apiKeys.find(({ credential }) => credential.publicKey === key.publicKey)!;
      return actAt(home, 'ACTIVITY_TYPE_DELETE_API_KEYS', { userId: home.userId, apiKeyIds: [apiKeyId] });
    },
    async account() {
      const asked = { filterType: 'PUBLIC_KEY', filterValue: key.publicKey };
      return accepted(await proxy('account', asked))['organizationId'] ?? 'nobody';
    },
  };
}

/** A passkey; one that counts stamps with what it is told, and by itself with the next number. */
class Passkey implements Credential {
  readonly rule = new Rule('passkey');
  readonly passkey = new SoftwareAuthenticator();
  /** The highest counter that it has stamped with, anywhere under the parent. */
  highest = 0;
  /** The highest counter of a registration, which counts only in its own organization: anybody can register it. */
  private registered = 0;
  next: number | undefined;

  constructor(readonly isCounted: boolean) {}

  readonly stamp: Stamping = (body) => {
    const signCount = this.isCounted ? (this.next ?? this.fresh) : 0;
    return { 'x-stamp-webauthn': this.passkey.assert({ body, signCount }) };
  };

  /** A counter that no organization refuses. */
  get fresh(): number {
    return Math.max(this.highest, this.registered) + 1;
  }

  private registration() {
    const signCount = this.isCounted ? below(6) : 0;
    this.registered = Math.max(this.registered, signCount);
    return { authenticatorName: `passkey ${++count}`, ...this.passkey.register({ signCount }) };
  }

  parts(): Parts {
    return { authenticators: [this.registration()] };
  }

  add(home: Home): Promise<Answer> {
    const authenticators = [this.registration()];
    return actAt(home, 'ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', { userId: home.userId, authenticators });
  }

  async remove(home: Home): Promise<Answer> {
    const { authenticators } = await userAt(home);
    const { authenticatorId } = authenticators.find(({ credentialId }) => credentialId === this.passkey.credentialId)!;
    const asked = { userId: home.userId, authenticatorIds: [authenticatorId] };
    return actAt(home, 'ACTIVITY_TYPE_DELETE_AUTHENTICATORS', asked);
  }

  /** Its id under a key of the forger's, who then uses it. */
  async forge(): Promise<void> {
    const forger = new SoftwareAuthenticator();
    const { credentialId } = this.passkey;
    const authenticators = [{ authenticatorName: 'forged', ...forger.register({ credentialId }) }];
    const { id } = await makeHome(false, { authenticators });
    const stamp: Stamping = (body) => ({ 'x-stamp-webauthn': forger.assert({ body, credentialId }) });
    if (chance(2)) accepted(await submit(stamp, id, 'ACTIVITY_TYPE_CREATE_READ_ONLY_SESSION', {}));
  }
}

/** Requests that find the home of a key by themselves, and the credentials that they leave there. */
const logins = {
  ACTIVITY_TYPE_CREATE_READ_ONLY_SESSION: { parameters: () => ({}), credentials: 0 },
  ACTIVITY_TYPE_STAMP_LOGIN: { parameters: () => ({ publicKey: coordinator.newKey().publicKey }), credentials: 1 },
} as const;

/** Where it leads after a step, to whoever has it and to whoever may be told. */
async function look(of: Credential): Promise<void> {
  const { told, led } = of.rule.leads(coordinator.clock.now());
  const parent = coordinator.organizationId;
  const query = JSON.stringify({ organizationId: parent });
  const asked = () => post('/public/v1/query/whoami', query, of.stamp(query));
  expect([log, whereOf(await asked())]).toEqual([log, nameOf(led)]);
  if (!of.account) return;
  expect([log, 'account', await of.account()]).toEqual([log, 'account', told.length === 1 ? told[0]!.id : 'nobody']);
}

/** One step of somebody with a key or passkey, or of those who know it. */
async function step(of: Credential): Promise<void> {
  const { rule } = of;
  const now = coordinator.clock.now();
  const standing = rule.homes.filter((home) => isStanding(home, now));
  const pickHome = (is: (home: Home) => boolean): Home | undefined => {
    const some = standing.filter(is);
    return some.length > 0 ? pick(some) : undefined;
  };
  const found = async (isMembers: boolean, what: string, more: { alone?: boolean; contact?: boolean }) => {
    const own = more.alone ? undefined : coordinator.newKey();
    const theirs = own ? [apiKeyOf(own)] : [];
    const { apiKeys = [], ...parts } = of.parts();
    const contact = more.contact ? { userEmail: `identifier-${++count}@example.com` } : {};
    const keys = chance(2) ? [...apiKeys, ...theirs] : [...theirs, ...apiKeys];
    const home = await makeHome(isMembers, { apiKeys: keys, ...parts, ...contact }, own);
    rule.homes.push(home);
    rule.assert(home);
    note(what);
  };
  switch (below(14)) {
    case 0:
    case 1:
      return found(false, 'somebody signs up with it alone', { alone: true });
    case 2:
    case 3:
      return found(false, 'somebody signs up with it and a key of their own', {});
    case 4:
      return found(false, 'somebody signs up with it and an address', { alone: true, contact: true });
    case 5:
      return found(true, 'the parent makes a home for it', chance(2) ? { alone: true } : { contact: true });
    case 6: {
      const own = coordinator.newKey();
      const home = pickHome((one) => one.own !== undefined && !rule.of(one));
      const to = home ?? (await makeHome(chance(2), { apiKeys: [apiKeyOf(own)] }, own));
      if (!home) rule.homes.push(to);
      accepted(await of.add(to));
      to.credentials++;
      rule.assert(to);
      return note('somebody adds it to what they have');
    }
    case 7: {
      const home = pickHome((one) => one.own !== undefined && rule.of(one) !== undefined);
      if (!home) return;
      accepted(await of.remove(home));
      rule.end(rule.of(home)!);
      return note('it is removed');
    }
    case 8:
      return chance(2) ? deletesOne(rule) : use(of, undefined);
    case 9: {
      if (of.forge) {
        await of.forge();
        return note('its id is registered under another key');
      }
      coordinator.clock.advance('61m');
      return note('an hour passes');
    }
    case 10: {
      if (chance(2)) coordinator.clock.advance('61m');
      return use(of, undefined);
    }
    default: {
      const named = rule.homes.filter((home) => rule.of(home) && !home.isDeleted);
      return use(of, named.length > 0 && chance(2) ? pick(named) : undefined);
    }
  }
}

/** Whoever has it logs in, by the parent's id or by the name of a home. */
async function use(of: Credential, home: Home | undefined): Promise<void> {
  const { rule } = of;
  const now = coordinator.clock.now();
  const { led } = rule.leads(now);
  const to = home ?? (led.length === 1 ? led[0] : undefined);
  const isStale = of instanceof Passkey && of.isCounted && of.highest > 0 && chance(2);
  if (of instanceof Passkey) of.next = isStale ? 1 + below(of.highest) : undefined;
  const type = pick(Object.keys(logins) as (keyof typeof logins)[]);
  const { parameters, credentials } = logins[type];
  const answer = await submit(of.stamp, home?.id ?? coordinator.organizationId, type, parameters());
  const what = `${isStale ? 'with a counter from before, ' : ''}it is used ${home ? 'by name' : 'by the parent’s id'}`;
  const isOver = to !== undefined && (rule.of(to)?.expires ?? Infinity) <= now;
  const isThere = to !== undefined && isStanding(to, now) && !isOver && !isStale;
  if (of instanceof Passkey && isThere) of.highest = of.isCounted ? (of.next ?? of.fresh) : 0;
  if (of instanceof Passkey) of.next = undefined;
  note(what, answer.status === 200);
  const expected = isThere ? to.id : led.length > 1 && !home ? 'several' : 'nobody';
  if (isStale) expect([log, answer.status]).toEqual([log, home && !isStanding(home, now) ? 404 : 401]);
  else expect([log, whereOf(answer)]).toEqual([log, expected]);
  if (!isThere) return;
  to.isFounding = false;
  to.credentials += credentials;
  if (!rule.prove(rule.of(to)!, home ? 'name' : 'being led')) return;
  note('it outranks');
  // The order of proofs is recorded behind the answers.
  const query = JSON.stringify({ organizationId: coordinator.organizationId });
  const [first] = rule.leads(now).led;
  await until(
    'the order is recorded',
    async () => whereOf(await post('/public/v1/query/whoami', query, of.stamp(query))) === first!.id,
  );
}

/** A contact, or an identity at a provider: only a code or a token says whose it is. */
interface Person {
  readonly rule: Rule;
  /** Takes one step, drawn. */
  step(): Promise<void>;
  /** Where whoever has it is told that it leads. */
  account(): Promise<string>;
  /** Where whoever has it logs in to. */
  login(organizationId?: string): Promise<Answer>;
}

/** Homes of a person that can be acted in. */
function standingOf({ homes }: Rule): (is: (home: Home) => boolean) => Home | undefined {
  const standing = homes.filter((home) => isStanding(home, coordinator.clock.now()));
  return (is) => {
    const some = standing.filter(is);
    return some.length > 0 ? pick(some) : undefined;
  };
}

async function deletesOne({ homes }: Rule): Promise<void> {
  const home = homes.find(({ own, isDeleted }) => own && !isDeleted);
  if (!home || !isStanding(home, coordinator.clock.now())) return;
  accepted(await actAt(home, 'ACTIVITY_TYPE_DELETE_SUB_ORGANIZATION', { deleteWithoutExport: true }));
  home.isDeleted = true;
  note('a home is deleted');
}

class Contact implements Person {
  readonly rule = new Rule('contact');
  readonly contact: string;
  /** What the parent has written down and nobody has changed since: the first login by name proves it. */
  private readonly isAsserted = new Set<Claim>();
  private proof: { readonly token: string; readonly until: number } | undefined;

  constructor(private readonly kind: 'EMAIL' | 'SMS') {
    this.contact = kind === 'EMAIL' ? `contact-${++count}@example.com` : `+1202555${String(1_000 + ++count)}`;
  }

  private get parts(): Parts {
    return this.of(this.contact);
  }

  private of(contact: string): Parts {
    return this.kind === 'EMAIL' ? { userEmail: contact } : { userPhoneNumber: contact };
  }

  /** Whoever reads what is sent to the contact proves it; its owner, or somebody who was told the code. */
  private async proved(key: ApiKeyPair): Promise<string> {
    coordinator.clock.advance('65s');
    const { otpId } = accepted(await proxy('otp_init', { otpType: `OTP_TYPE_${this.kind}`, contact: this.contact }));
    const otpCode = await codeOf(coordinator, otpId!);
    return accepted(await proxy('otp_verify', { otpId, otpCode, publicKey: key.publicKey }))['verificationToken']!;
  }

  async account(): Promise<string> {
    const now = coordinator.clock.now();
    if (!this.proof || this.proof.until < now) {
      this.proof = { token: await this.proved(coordinator.newKey()), until: now + 50 * 60_000 };
    }
    const filterType = this.kind === 'EMAIL' ? 'EMAIL' : 'PHONE_NUMBER';
    // Letters of a mailbox are the same, large and small.
    const filterValue = chance(2) ? this.contact.toUpperCase() : this.contact;
    const asked = { filterType, filterValue, verificationToken: this.proof.token };
    return accepted(await proxy('account', asked))['organizationId'] ?? 'nobody';
  }

  async login(organizationId?: string): Promise<Answer> {
    const [key, { publicKey }] = [coordinator.newKey(), coordinator.newKey()];
    const verificationToken = await this.proved(key);
    return proxy('otp_login', {
      verificationToken,
      publicKey,
      clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_LOGIN', { login: { publicKey } }),
      ...(organizationId === undefined ? {} : { organizationId }),
    });
  }

  private async change(home: Home, contact: string, verificationToken?: string): Promise<void> {
    const type = `ACTIVITY_TYPE_UPDATE_USER_${this.kind === 'EMAIL' ? 'EMAIL' : 'PHONE_NUMBER'}`;
    const asked = { userId: home.userId, ...this.of(contact), ...(verificationToken ? { verificationToken } : {}) };
    accepted(await actAt(home, type, asked));
    home.credentials++;
  }

  async step(): Promise<void> {
    const { rule } = this;
    const pickHome = standingOf(rule);
    const keep = (home: Home) => {
      rule.homes.push(home);
      return rule.assert(home);
    };
    switch (below(13)) {
      case 0:
      case 1: {
        const [bound, own] = [coordinator.newKey(), chance(3) ? undefined : coordinator.newKey()];
        const verificationToken = await this.proved(bound);
        const user = { ...nothing, apiKeys: own ? [apiKeyOf(own)] : [] };
        const said = this.kind === 'EMAIL' ? { email: this.contact } : { phoneNumber: this.contact };
        const signed = clientSignature(bound, verificationToken, 'USAGE_TYPE_SIGNUP', { signup: { ...user, ...said } });
        const home = await makeHome(false, { ...this.parts, ...user }, own, {
          verificationToken,
          clientSignature: signed,
        });
        rule.prove(keep(home), 'token');
        return note('somebody signs up with a code');
      }
      case 2: {
        const own = coordinator.newKey();
        keep(await makeHome(false, { ...this.parts, apiKeys: [apiKeyOf(own)] }, own));
        return note('somebody writes it down at the sign-up');
      }
      case 3: {
        const own = coordinator.newKey();
        this.isAsserted.add(keep(await makeHome(true, { ...this.parts, apiKeys: [apiKeyOf(own)] }, own)));
        return note('the parent makes a home for it');
      }
      case 4:
      case 5: {
        const home = pickHome(({ own }) => own !== undefined);
        if (!home || rule.of(home)?.proved) return;
        const [held, isProof] = [rule.of(home), chance(2)];
        await this.change(home, this.contact, isProof ? await this.proved(coordinator.newKey()) : undefined);
        const claim = held ?? rule.assert(home);
        if (isProof) rule.prove(claim, 'token');
        return note(isProof ? 'somebody proves it where they are' : 'somebody writes it down where they are');
      }
      case 6: {
        const home = pickHome((one) => one.own !== undefined && rule.of(one) !== undefined);
        if (!home) return;
        await this.change(home, this.kind === 'EMAIL' ? `other-${++count}@example.com` : `+1202556${1_000 + ++count}`);
        rule.end(rule.of(home)!);
        return note('it is changed to another');
      }
      case 7: {
        const home = pickHome((one) => rule.of(one) !== undefined && !rule.released.has(rule.of(one)!));
        if (!home) return;
        const asked = { contact: this.contact, leaveUnreachable: true };
        const { key } = coordinator.client;
        accepted(await submit(byKey(key), home.id, 'ACTIVITY_TYPE_RELEASE_CONTACT', asked));
        rule.release(rule.of(home)!);
        // Somebody has acted there, though not by what is the home's.
        home.isFounding = false;
        return note('the parent releases it');
      }
      case 8:
        return deletesOne(rule);
      case 9:
      case 10:
      case 11: {
        const home = pickHome((one) => rule.of(one) !== undefined);
        if (!home) return;
        const claim = rule.of(home)!;
        const isFirst = !claim.proved && this.isAsserted.has(claim) && !rule.released.has(claim);
        const { status, text } = await this.login(home.id);
        note(`it logs in by name${isFirst ? ', for the first time' : ''}`, status === 200);
        expect([log, status, text]).toEqual([log, claim.proved || isFirst ? 200 : 404, text]);
        if (status === 200) rule.prove(claim, 'token');
        return;
      }
      default:
        coordinator.clock.advance('61m');
        return note('an hour passes');
    }
  }
}

class Identity implements Person {
  readonly rule = new Rule('identity');
  private readonly subject = `person ${++count}`;

  private token(publicKey?: string): Promise<string> {
    const at = coordinator.clock.now();
    return provider.idToken({ subject: this.subject, at, ...(publicKey === undefined ? {} : { publicKey }) });
  }

  private async parts(): Promise<Parts> {
    return { oauthProviders: [{ providerName: 'provider', oidcToken: await this.token() }] };
  }

  async account(): Promise<string> {
    const asked = { filterType: 'OIDC_TOKEN', filterValue: await this.token() };
    return accepted(await proxy('account', asked))['organizationId'] ?? 'nobody';
  }

  async login(organizationId?: string): Promise<Answer> {
    const { publicKey } = coordinator.newKey();
    const asked = { oidcToken: await this.token(publicKey), publicKey };
    return proxy('oauth_login', { ...asked, ...(organizationId === undefined ? {} : { organizationId }) });
  }

  async step(): Promise<void> {
    const { rule } = this;
    const pickHome = standingOf(rule);
    switch (below(7)) {
      case 0:
      case 1:
      case 2: {
        const [isMembers, own] = [chance(3), coordinator.newKey()];
        const home = await makeHome(isMembers, { ...(await this.parts()), apiKeys: [apiKeyOf(own)] }, own);
        rule.homes.push(home);
        rule.prove(rule.assert(home), 'token');
        return note(isMembers ? 'the parent makes a home for it' : 'somebody signs up with it');
      }
      case 3: {
        const home = pickHome((one) => rule.of(one) === undefined);
        if (!home) return;
        const asked = { userId: home.userId, ...(await this.parts()) };
        accepted(await actAt(home, 'ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', asked));
        rule.prove(rule.assert(home), 'token');
        return note('it is added somewhere');
      }
      case 4: {
        const home = pickHome((one) => rule.of(one) !== undefined);
        if (!home) return;
        const { oauthProviders } = await userAt(home);
        const { providerId } = oauthProviders.find(({ subject }) => subject === this.subject)!;
        const asked = { userId: home.userId, providerIds: [providerId] };
        accepted(await actAt(home, 'ACTIVITY_TYPE_DELETE_OAUTH_PROVIDERS', asked));
        rule.end(rule.of(home)!);
        return note('it is removed');
      }
      case 5:
        return deletesOne(rule);
      default:
        coordinator.clock.advance('61m');
        return note('an hour passes');
    }
  }
}

const print = (what: string) => {
  const rows = [...tried].toSorted(([one], [other]) => one.localeCompare(other));
  const lines = rows.map(([name, row]) => `  ${name}: ${row.accepted} accepted, ${row.refused} refused`);
  process.stdout.write(`Identifiers, ${what}:\n${lines.join('\n')}\n`);
  const never = rows.filter(([name, row]) => row.accepted === 0 && !name.startsWith('with a counter'));
  expect(never.map(([name]) => name)).toEqual([]);
};
beforeEach(() => tried.clear());

test('a key or a passkey leads where the rule says, whatever anybody has done with it', async () => {
  const makes: readonly (() => Credential)[] = [
    () => keyCredential('API_KEY_CURVE_P256'),
    () => keyCredential('API_KEY_CURVE_SECP256K1'),
    () => keyCredential('API_KEY_CURVE_ED25519'),
    () => new Passkey(false),
    () => new Passkey(true),
  ];
  for (let episode = 0; episode < 2 * episodes; episode++) {
    log = [];
    const of = makes[episode % makes.length]!();
    if (episode % makes.length === 0 && chance(2)) await beginsWithAMinute(of);
    for (let taken = 0; taken < steps; taken++) {
      await step(of);
      await look(of);
    }
  }
  print(`${2 * episodes} keys and passkeys`);
}, 240_000);

/** As the published client signs up with a passkey: beside a key of a minute, which logs in. */
async function beginsWithAMinute(of: Credential): Promise<void> {
  const authenticators = [{ authenticatorName: 'passkey', ...new SoftwareAuthenticator().register() }];
  const home = await makeHome(false, { ...of.parts({ expirationSeconds: '60' }), authenticators });
  of.rule.homes.push(home);
  of.rule.assert(home, { expires: coordinator.clock.now() + 60_000 });
  note('somebody signs up with a passkey, and it for a minute');
  await look(of);
}

test('a contact or an identity leads where the rule says, whatever anybody has done with it', async () => {
  const makes: readonly (() => Person)[] = [() => new Contact('EMAIL'), () => new Contact('SMS'), () => new Identity()];
  for (let episode = 0; episode < episodes; episode++) {
    log = [];
    const of = makes[episode % makes.length]!();
    const homeOf = (answer: Answer): string =>
      answer.status === 200 ? String(claimsOf(String(answer.body['session']))['organization_id']) : 'nobody';
    for (let taken = 0; taken < steps; taken++) {
      await of.step();
      const seen = await of.account();
      const { told } = of.rule.leads(coordinator.clock.now());
      expect([log, seen]).toEqual([log, nameOf(told)]);
      if (!chance(4)) continue;
      const answer = await of.login();
      note('it logs in', answer.status === 200);
      const { led } = of.rule.leads(coordinator.clock.now());
      expect([log, homeOf(answer)]).toEqual([log, nameOf(led)]);
    }
  }
  print(`${episodes} contacts and identities`);
}, 240_000);

/** What a sign-up can bring, by what must be allowed for it. */
async function bringing(methods: ReadonlySet<Method>, isSignUpKey: boolean): Promise<object> {
  const has = (method: Method) => methods.has(method);
  const own = coordinator.newKey();
  const user = {
    apiKeys: [
      ...(has('wallet') ? [apiKeyOf(own, chance(2) ? { expirationSeconds: has('passkey') ? '61' : '60' } : {})] : []),
      ...(isSignUpKey && has('passkey') ? [apiKeyOf(coordinator.newKey(), { expirationSeconds: '60' })] : []),
    ],
    authenticators: has('passkey') ? [{ authenticatorName: 'passkey', ...new SoftwareAuthenticator().register() }] : [],
    oauthProviders: has('oauth')
      ? [
          {
            providerName: 'provider',
            oidcToken: await provider.idToken({ subject: `person ${++count}`, at: coordinator.clock.now() }),
          },
        ]
      : [],
  };
  const kind = has('email') ? 'EMAIL' : 'SMS';
  if (!has('email') && !has('sms')) return { userName: 'Person', ...user };
  const contact = kind === 'EMAIL' ? `method-${++count}@example.com` : `+1202557${1_000 + ++count}`;
  const key = coordinator.newKey();
  const { otpId } = accepted(await proxy('otp_init', { otpType: `OTP_TYPE_${kind}`, contact }));
  const verified = { otpId, otpCode: await codeOf(coordinator, otpId!), publicKey: key.publicKey };
  const { verificationToken } = accepted(await proxy('otp_verify', verified));
  const said = kind === 'EMAIL' ? { email: contact } : { phoneNumber: contact };
  return {
    userName: 'Person',
    ...user,
    ...(kind === 'EMAIL' ? { userEmail: contact } : { userPhoneNumber: contact }),
    verificationToken,
    clientSignature: clientSignature(key, verificationToken!, 'USAGE_TYPE_SIGNUP', { signup: { ...user, ...said } }),
  };
}

test('a sign-up brings only what its configuration allows', async () => {
  const subset = () => new Set(everyMethod.filter(() => chance(2)));
  const tries = isLong ? 300 : 40;
  for (let number = 0; number < tries; number++) {
    // What comes with one thing too much is tried as often as what is allowed.
    const allowed = number % 2 === 0 ? subset() : new Set(everyMethod.filter((method) => method !== pick(everyMethod)));
    const methods = number < 3 * everyMethod.length ? new Set([everyMethod[number % everyMethod.length]!]) : subset();
    if (methods.has('email')) methods.delete('sms');
    if (methods.size === 0) continue;
    await allow(everyMethod);
    const body = await bringing(methods, chance(2));
    await allow([...allowed]);
    const { status, text } = await proxy(pick(['signup', 'signup_v2']), body);
    const isAllowed = [...methods].every((method) => allowed.has(method));
    note(`a sign-up by ${[...methods].join(', ')}`, status === 200);
    expect([[...methods], [...allowed], status, text]).toEqual([
      [...methods],
      [...allowed],
      isAllowed ? 200 : 403,
      text,
    ]);
  }
  await allow(everyMethod);
  const rows = [...tried.values()];
  process.stdout.write(
    `Identifiers: ${rows.length} combinations of methods, ${rows.filter((row) => row.refused > 0).length} refused at times, ` +
      `${rows.filter((row) => row.accepted > 0).length} accepted at times\n`,
  );
  for (const method of everyMethod) {
    expect([method, tried.get(`a sign-up by ${method}`)]).toEqual([
      method,
      { accepted: expect.any(Number) as number, refused: expect.any(Number) as number },
    ]);
  }
}, 120_000);
