import { activityEnvelope } from '../../src/wire/envelope.js';
import { signUpLifeMs } from '../../src/domain/organization/claims.js';
import { limitsInForce } from '../../src/domain/organization/limits.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { findByFingerprint } from '../../src/read-models/activities.js';
import { isOriginAllowedAnywhere, organizationOfConfig } from '../../src/read-models/auth-proxies.js';
import {
  accountOf,
  claimsRevision,
  dueClaims,
  firstClaim,
  highestCounter,
  keysOfCredentialId,
  knowsIssuer,
  whereItLeads,
} from '../../src/read-models/claims.js';
import type { EnvelopesPort } from '../../src/read-models/activities.js';
import type { Rows } from '../../src/read-models/database.js';
import { endedVaults } from '../../src/read-models/destroyed-vaults.js';
import { queries } from '../../src/read-models/index.js';
import { causesOf, toldEvent } from '../../src/read-models/events.js';
import { isPage, pageWriter } from '../../src/read-models/pages.js';
import { policiesAfter } from '../../src/read-models/policies.js';
import { recordedByParent, unfoundedIn } from '../../src/read-models/sub-organizations.js';
import { tokenUsesOf } from '../../src/read-models/token-uses.js';
import { unnamedVaults } from '../../src/read-models/unnamed-vaults.js';
import {
  deliveryLogRevision,
  dueDeliveries,
  endpointsWithDeliveries,
  hasWebhookEndpoints,
  pendingDeliveries,
  webhooksModel,
} from '../../src/read-models/webhooks.js';
import { validate } from '../../src/wire/validate.js';
import { startCoordinator } from '../../src/testing/index.js';
import { aPasskey, anIdentity } from '../activities/facts.js';
import { furnish, querySamples, sampleSettings, type Furnished } from '../e2e/samples.js';
import { CountedRows, renamed } from './grown.js';
import { WebhookHistory } from './webhook-history.js';

/** How often the history of the smaller installation is in the larger one. */
const times = 100;
/** Instructions that an answer may take for each row more that it shows: its own, and those of what it shows of others. */
const perRow = 150;
/** For each row that a look-up reads at most, before it gives up or goes on with the next piece. */
const perBoundRow = 20;
/** What the tree of an index that is a level deeper may take more, and a seek more at the end of a range. */
const slack = 60;

let base: readonly RecordedEvent[];
let furnished: Furnished;
let organizationId: string;
let childId: string;
let now: number;
let small: CountedRows;
let large: CountedRows;

const nowhere = '00000000-0000-4000-8000-000000000000';

/** An organization with one of everything, and something of each kind that comes and goes. */
async function installation(): Promise<readonly RecordedEvent[]> {
  const coordinator = await startCoordinator({ settings: sampleSettings });
  try {
    furnished = await furnish(coordinator);
    ({ organizationId } = coordinator);
    const { client, clock } = coordinator;
    now = clock.now() + 1_000;
    await client.submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
      url: 'http://127.0.0.1:9/all',
      name: 'all',
      subscriptions: [{ eventType: 'ACTIVITY_UPDATES', isActive: true }],
    });
    const denied = furnished.carol.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'no' });
    await denied.catch(() => undefined);
    await furnished.child.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'ours' });
    for (;;) {
      const recorded = await coordinator.recorded();
      const streams = new Set(recorded.map(({ stream }) => stream));
      if (streams.has(`denials-${organizationId}`) && streams.has(`claims-${organizationId}`)) return recorded;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  } finally {
    await coordinator.close();
  }
}

const dataOf = (event: RecordedEvent) => event.data as Record<string, never>;
const typed = (stream: string, type: string) => base.filter((event) => event.stream === stream && event.type === type);

/** What the sub-organization could be found by besides, as far as no sample gives it. */
function waysToTheChild(): readonly RecordedEvent[] {
  const stream = organizationStream(childId);
  const [user] = typed(stream, 'UserCreated');
  const userId = String(dataOf(user!)['userId']);
  const walletId = renamed(user!, 'wallet', () => false).id;
  const contacts = { userId, userEmail: 'child@example.com', userPhoneNumber: '+15550001111' };
  const account = typed(organizationStream(organizationId), 'WalletAccountsCreated')[0]!.data as {
    accounts: readonly object[];
  };
  const facts = [
    { type: 'UserUpdated', data: contacts },
    { type: 'UserContactVerified', data: { userId, contact: 'email', value: contacts.userEmail } },
    aPasskey(userId, 1),
    anIdentity(userId, 1),
    { type: 'WalletAccountsCreated', data: { walletId, accounts: account.accounts } },
  ];
  return facts.map((fact, index) => ({
    ...user!,
    ...fact,
    id: `${user!.id.slice(0, -1)}${index}`,
    revision: 100 + index,
  }));
}

/** A delivery of everything that one of the endpoints is told of, or none. */
const deliveredTo = (endpointId: string, events: readonly RecordedEvent[]): RecordedEvent[] =>
  events
    .filter(({ type }) => type === 'ActivityCompleted')
    .map((event) => ({
      ...event,
      stream: `webhook-deliveries-${organizationId}`,
      type: 'WebhookDelivered',
      data: { endpointId, eventId: event.id, attempts: 1, status: 200, token: 1 },
    }));

const ends: Readonly<Record<string, readonly [type: string, more?: object]>> = {
  UserCreated: ['UserDeleted'],
  ApiKeyCreated: ['ApiKeyDeleted'],
  AuthenticatorCreated: ['AuthenticatorDeleted'],
  OauthProviderCreated: ['OauthProviderDeleted'],
  PolicyCreated: ['PolicyDeleted'],
  UserTagCreated: ['UserTagDeleted'],
  WalletCreated: ['WalletDeleted'],
  PrivateKeyCreated: ['PrivateKeyDeleted'],
  PrivateKeyTagCreated: ['PrivateKeyTagDeleted'],
  SmartContractInterfaceCreated: ['SmartContractInterfaceDeleted'],
  WebhookEndpointCreated: ['WebhookEndpointDeleted'],
  Oauth2CredentialCreated: ['Oauth2CredentialDeleted'],
  FiatOnRampCredentialCreated: ['FiatOnRampCredentialDeleted'],
  InvitationCreated: ['InvitationClosed', { reason: 'deleted' }],
};

const assertedKey = '02'.padEnd(66, 'ab');

/** A stranger signs up with somebody's public key, an hour after the last one, and proves nothing. */
function signUp(copy: string): readonly RecordedEvent[] {
  const at = now + Number(copy) * signUpLifeMs;
  const child = (event: RecordedEvent, data: object): RecordedEvent => {
    const { id: subOrganizationId } = renamed(base[0]!, `sign-up ${copy}`, () => false);
    const isParents = event.type === 'SubOrganizationCreated';
    return {
      ...renamed(event, `sign-up ${copy}`, (id) => id === organizationId),
      stream: organizationStream(isParents ? organizationId : subOrganizationId),
      data: { ...dataOf(event), ...data, [isParents ? 'subOrganizationId' : 'organizationId']: subOrganizationId },
      metadata: { ...(event.metadata as object), at },
    };
  };
  const stream = organizationStream(childId);
  return [
    child(typed(organizationStream(organizationId), 'SubOrganizationCreated')[0]!, {}),
    child(typed(stream, 'OrganizationCreated')[0]!, { createdBy: 'auth-proxy' }),
    child(typed(stream, 'ApiKeyCreated')[0]!, { apiKeyId: nowhere, publicKey: assertedKey }),
  ];
}

/** What goes on in an installation, once more: in the organization, in a sub-organization more, and with other tenants. */
function history(copy: string): readonly RecordedEvent[] {
  const stream = organizationStream(organizationId);
  const own = base.filter((event) => event.stream === stream);
  const people = new Set(
    own.filter(({ type }) => type === 'UserCreated').map((event) => String(dataOf(event)['userId'])),
  );
  const again = (events: readonly RecordedEvent[], kept: ReadonlySet<string>) =>
    events.map((event) => renamed(event, copy, (id) => id === organizationId || kept.has(id)));
  const endpoints = new Set(
    typed(stream, 'WebhookEndpointCreated').map((event) => String(dataOf(event)['endpointId'])),
  );
  const activities = again(
    own.filter(({ type }) => type.startsWith('Activity')),
    people,
  );
  // What users hold is theirs; each of all others is made and deleted.
  const comings = again(
    own.filter(({ type }) => type in ends && type !== 'UserCreated'),
    people,
  );
  const users = again(
    own.filter(({ type }) => type === 'UserCreated'),
    new Set(),
  );
  const comeAndGone = [...comings, ...users].flatMap((event) => {
    const [type, more] = ends[event.type]!;
    return [
      event,
      {
        ...event,
        id: `${event.id.slice(0, -1)}${event.id.endsWith('0') ? 1 : 0}`,
        type,
        data: { ...dataOf(event), ...more },
      },
    ];
  });
  const changes = again(
    own.filter(({ type }) => type === 'UserUpdated'),
    people,
  );
  const wallets = new Set(
    own.filter(({ type }) => type === 'WalletCreated').map((event) => String(dataOf(event)['walletId'])),
  );
  const accounts = again(
    own.filter(({ type }) => type === 'WalletAccountsCreated'),
    wallets,
  ).map((event) => {
    const { accounts: facts, ...data } = event.data as { accounts: { address: string; path: string }[] };
    const moved = facts.map((fact) => ({ ...fact, address: `${fact.address}${copy}`, path: `${fact.path}${copy}` }));
    return { ...event, data: { ...data, accounts: moved } };
  });
  const uses = again(
    own.filter(({ type }) => type.endsWith('TokenUsed')),
    people,
  ).map((event) => ({
    ...event,
    data: { ...dataOf(event), tokenId: `${String(dataOf(event)['tokenId'])}${copy}` },
  }));
  const boots = base
    .filter(({ type }) => type === 'CoordinatorBooted')
    .map((event) => ({ ...event, data: { ...dataOf(event), ephemeralPublicKey: `${copy}00` } }));
  const attempts = again(
    base.filter((event) => event.stream.startsWith('vault-') && event.type === 'SecretSealed'),
    people,
  );
  const denials = again(
    base.filter((event) => event.stream.startsWith('denials-')),
    people,
  );
  const [deliveries] = [...endpoints]
    .slice(-1)
    .map((endpointId) => deliveredTo(endpointId, Number(copy) % 2 ? activities : []));
  const children = [
    ...again(
      own.filter(({ type }) => type === 'SubOrganizationCreated'),
      people,
    ),
    ...again([...base.filter((event) => event.stream === organizationStream(childId)), ...waysToTheChild()], new Set()),
    ...again(
      base.filter((event) => event.stream === `claims-${organizationId}`),
      new Set(),
    ),
  ];
  const lapsed = signUp(copy);
  const others = base.map((event) => renamed(event, `other ${copy}`, () => false));
  return [
    ...activities,
    ...comeAndGone,
    ...changes,
    ...accounts,
    ...uses,
    ...boots,
    ...attempts,
    ...denials,
    ...(deliveries ?? []),
    ...children,
    ...lapsed,
    ...others,
  ];
}

beforeAll(async () => {
  base = await installation();
  childId = String(dataOf(base.find(({ type }) => type === 'SubOrganizationCreated')!)['subOrganizationId']);
  const beginning = [...base, ...waysToTheChild()];
  small = new CountedRows();
  small.project([...beginning, ...history('1')]);
  large = new CountedRows();
  large.project([...beginning, ...Array.from({ length: times }, (_, copy) => history(String(copy + 1))).flat()]);
});

afterAll(() => {
  small.rows.close();
  large.rows.close();
});

async function* recordedFrom(stream: string, from: number) {
  for (const event of base) if (event.stream === stream && event.revision >= from) yield await Promise.resolve(event);
}

async function toldFrom(rows: Rows, id: string, from: number, limit: number) {
  const events: RecordedEvent[] = [];
  for await (const event of recordedFrom(organizationStream(id), from)) if (events.push(event) === limit) break;
  const causes = await causesOf(rows, id, events, (at) => recordedFrom(organizationStream(id), at));
  return {
    texts: events.map((event, index) => JSON.stringify(toldEvent(event, causes[index], now, id))),
    hasMore: false,
  };
}

/** Elements of the longest list in an answer. */
const shown = (answer: unknown): number => {
  const lists: unknown[] =
    typeof answer === 'object' && answer !== null ? [answer, ...(Object.values(answer) as unknown[])] : [];
  return Math.max(
    0,
    ...lists.map((list) => (isPage(list) ? list.texts.length : Array.isArray(list) ? list.length : 0)),
  );
};

/** Refuses a question that costs more in the larger installation than its longer answer explains. */
async function expectSameCost(ask: LookUp, mostRows = 0): Promise<void> {
  const cost = async (counted: CountedRows) => {
    let answer: unknown;
    const { steps, by } = await counted.counted(async () => (answer = await ask(counted.rows)));
    return { rows: shown(answer), steps, by };
  };
  const [less, more] = [await cost(small), await cost(large)];
  const allowed = less.steps + slack + perRow * Math.max(0, more.rows - less.rows) + perBoundRow * mostRows;
  if (more.steps <= allowed) return;
  const grown = [...more.by]
    .map(([sql, steps]) => ({ sql, steps, before: less.by.get(sql) ?? 0 }))
    .filter(({ steps, before }) => steps > before);
  throw new Error(`${more.steps} instructions, ${allowed} at most: ${JSON.stringify(grown, null, 1)}`);
}

const envelope: EnvelopesPort['explained'] = (record) =>
  activityEnvelope(record, {
    now,
    keys: { intentKey: 'intent', resultKeys: ['result'] },
    rights: { canApprove: false, canReject: false },
  });

const reached = { revision: '0', eventId: '', recordedAt: '', hash: '' };

const answered = (path: string, request: object) => {
  const query = queries.find((one) => one.path === path)!;
  return (rows: Rows) =>
    query.answer(validate(query.request, { organizationId, ...request }), {
      rows,
      now,
      page: pageWriter({ room: () => undefined, turn: () => undefined }),
      callerOrganizationId: organizationId,
      callerUserId: furnished.alice.userId,
      limits: () => Promise.resolve(limitsInForce(false)),
      verifyOidc: () => Promise.resolve({ issuer: 'https://a.example', audience: 'app', subject: 'nobody' }),
      events: (id, from, limit) => toldFrom(rows, id, from, limit),
      // No row is read for these: their threads fold events.
      states: () =>
        Promise.resolve({ reached: [reached, reached], organization: {}, elements: { texts: [], hasMore: false } }),
      lint: () => Promise.resolve({ findings: [] }),
      whatIf: ({ organizationId: asked }) =>
        Promise.resolve({
          organizationId: asked,
          last: 0,
          from: 0,
          counts: { 'newly-allowed': 0, 'newly-denied': 0, 'now-waits': 0, 'not-judged': 0, otherwise: 0 },
          divergences: [],
          more: 0,
          waiting: [],
          notJudged: [],
          neverHeld: [],
          unchanged: { decisions: 0, forOtherReasons: 0, denials: 0, asRecorded: 0 },
          differences: [],
          moreDifferences: 0,
        }),
      approvers: () => Promise.resolve({ text: '', classes: [], minimalSets: [], setCount: '0' }),
      reasons: () => Promise.resolve({ told: [] }),
      dryRun: () => Promise.resolve({ outcome: 'allow', decidedBy: 'none', policyEvaluations: [] }),
      proofs: () => Promise.resolve({ notExplained: 'for this test' }),
      history: (id, from) => recordedFrom(organizationStream(id), from),
      envelopes: () => envelope,
      explained: envelope,
      turn: () => undefined,
      saysNow: () => undefined,
    });
};

/** The questions, by the query's name: each filter with what matches nothing and with what matches much. */
function questions(): readonly (readonly [string, object])[] {
  const { waiting, walletId, webhookEndpointId } = furnished;
  const pages = [{}, { limit: '1' }, { limit: '100' }].map((paginationOptions) => ({ paginationOptions }));
  const statuses = [
    ['ACTIVITY_STATUS_REJECTED'],
    ['ACTIVITY_STATUS_COMPLETED'],
    ['ACTIVITY_STATUS_CONSENSUS_NEEDED'],
    ['ACTIVITY_STATUS_REJECTED', 'ACTIVITY_STATUS_FAILED', 'ACTIVITY_STATUS_CONSENSUS_NEEDED'],
  ];
  const types = [
    ['ACTIVITY_TYPE_NONE'],
    ['ACTIVITY_TYPE_CREATE_WALLET'],
    ['ACTIVITY_TYPE_NONE', 'ACTIVITY_TYPE_CREATE_WALLET', 'ACTIVITY_TYPE_CREATE_USERS_V4'],
  ];
  const filters = [
    {},
    ...statuses.map((filterByStatus) => ({ filterByStatus })),
    ...types.map((filterByType) => ({ filterByType })),
    ...statuses.flatMap((filterByStatus) => types.map((filterByType) => ({ filterByStatus, filterByType }))),
  ];
  const cursors = [{ after: waiting.id }, { before: waiting.id }, { after: waiting.id, before: waiting.id }];
  const suborgs = [
    {},
    ...Object.entries({
      NAME: 'child',
      USERNAME: 'Child',
      EMAIL: 'child@example.com',
      PHONE_NUMBER: '+15550001111',
      PUBLIC_KEY: String(dataOf(typed(organizationStream(childId), 'ApiKeyCreated')[0]!)['publicKey']),
      CREDENTIAL_ID: String(
        dataOf(waysToTheChild().find(({ type }) => type === 'AuthenticatorCreated')!)['credentialId'],
      ),
      WALLET_ACCOUNT_ADDRESS: furnished.signWith,
      OIDC_TOKEN: 'token',
    }).flatMap(([filterType, filterValue]) => [
      { filterType, filterValue },
      { filterType, filterValue: 'nothing' },
    ]),
  ];
  return [
    ...Object.entries(querySamples(furnished)),
    ...filters.flatMap((filter) => pages.map((page) => ['list_activities', { ...filter, ...page }] as const)),
    ...filters.flatMap((filter) =>
      cursors.map((paginationOptions) => ['list_activities', { ...filter, paginationOptions }] as const),
    ),
    ...suborgs.flatMap((filter) => pages.map((page) => ['list_suborgs', { ...filter, ...page }] as const)),
    ...['child@example.com', 'nothing'].flatMap((filterValue) =>
      pages.map((page) => ['list_verified_suborgs', { filterType: 'EMAIL', filterValue, ...page }] as const),
    ),
    ...pages.flatMap((page) => [
      ['list_verified_suborgs', page] as const,
      ['list_denials', page] as const,
      ['list_invitations', page] as const,
      ['list_wallet_accounts', page] as const,
      ['list_wallet_accounts', { walletId, ...page }] as const,
      ...['pending', 'delivered', 'abandoned', 'dropped'].map(
        (filterByState) =>
          ['list_webhook_deliveries', { endpointId: webhookEndpointId, filterByState, ...page }] as const,
      ),
      ['list_webhook_deliveries', { endpointId: webhookEndpointId, ...page }] as const,
    ]),
    ['get_oauth_providers', {}],
    ['get_api_keys', {}],
  ];
}

type LookUp = (rows: Rows) => unknown;

/** What is read for decisions, for deliveries and at the start; those that read a bounded number of rows, with that bound. */
function lookUps(): Readonly<Record<string, LookUp | readonly [LookUp, number]>> {
  const key = String(dataOf(typed(organizationStream(childId), 'ApiKeyCreated')[0]!)['publicKey']);
  const passkey = waysToTheChild().find(({ type }) => type === 'AuthenticatorCreated')!;
  const { credentialId, publicKey } = dataOf(passkey) as unknown as Record<'credentialId' | 'publicKey', string>;
  const [endpoint] = typed(organizationStream(organizationId), 'WebhookEndpointCreated').slice(-1);
  const endpointId = String(dataOf(endpoint!)['endpointId']);
  const identifiers = [
    { kind: 'PUBLIC_KEY', value: key },
    { kind: 'PUBLIC_KEY', value: assertedKey },
    { kind: 'PUBLIC_KEY', value: 'none' },
    { kind: 'PASSKEY', value: `${credentialId} ${publicKey}` },
    { kind: 'EMAIL', value: 'child@example.com' },
    { kind: 'PHONE_NUMBER', value: '+15550001111' },
    { kind: 'OIDC', value: 'nobody' },
  ] as const;
  const later = now + (times + 2) * signUpLifeMs;
  const first = (found: Generator<unknown>): unknown => found.next().value;
  const ofIdentifiers = Object.fromEntries(
    identifiers.flatMap((identifier): readonly (readonly [string, LookUp | readonly [LookUp, number]])[] => [
      [
        `whereItLeads ${identifier.kind} ${identifier.value}`,
        // Two hours of lapsed sign-ups are there until others begin.
        [(rows: Rows) => whereItLeads(rows, organizationId, identifier, later), 8],
      ],
      [
        `accountOf ${identifier.kind} ${identifier.value}`,
        (rows: Rows) => accountOf(rows, organizationId, identifier, later),
      ],
      [
        `firstClaim ${identifier.kind} ${identifier.value}`,
        (rows: Rows) => firstClaim(rows, organizationId, identifier),
      ],
    ]),
  );
  return {
    ...ofIdentifiers,
    keysOfCredentialId: [(rows) => keysOfCredentialId(rows, organizationId, credentialId), 32],
    knowsIssuer: (rows) => knowsIssuer(rows, organizationId, 'https://a.example'),
    dueClaims: [(rows) => dueClaims(rows, 256), 256],
    highestCounter: (rows) => highestCounter(rows, organizationId, credentialId, publicKey),
    claimsRevision: (rows) => claimsRevision(rows, organizationId),
    findByFingerprint: (rows) => findByFingerprint(rows, organizationId, furnished.waiting.fingerprint),
    tokenUsesOf: (rows) => tokenUsesOf(rows, 'none'),
    isOriginAllowedAnywhere: (rows) => isOriginAllowedAnywhere(rows, 'https://a.example'),
    organizationOfConfig: (rows) => organizationOfConfig(rows, nowhere),
    recordedByParent: (rows) => recordedByParent(rows, childId),
    unfounded: (rows) => unfoundedIn(rows),
    policiesAfter: (rows) => policiesAfter(rows, { organizationId: '', policyId: '' }, 10),
    endedVaults: [(rows) => first(endedVaults(rows)), 1_000],
    unnamedVaults: [(rows) => first(unnamedVaults(rows, 0, now)), 1_000],
    hasWebhookEndpoints: (rows) => hasWebhookEndpoints(rows),
    pendingDeliveries: (rows) => pendingDeliveries(rows),
    endpointsWithDeliveries: (rows) => [...endpointsWithDeliveries(rows)],
    dueDeliveries: (rows) => dueDeliveries(rows, endpointId, now, 4),
    deliveryLogRevision: (rows) => deliveryLogRevision(rows, organizationId),
  };
}

/** Names of those that cost more, with why. */
async function dearer(asked: readonly (readonly [string, LookUp, number?])[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const [name, ask, mostRows] of asked) {
    await expectSameCost(ask, mostRows).catch((error: unknown) => found.push(`${name}: ${String(error)}`));
  }
  return found;
}

test('every query costs the same with a hundred times the history, whatever its filter matches', async () => {
  const asked = questions();
  expect(new Set(asked.map(([path]) => path))).toEqual(new Set(queries.map(({ path }) => path)));
  expect(
    await dearer(asked.map(([path, request]) => [`${path} ${JSON.stringify(request)}`, answered(path, request)])),
  ).toEqual([]);
});

/** Statements that a query of one thing, or of a short list, asks of its rows; of all others two at most. */
const statements: Readonly<Record<string, number>> = {
  // Of a denial or an activity.
  explain_activity: 3,
  get_active_policies: 3,
  // Of every list of the organization.
  get_organization: 19,
  list_activities: 5,
  list_denials: 3,
  list_events: 5,
  list_invitations: 3,
  list_policies: 3,
  list_users: 5,
  list_wallet_accounts: 3,
  list_webhook_deliveries: 7,
};

test('a query asks no more statements of its rows than stand here', async () => {
  for (const [path, request] of Object.entries(querySamples(furnished))) {
    const { runs } = await small.counted(() => answered(path, request)(small.rows));
    const most = statements[path] ?? 2;
    expect([path, runs <= most || runs]).toEqual([path, true]);
  }
});

test('what decisions and deliveries look up costs the same with a hundred times the history', async () => {
  const asked = Object.entries(lookUps()).map(([name, ask]): readonly [string, LookUp, number?] =>
    typeof ask === 'function' ? [name, ask] : [name, ...ask],
  );
  expect(await dearer(asked)).toEqual([]);
});

test('looking for due deliveries costs the same however many wait behind others, or for a later time', async () => {
  const cost = async (votes: number) => {
    const counted = new CountedRows([webhooksModel]);
    const history = new WebhookHistory();
    const waiting = Array.from({ length: 20 }, (_, number) => history.waits(`activity ${number}`, votes));
    const [first, ...others] = waiting;
    const failed = others.map(([submitted]) => history.failed(submitted!, 2_000_000));
    counted.project([history.begins(), ...waiting.flat(), ...failed]);
    const { steps } = await counted.counted(() => {
      expect(dueDeliveries(counted.rows, history.endpointId, 1_000_000, 32)).toMatchObject([
        { eventId: first![0]!.id },
      ]);
      expect([...endpointsWithDeliveries(counted.rows)]).toHaveLength(1);
    });
    counted.rows.close();
    return steps;
  };
  expect(await cost(200)).toBeLessThanOrEqual((await cost(1)) + slack);
});

test('an event is projected at the same cost with a hundred times the history', async () => {
  const more = history(String(times + 1));
  const cost = async (counted: CountedRows) => {
    const { by } = await counted.counted(() => counted.project(more));
    return by;
  };
  const [less, now] = [await cost(small), await cost(large)];
  const grown = [...now].filter(([sql, steps]) => steps > 1.2 * (less.get(sql) ?? 0) + slack);
  expect(grown.map(([sql, steps]) => ({ sql, steps, before: less.get(sql) }))).toEqual([]);
});
