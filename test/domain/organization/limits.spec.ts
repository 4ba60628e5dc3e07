import { defineActivity } from '../../../src/activities/define-activity.js';
import { decideSubmit } from '../../../src/decide/submit.js';
import { buildRegistry } from '../../../src/decide/registry.js';
import { Whole } from '../../../src/wire/fields.js';
import { createPolicy } from '../../../src/activities/policies/create-policy.js';
import { createUserTag } from '../../../src/activities/tags/create-user-tag.js';
import { checkNewContractInterface } from '../../../src/domain/organization/contract-interfaces.js';
import { CoordinatorError } from '../../../src/domain/errors.js';
import {
  BadLimits,
  checkFoundings,
  checkRecordedBytes,
  checkLimit,
  checkLimits,
  isLimitsSet,
  limitNames,
  limitsInForce,
  limitsSetFor,
  limitTable,
  noteFounding,
  noteRecorded,
  readLimits,
  type LimitName,
  type Limits,
} from '../../../src/domain/organization/limits.js';
import { checkRoomToWait, type OpenActivity } from '../../../src/domain/organization/open-activities.js';
import {
  emptyOrganization,
  evolve,
  type Organization,
  type OrganizationEvent,
} from '../../../src/domain/organization/organization.js';
import { Steps } from '../../../src/domain/steps.js';
import { validate } from '../../../src/wire/validate.js';
import { parseContractInterface } from '../../../src/transactions/contracts/parse-interface.js';
import {
  aPasskey,
  anApiKey,
  anIdentity,
  anOrganization,
  aPolicy,
  aRootQuorum,
  aUser,
  aUserTag,
} from '../../activities/facts.js';
import { given, id } from '../../activities/given.js';
import { put } from '../../../src/domain/organization/slices.js';

const subOrganization = anOrganization({ parentOrganizationId: id(701) });

function folded(history: readonly OrganizationEvent[]): Organization {
  const organization = emptyOrganization();
  for (const event of history) evolve(organization, event, 0);
  return organization;
}

/** Whether so many may be there at last: `held` are there, and one decision adds the rest. */
type Trial = (held: number, more: number, limits: Limits) => void;

/** Of what is counted in events, whichever verb records them. */
function counted(of: (number: number) => OrganizationEvent, first: readonly OrganizationEvent[] = []): Trial {
  return (held, more, limits) => {
    const events = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => of(1_000 + from + index));
    checkLimits(folded([subOrganization, ...first, ...events(0, held)]), events(held, more), limits);
  };
}

const ann = id(101);
const lastingKey = (number: number): OrganizationEvent => ({
  type: 'ApiKeyCreated',
  data: { ...anApiKey(ann, 1).data, apiKeyId: id(number), publicKey: String(number) },
});
const wallet: OrganizationEvent = {
  type: 'WalletCreated',
  data: { walletId: id(300), walletName: 'wallet', vaultId: id(301), imported: false },
};
const accounts = (number: number): OrganizationEvent => ({
  type: 'WalletAccountsCreated',
  data: {
    walletId: id(300),
    accounts: [
      {
        walletAccountId: id(number),
        curve: 'CURVE_SECP256K1',
        pathFormat: 'PATH_FORMAT_BIP32',
        path: `m/${number}`,
        addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
        address: `0x${number}`,
        publicKey: '02',
      },
    ],
  },
});
const anInterface = (number: number, characters = 2) =>
  ({
    type: 'SmartContractInterfaceCreated',
    data: {
      smartContractInterfaceId: id(number),
      smartContractAddress: `0x${number}`,
      smartContractInterface: '[]'.padEnd(characters),
      type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
      label: '',
      notes: '',
    },
  }) as const;

/** Activities that wait, all by Ann, each with a body of so many characters. */
const waiting = (count: number, characters: number) => {
  const organization = folded([subOrganization]);
  for (let index = 0; index < count; index++) {
    const votes = [{ userId: ann, message: { length: characters } as string }];
    put(organization, 'openActivities', id(index), { votes } as unknown as OpenActivity);
  }
  return organization;
};
const inWaiting =
  (by: string): Trial =>
  (held, more, limits) => {
    for (let index = 0; index < more; index++) checkRoomToWait(waiting(held + index, 0), by, '', limits);
  };
const inCharacters =
  (by: string): Trial =>
  (held, more, limits) =>
    checkRoomToWait(waiting(1, held), by, 'x'.repeat(more), limits);

const read = (json: unknown) => parseContractInterface('ETHEREUM', JSON.stringify(json), new Steps(Infinity));

/** How each limit is tried; the compiler asks for one whenever a limit is added. */
const trials: Readonly<Record<LimitName, Trial>> = {
  users: counted((number) => aUser(id(number))),
  longLivedApiKeys: counted(lastingKey, [aUser(ann)]),
  expiringApiKeys: counted(
    (number) => ({
      type: 'ApiKeyCreated',
      data: { ...anApiKey(ann, 1).data, apiKeyId: id(number), expirationSeconds: 60 },
    }),
    [aUser(ann)],
  ),
  authenticators: counted((number) => aPasskey(ann, number), [aUser(ann)]),
  oauthProviders: counted((number) => anIdentity(ann, number), [aUser(ann)]),
  userTags: counted((number) => aUserTag(id(number), `tag ${number}`)),
  privateKeyTags: counted((number) => ({
    type: 'PrivateKeyTagCreated',
    data: { tagId: id(number), tagName: String(number) },
  })),
  policies: counted((number) => aPolicy(id(number), `policy ${number}`)),
  policyCharacters(held, more) {
    const policy = aPolicy(id(500), 'long');
    const condition = `true${' '.repeat(more - 4)}`;
    given(subOrganization, { ...policy, data: { ...policy.data, condition: 'x'.repeat(held) } })
      .when(createPolicy, { policyName: 'more', effect: 'EFFECT_DENY', condition })
      .then([expect.objectContaining({ type: 'PolicyCreated' })], { policyId: id(1) });
  },
  wallets: counted((number) => ({ ...wallet, data: { ...wallet.data, walletId: id(number) } })),
  walletAccounts: counted(accounts, [wallet]),
  privateKeys: counted((number) => ({
    type: 'PrivateKeyCreated',
    data: {
      privateKeyId: id(number),
      privateKeyName: `key ${number}`,
      curve: 'CURVE_SECP256K1',
      publicKey: '02',
      addresses: [],
      vaultId: id(number),
      imported: false,
      privateKeyTags: [],
    },
  })),
  imports: counted((number) => ({
    type: 'ImportStarted',
    data: { importId: id(number), userId: id(number), kind: 'wallet', vaultId: id(number), targetPublicKey: '04' },
  })),
  smartContractInterfaces: counted((number) => anInterface(number)),
  smartContractInterfaceCharacters(held, more, limits) {
    checkNewContractInterface(folded([subOrganization, anInterface(1, held)]), anInterface(2, more).data, limits);
  },
  smartContractInterfaceFunctions: (held, more) =>
    void read(Array.from({ length: held + more }, (_, index) => ({ type: 'function', name: `f${index}`, inputs: [] }))),
  smartContractInterfaceTypes: (held, more) =>
    void read(
      Array.from({ length: Math.ceil((held + more) / 4) }, (_, index) => ({
        type: 'function',
        name: `f${index}`,
        inputs: Array.from({ length: Math.min(4, held + more - index * 4) }, () => ({ name: '', type: 'bool[]' })),
      })),
    ),
  oauth2Credentials: counted((number) => ({
    type: 'Oauth2CredentialCreated',
    data: {
      oauth2CredentialId: id(number),
      provider: 'OAUTH2_PROVIDER_X',
      clientId: String(number),
      vaultId: id(number),
    },
  })),
  fiatOnRampCredentials: counted((number) => ({
    type: 'FiatOnRampCredentialCreated',
    data: {
      fiatOnRampCredentialId: id(number),
      onrampProvider: 'FIAT_ON_RAMP_PROVIDER_BETA',
      publishableApiKey: '',
      vaultId: id(number),
      sandboxMode: false,
    },
  })),
  // Its verb makes links and mails: test/e2e/caps.spec.ts tries it over HTTP.
  invitations: (held, more, limits) => checkLimit(limits, 'invitations', held, more),
  webhookEndpoints: counted((number) => ({
    type: 'WebhookEndpointCreated',
    data: { endpointId: id(number), url: 'https://example.com', name: '', isActive: true, subscriptions: [] },
  })),
  waitingActivities: inWaiting(id(102)),
  waitingCharacters: inCharacters(id(102)),
  waitingActivitiesOfSubmitter: inWaiting(ann),
  waitingCharactersOfSubmitter: inCharacters(ann),
  subOrganizationsPerMinute(held, more, limits) {
    const organization = emptyOrganization();
    for (let index = 0; index < held; index++) noteFounding(organization, ann, 1_000);
    for (let index = 0; index < more; index++) {
      checkFoundings(organization, ann, 1_001, limits);
      noteFounding(organization, ann, 1_001);
    }
  },
  recordedBytesPerDay(held, more, limits) {
    const organization = emptyOrganization();
    organization.recorded = { day: 1, bytes: held };
    checkRecordedBytes(organization, 'x'.repeat(more), 86_400_000, limits);
  },
  nameCharacters(held, more) {
    validate(createUserTag.intent, { userTagName: 'x'.repeat(held + more) });
  },
};

describe.each(limitNames)('%s', (name) => {
  const limits = limitsInForce(true);
  const most = limits[name];
  // Characters are added some at a time; a clause has a beginning.
  const last = /Characters/.test(name) && name !== 'nameCharacters' ? 10 : 1;

  it(`may be ${most}`, () => {
    expect(() => trials[name](most - last, last, limits)).not.toThrow();
  });

  it('may not be one more', () => {
    let thrown: unknown;
    try {
      trials[name](most - last, last + 1, limits);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(CoordinatorError);
    const { whose } = limitTable[name];
    const { code, message } = thrown as CoordinatorError;
    expect(code).toBe(whose === 'text' ? 'INVALID_ARGUMENT' : 'RESOURCE_EXHAUSTED');
    expect(message.replaceAll(/[\s_,]/g, '')).toContain(String(most));
  });
});

describe('limits', () => {
  it('refuse only what is added where there is more than they allow: nothing of older history', () => {
    const users = Array.from({ length: 150 }, (_, index) => aUser(id(1_000 + index)));
    const organization = folded([anOrganization(), ...users]);
    expect(organization.users.size).toBe(150);
    const limits = limitsInForce(false);
    const deleted: OrganizationEvent = { type: 'UserDeleted', data: { userId: id(1_000) } };
    expect(() => checkLimits(organization, [deleted], limits)).not.toThrow();
    expect(() => checkLimits(organization, [deleted, aUser(id(5_000))], limits)).not.toThrow();
    expect(() => checkLimits(organization, [aUser(id(5_000))], limits)).toThrow(
      'an organization may have 100 users (the limit users): there are 150, and this request adds 1; delete some with ' +
        'delete_users, or create a sub-organization for them',
    );
  });

  it('refuse what is more whichever verb it is, also one that does not ask', () => {
    class Tags {
      @Whole({ min: 0, max: 1_000 })
      count!: number;
    }
    class Nothing {}
    const careless = defineActivity({
      type: 'ACTIVITY_TYPE_CREATE_TAGS',
      summary: 'Creates tags without asking for any limit.',
      intent: Tags,
      result: Nothing,
      policy: 'root-quorum-only',
      decide: ({ count }, { newId }) => ({
        events: Array.from({ length: count }, () => aUserTag(newId(), 'tag')),
        result: {},
      }),
    });
    const registry = buildRegistry([careless]);
    const organization = folded([anOrganization(), aUser(ann), aRootQuorum(1, ann)]);
    const credential = { id: id(201), userId: ann, type: 'CREDENTIAL_TYPE_API_KEY_P256', publicKey: '02' };
    const vote = {
      voteId: id(1),
      userId: ann,
      selection: 'VOTE_SELECTION_APPROVED',
      message: '',
      fingerprint: '',
      publicKey: '02',
      signature: '',
      scheme: '',
      credentialId: id(201),
    } as const;
    const decide = (count: number) => {
      const { type } = careless;
      const submission = {
        activityId: id(2),
        type,
        intent: { count },
        parameters: { count },
        fingerprint: '',
        timestampMs: '0',
      };
      const bench = { registry, organization, revision: 0, now: 0 };
      const rest = { generateAppProofs: undefined };
      return decideSubmit(bench, { ...submission, ...rest }, vote, { userId: ann, credential }, undefined);
    };
    expect(decide(100)).toMatchObject({ outcome: 'allow' });
    expect(() => decide(101)).toThrow('an organization may have 100 user tags');
  });

  it('of recorded bytes count UTF-8, and begin anew each day', () => {
    const organization = emptyOrganization();
    const limits = { ...limitsInForce(true), recordedBytesPerDay: 6 };
    noteRecorded(organization, 'é', 86_399_999);
    expect(() => checkRecordedBytes(organization, 'éé', 86_399_999, limits)).not.toThrow();
    expect(() => checkRecordedBytes(organization, 'éé.', 86_399_999, limits)).toThrow('recordedBytesPerDay');
    expect(() => checkRecordedBytes(organization, 'éé.', 86_400_000, limits)).not.toThrow();
    noteRecorded(organization, 'x', 86_400_000);
    expect(organization.recorded).toEqual({ day: 1, bytes: 1 });
  });

  it('of foundings forget what is a minute old', () => {
    const organization = emptyOrganization();
    const limits = { ...limitsInForce(false), subOrganizationsPerMinute: 1 };
    noteFounding(organization, ann, 1_000);
    expect(() => checkFoundings(organization, ann, 60_999, limits)).toThrow('subOrganizationsPerMinute');
    expect(() => checkFoundings(organization, id(102), 60_999, limits)).not.toThrow();
    expect(() => checkFoundings(organization, ann, 61_000, limits)).not.toThrow();
    noteFounding(organization, id(102), 61_000);
    expect([...organization.foundings.keys()]).toEqual([id(102)]);
  });

  it.each([
    ['', '`` is not one'],
    ['users', '`users` is not one'],
    ['users=1;wallets=2', 'is not one'],
    ['constructor=5', '`constructor` is not a limit that can be set'],
    ['nameCharacters=5', '`nameCharacters` is not a limit that can be set'],
    ['users=0', 'users may be from 1 to 1000'],
    ['users=1001', 'users may be from 1 to 1000'],
    ['users=5,users=5', '`users` appears twice'],
  ])('cannot be set to `%s`', (text, why) => {
    expect(() => readLimits(text)).toThrow(BadLimits);
    expect(() => readLimits(text)).toThrow(why);
  });

  it('are set by the operator, and lower by a parent', () => {
    const operator = { organizations: { users: 200 }, subOrganizations: { users: 50, wallets: 5 } };
    const parent = folded([
      anOrganization(),
      {
        type: 'OrganizationFeatureSet',
        data: { name: 'FEATURE_NAME_SUB_ORGANIZATION_LIMITS', value: 'users=20, wallets=9, userTags=90' },
      },
    ]);
    const theirs = { users: 20, wallets: 5, userTags: 10 };
    expect(limitsSetFor(parent, undefined, operator)).toEqual({
      organization: { users: 200 },
      subOrganizations: theirs,
    });
    expect(limitsSetFor(folded([subOrganization]), parent, operator)).toEqual({ organization: theirs });
    expect(limitsSetFor(folded([subOrganization]), folded([anOrganization()]), undefined)).toBeUndefined();
    expect(
      limitsSetFor(folded([anOrganization()]), undefined, { organizations: {}, subOrganizations: {} }),
    ).toBeUndefined();
  });

  it('that history can have recorded are such as can be set', () => {
    expect(isLimitsSet({ users: 20, wallets: 5 })).toBe(true);
    expect(isLimitsSet({ users: 1e9 })).toBe(false);
    expect(isLimitsSet({ nameCharacters: 5 })).toBe(false);
  });
});
