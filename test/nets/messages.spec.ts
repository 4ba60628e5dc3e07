import fc from 'fast-check';
import { activities } from '../../src/activities/index.js';
import { ApiError, startCoordinator, type StampingClient, type TestCoordinator } from '../../src/testing/index.js';
import { exchange } from '../e2e/exchange.js';
import { codeOf, messageOf } from '../e2e/one-time-codes.js';
import { until } from '../e2e/until.js';
import { isLong } from '../long.js';

/*
 * Whatever is mailed or texted speaks for the parent (security rule R6): every verb that sends, asked in sub-organizations of
 * strangers, with every setting by which a request could change the words, for contacts of everybody, under every setting of
 * the parent. And a contact is written to a few times only, whoever asks.
 */

const seed = Number(process.env['SEED'] ?? 32);

/** Verbs that send, in every version, with the kinds of contact that they take. */
const verbs = {
  INIT_OTP_V3: ['email', 'phone'],
  INIT_OTP_V2: ['email', 'phone'],
  INIT_OTP: ['email', 'phone'],
  INIT_OTP_AUTH_V3: ['email', 'phone'],
  INIT_OTP_AUTH_V2: ['email', 'phone'],
  INIT_OTP_AUTH: ['email', 'phone'],
  EMAIL_AUTH_V3: ['email'],
  EMAIL_AUTH_V2: ['email'],
  EMAIL_AUTH: ['email'],
  CREATE_INVITATIONS: ['email'],
} as const;
type Verb = keyof typeof verbs;
type Kind = (typeof verbs)[Verb][number];

let coordinator: TestCoordinator;
let number = 0;
const tried = new Map<string, number>();
const note = (what: string) => tried.set(what, (tried.get(what) ?? 0) + 1);

beforeAll(async () => {
  coordinator = await startCoordinator({
    seed: 'messages',
    settings: {
      PROXY_RATE_LIMIT_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
      PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONTACT: '0',
    },
  });
});

afterAll(async () => {
  await coordinator.close();
  const lines = [...tried].sort().map(([what, times]) => `  ${what}: ${times}\n`);
  process.stdout.write(`messages, seed ${seed}:\n${lines.join('')}`);
});

test('the verbs that send are those that are tried here', () => {
  const types = activities.flatMap((one) => {
    if (!('afterwards' in one)) return [];
    const older = 'olderVersions' in one ? one.olderVersions : [];
    return [one.type, ...older.map(({ type }) => type)];
  });
  expect(types.toSorted()).toEqual(
    Object.keys(verbs)
      .map((verb) => `ACTIVITY_TYPE_${verb}`)
      .sort(),
  );
});

const proxied = (endpoint: string, body: object) =>
  exchange(`${coordinator.url}/v1/${endpoint}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': coordinator.root.authProxyConfigId },
    body: JSON.stringify(body),
  });

/** A sub-organization, with a root user who holds its key and has contacts that nobody has proved. */
interface Sub {
  readonly organizationId: string;
  readonly userId: string;
  readonly client: StampingClient;
  readonly contacts: Readonly<Record<Kind, string>>;
}

const newContacts = (): Sub['contacts'] => {
  number += 1;
  return { email: `person-${number}@example.com`, phone: `+1202555${String(number).padStart(4, '0')}` };
};

/** What nobody wants to read in a message; each has its own, so that it is told from which it is. */
const lure = (name: string) => `evil-${name}`;

/** A member of one has done something, so that it is not taken for one that nobody uses. */
async function used(sub: Sub): Promise<Sub> {
  await sub.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'any', userIds: [] });
  return sub;
}

/** Founded by a stranger through the public sign-up, or by the parent's own back end; named as its user likes. */
async function newSub(founder: 'stranger' | 'parent', contacts = newContacts()): Promise<Sub> {
  const key = coordinator.newKey();
  const apiKeys = [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve }];
  const user = { userName: lure('user'), userEmail: contacts.email, userPhoneNumber: contacts.phone, apiKeys };
  if (founder === 'stranger') {
    const { status, body } = await proxied('signup', { ...user, organizationName: lure('organization') });
    expect(status).toBe(200);
    const { organizationId, userId } = body as { organizationId: string; userId: string };
    return used({ organizationId, userId, client: coordinator.clientFor(key, organizationId), contacts });
  }
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
    subOrganizationName: lure('organization'),
    rootUsers: [{ ...user, authenticators: [], oauthProviders: [] }],
    rootQuorumThreshold: 1,
  });
  const { subOrganizationId, rootUserIds } = Object.values(result)[0] as {
    subOrganizationId: string;
    rootUserIds: [string];
  };
  const client = coordinator.clientFor(key, subOrganizationId);
  return used({ organizationId: subOrganizationId, userId: rootUserIds[0], client, contacts });
}

/** Every setting of a request that is meant to change a message. */
const settings = {
  appName: lure('app'),
  logoUrl: `https://${lure('logo')}.example/logo.png`,
  magicLinkTemplate: `https://${lure('link')}.example/%s`,
  templateVariables: JSON.stringify({
    introText: lure('intro'),
    footerText: lure('footer'),
    userName: lure('name'),
    supportEmail: `${lure('support')}@example.com`,
  }),
  templateId: lure('template'),
  smsTemplate: `{{.OtpCode}} for ${lure('sms')}`,
  sendFromEmailAddress: `${lure('sender')}@example.com`,
  sendFromEmailSenderName: lure('sender-name'),
  replyToEmailAddress: `${lure('reply')}@example.com`,
  apiKeyName: lure('key'),
} as const;
type Setting = keyof typeof settings;

function parametersOf(verb: Verb, kind: Kind, contact: string, { userId }: Sub, chosen: ReadonlySet<Setting>): object {
  const chosenOf = (...names: readonly Setting[]) =>
    Object.fromEntries(names.flatMap((name) => (chosen.has(name) ? [[name, settings[name]]] : [])));
  if (verb === 'CREATE_INVITATIONS') {
    const receiverUserName = chosen.has('appName') ? lure('receiver') : 'Ann';
    return {
      invitations: [
        {
          receiverUserName,
          receiverUserEmail: contact,
          receiverUserTags: [],
          accessType: 'ACCESS_TYPE_ALL',
          senderUserId: userId,
        },
      ],
    };
  }
  const named = { appName: chosen.has('appName') ? settings.appName : 'plain' };
  const looks = chosenOf('logoUrl', 'magicLinkTemplate', 'templateVariables', 'templateId');
  const sender = chosenOf('sendFromEmailAddress', 'sendFromEmailSenderName', 'replyToEmailAddress');
  if (verb.startsWith('EMAIL_AUTH')) {
    const targetPublicKey = coordinator.newKey().publicKey;
    return {
      email: contact,
      targetPublicKey,
      emailCustomization: { ...named, ...looks },
      ...sender,
      ...chosenOf('apiKeyName'),
    };
  }
  const isOldest = /^INIT_OTP(?:_AUTH(?:_V2)?)?$/.test(verb);
  return {
    otpType: kind === 'email' ? 'OTP_TYPE_EMAIL' : 'OTP_TYPE_SMS',
    contact,
    userIdentifier: `${(number += 1)}`,
    ...(isOldest ? { emailCustomization: { ...named, ...looks } } : { ...named, emailCustomization: looks }),
    ...(chosen.has('smsTemplate') ? { smsCustomization: { template: settings.smsTemplate } } : {}),
    ...sender,
  };
}

/** Asks, when nothing of before counts any more; the answer's status, and what was sent because of it. */
async function ask(sub: Sub, verb: Verb, parameters: object, by = sub.client) {
  coordinator.clock.advance('11m');
  const before = coordinator.messages().length;
  const { organizationId } = sub;
  let status = 200;
  let refusal = '';
  try {
    await by.submit(`ACTIVITY_TYPE_${verb}`, parameters, { organizationId });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    ({ status } = error);
    refusal = error.body.message;
  }
  return { status, refusal, sent: () => coordinator.messages().slice(before) };
}

const asked = fc.record({
  kind: fc.constantFrom<Kind[]>('email', 'phone'),
  chosen: fc.uniqueArray(fc.constantFrom(...(Object.keys(settings) as Setting[])), { minLength: 1 }),
});

/** Each verb with every setting at once; with `LONG=1` also with some of them, many times. */
const requests = (Object.keys(verbs) as Verb[]).flatMap((verb, at) =>
  fc.sample(asked, { numRuns: isLong ? 12 : 1, seed: seed + at }).map(({ kind, chosen }, number) => ({
    verb,
    kind: (verbs[verb] as readonly Kind[]).includes(kind) ? kind : 'email',
    chosen: number === 0 ? (Object.keys(settings) as Setting[]) : chosen,
  })),
);

const invites = 'FEATURE_NAME_SUB_ORGANIZATION_INVITATIONS';
const setInvites = async (isOn: boolean, by = coordinator.client) => {
  coordinator.clock.advance(1);
  const verb = isOn ? 'SET' : 'REMOVE';
  await by.submit(`ACTIVITY_TYPE_${verb}_ORGANIZATION_FEATURE`, { name: invites, ...(isOn ? { value: '' } : {}) });
};

describe.each([
  ['has said nothing', undefined],
  [
    'has its own words',
    {
      emailCustomizationParams: { appName: 'Acme', magicLinkTemplate: 'https://acme.example/%s' },
      smsCustomizationParams: { template: '{{.OtpCode}} by Acme' },
      replyToEmailAddress: 'help@acme.example',
    },
  ],
])('where the parent %s', (_what, words) => {
  beforeAll(async () => {
    if (words) await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', words);
    await setInvites(true);
  });
  afterAll(() => setInvites(false));

  test('no setting of a request changes what a sub-organization sends', async () => {
    for (const founder of ['stranger', 'parent'] as const) {
      for (const { verb, kind, chosen } of requests) {
        const sub = await newSub(founder);
        const contact = verb === 'CREATE_INVITATIONS' ? newContacts().email : sub.contacts[kind];
        const { status, refusal, sent } = await ask(sub, verb, parametersOf(verb, kind, contact, sub, new Set(chosen)));
        expect([verb, chosen, status, refusal]).toEqual([verb, chosen, 200, '']);
        await until('it is sent', () => sent().length > 0);
        expect([verb, chosen, JSON.stringify(sent()).match(/evil-[\w-]+/g)]).toEqual([verb, chosen, null]);
        note(`${verb}, founded by the ${founder}: in the words of the parent`);
      }
    }
  }, 120_000);

  test('the parent’s users choose the words', async () => {
    const sub = await newSub('parent');
    const parameters = parametersOf('INIT_OTP_AUTH_V3', 'email', sub.contacts.email, sub, new Set(['appName']));
    const { status, sent } = await ask(sub, 'INIT_OTP_AUTH_V3', parameters, coordinator.client);
    expect(status).toBe(200);
    await until('it is sent', () => sent().length > 0);
    expect(JSON.stringify(sent())).toContain(settings.appName);
  });
});

test('a sub-organization writes to nobody but its own users, and invites where its parent says so', async () => {
  const other = await newSub('parent');
  const member = await coordinator.createUser('Member', { userEmail: 'member@example.com' });
  expect(member.userId).not.toBe('');
  for (const founder of ['stranger', 'parent'] as const) {
    const sub = await newSub(founder);
    const strangers: readonly Sub['contacts'][] = [
      newContacts(),
      other.contacts,
      { email: 'member@example.com', phone: newContacts().phone },
      // Nearly its own.
      { email: `x${sub.contacts.email}`, phone: `${sub.contacts.phone}1` },
    ];
    for (const verb of Object.keys(verbs) as Verb[]) {
      for (const kind of verbs[verb]) {
        for (const to of strangers.map((contacts) => contacts[kind])) {
          const { status, sent } = await ask(sub, verb, parametersOf(verb, kind, to, sub, new Set()));
          expect([founder, verb, to, sent()]).toEqual([founder, verb, to, []]);
          note(`${verb} to a contact of somebody else: ${status}, and nothing sent`);
        }
      }
    }
    // It cannot give itself the right.
    await setInvites(true, sub.client);
    for (const isOn of [false, true]) {
      if (isOn) await setInvites(true);
      const to = newContacts().email;
      const { status, sent } = await ask(
        sub,
        'CREATE_INVITATIONS',
        parametersOf('CREATE_INVITATIONS', 'email', to, sub, new Set()),
      );
      expect([founder, isOn, status]).toEqual([founder, isOn, isOn ? 200 : 403]);
      if (isOn) await until('it is sent', () => sent().length === 1);
      else expect(sent()).toEqual([]);
    }
    await setInvites(false);
  }
}, 120_000);

test('a contact that nobody has proved logs no member of the root quorum in, whichever verb writes to it', async () => {
  const service = await coordinator.createUser('Service');
  const consensus = `approvers.any(user, user.id == '${service.userId}')`;
  await coordinator.createPolicy({ policyName: 'the service does everything', consensus });
  const personOf = async (userName: string) => {
    const contacts = newContacts();
    const { userId } = await coordinator.createUser(userName, { userEmail: contacts.email });
    const phone = { userId, userPhoneNumber: contacts.phone };
    await coordinator.client.perform('ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER', phone);
    return { userId, contacts };
  };
  const [member, other] = [await personOf('Member of the quorum'), await personOf('Somebody')];
  const quorum = (...others: readonly string[]) =>
    coordinator.client.submit('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', {
      threshold: 1,
      userIds: [coordinator.root.userId, ...others],
    });
  await quorum(member.userId);
  /** The status of the last answer on the way to credentials for whoever has the contact. */
  const login = async (verb: Verb, kind: Kind, contact: string) => {
    const { organizationId } = coordinator;
    const sub: Sub = { organizationId, userId: service.userId, client: service.client, contacts: member.contacts };
    const { status, sent } = await ask(sub, verb, parametersOf(verb, kind, contact, sub, new Set()));
    if (status !== 200 || verb.startsWith('EMAIL_AUTH')) return { status, sent: sent().length };
    await until('it is sent', () => sent().length === 1);
    const otpId = sent()[0]!.otpId!;
    const otpCode = await codeOf(coordinator, otpId);
    const targetPublicKey = coordinator.newKey().publicKey;
    return service.client.submit('ACTIVITY_TYPE_OTP_AUTH', { otpId, otpCode, targetPublicKey }).then(
      () => ({ status: 200, sent: 1 }),
      (error: unknown) => {
        if (!(error instanceof ApiError)) throw error;
        return { status: error.status, sent: 1 };
      },
    );
  };
  try {
    for (const verb of (Object.keys(verbs) as Verb[]).filter((name) => /^(?:EMAIL_AUTH|INIT_OTP_AUTH)/.test(name))) {
      for (const kind of verbs[verb]) {
        const refused = await login(verb, kind, member.contacts[kind]);
        expect([verb, kind, refused.status]).toEqual([verb, kind, 403]);
        if (verb.startsWith('EMAIL_AUTH')) expect([verb, refused.sent]).toEqual([verb, 0]);
        const taken = await login(verb, kind, other.contacts[kind]);
        expect([verb, kind, taken.status]).toEqual([verb, kind, 200]);
        note(`${verb} by ${kind}: no credentials of a member of the root quorum, those of another user`);
      }
    }
  } finally {
    await quorum();
  }
}, 120_000);

describe('a contact is written to a few times only', () => {
  /** What strangers may have sent to one contact in three minutes, together, and each. */
  const most = { strangers: 4, each: 3 } as const;

  test('by strangers together and by each, and the parent’s members are never kept from it', async () => {
    const shared = [newContacts(), newContacts()];
    // They name the same people as their users.
    const subs = [
      await newSub('stranger', shared[0]),
      await newSub('stranger', shared[0]),
      await newSub('stranger', shared[1]),
      await newSub('stranger', { email: shared[0]!.email, phone: shared[1]!.phone }),
    ];
    const people = ['proxy', 'parent', ...subs.map((_sub, at) => `sub ${at}`)];
    const step = fc.record({
      who: fc.constantFrom('proxy', 'parent', 'parent', ...people, ...people.slice(2), ...people.slice(2)),
      whom: fc.nat(1),
      kind: fc.constantFrom<Kind[]>('email', 'phone'),
      verb: fc.constantFrom<Verb[]>('INIT_OTP_V3', 'INIT_OTP_AUTH_V3'),
    });
    const rounds = fc.sample(fc.array(step, { minLength: 30, maxLength: 30 }), { numRuns: isLong ? 40 : 4, seed });
    let full = 0;
    for (const round of rounds) {
      coordinator.clock.advance('21m');
      const counts = new Map<string, number>();
      const add = (key: string) => counts.set(key, (counts.get(key) ?? 0) + 1);
      /** A code that was sent in this round before any other to its contact. */
      const first = new Map<string, string>();
      for (const { who, whom, kind, verb } of round) {
        const contact = shared[whom]![kind];
        const otpType = kind === 'email' ? 'OTP_TYPE_EMAIL' : 'OTP_TYPE_SMS';
        const sub = subs[Number(who.slice('sub '.length))];
        const parameters = { otpType, contact, appName: 'x', userIdentifier: `${(number += 1)}` };
        coordinator.clock.advance(1);
        let otpId: string | undefined;
        if (who === 'proxy') {
          const { status, body } = await proxied('otp_init', { otpType, contact });
          expect([200, 429]).toContain(status);
          if (status === 200) ({ otpId } = body as { otpId: string });
        } else {
          const by = who === 'parent' ? coordinator.client : sub!.client;
          try {
            const { result } = await by.submit(`ACTIVITY_TYPE_${who === 'parent' ? 'INIT_OTP_V3' : verb}`, parameters);
            ({ otpId } = Object.values(result)[0] as { otpId: string });
          } catch (error) {
            if (!(error instanceof ApiError)) throw error;
            // Somebody whom it is none of the business of, or too many.
            expect([who, [403, 429].includes(error.status)]).toEqual([who, true]);
          }
        }
        note(`a code for ${who.replace(/ \d/, '-organization')}: ${otpId === undefined ? 'refused' : 'sent'}`);
        if (who === 'parent') {
          expect(otpId).toBeDefined();
          // Those of the parent's members push out older ones.
          first.set(contact, '');
        } else if (otpId !== undefined) {
          add(contact);
          add(`${who} to ${contact}`);
          if (who === 'proxy' && !first.has(contact)) first.set(contact, otpId);
        }
      }
      for (const [key, count] of counts) {
        const allowed = key.includes(' to ') ? most.each : most.strangers;
        expect([key, count <= (key.startsWith('proxy') ? most.strangers : allowed)]).toEqual([key, true]);
        if (count === allowed) full += 1;
      }
      // Each code of a person without a key serves, whatever others have asked for meanwhile.
      for (const [contact, otpId] of first) {
        if (otpId === '') continue;
        const verified = await proxied('otp_verify', {
          otpId,
          otpCode: /\b[0-9A-Z]{9}\b/.exec((await messageOf(coordinator, otpId)).text)![0],
          publicKey: coordinator.newKey().publicKey,
        });
        expect([contact, verified.status]).toEqual([contact, 200]);
      }
    }
    expect(full).toBeGreaterThan(rounds.length);
  }, 120_000);
});
