import type {
  ActivityClient,
  EventData,
  ListedEvent,
  ParametersOf,
  QueryName,
  RequestOf,
  ResponseOf,
  ResultOf,
} from '../../src/index.js';
import type { OrganizationRequest, QueryDefinition } from '../../src/read-models/define-query.js';
import type { Page } from '../../src/read-models/pages.js';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import type { TagShape, UserShape } from '../../src/wire/shapes.js';

/** Whether the compiler takes a value for another. Saying it wrongly below does not compile. */
type Fits<Value, Wanted> = [Value] extends [Wanted] ? true : false;

type Answer<Response extends object> = Awaited<ReturnType<QueryDefinition<OrganizationRequest, Response>['answer']>>;
type UserAnswer = Answer<{ user: UserShape }>;
type TagsAnswer = Answer<{ tags: readonly TagShape[] }>;

// The compiler is the test.
describe('an answer', () => {
  it('is what its shape says, and nothing is forgotten', () => {
    const complete: Fits<{ user: UserShape }, UserAnswer> = true;
    const partial: Fits<{ user: Omit<UserShape, 'apiKeys'> }, UserAnswer> = false;
    const renamed: Fits<{ owner: UserShape }, UserAnswer> = false;
    expect([complete, partial, renamed]).toEqual([true, false, false]);
  });

  it('has in its pages what its lists are of', () => {
    const list: Fits<{ tags: TagShape[] }, TagsAnswer> = true;
    const page: Fits<{ tags: Page<TagShape> }, TagsAnswer> = true;
    const partial: Fits<{ tags: Page<Omit<TagShape, 'createdAt'>> }, TagsAnswer> = false;
    const other: Fits<{ tags: Page<UserShape> }, TagsAnswer> = false;
    expect([list, page, partial, other]).toEqual([true, true, false, false]);
  });

  it('of an activity says in which states it can be', () => {
    const known: Fits<'ACTIVITY_STATUS_CONSENSUS_NEEDED', ActivityEnvelope['status']> = true;
    const unknown: Fits<'ACTIVITY_STATUS_WAITING', ActivityEnvelope['status']> = false;
    expect([known, unknown]).toEqual([true, false]);
  });
});

describe("import 'countersign'", () => {
  it('knows the parameters of activities', () => {
    const parameters: ParametersOf<'ACTIVITY_TYPE_CREATE_WALLET'> = {
      walletName: 'Treasury',
      accounts: [
        {
          curve: 'CURVE_SECP256K1',
          pathFormat: 'PATH_FORMAT_BIP32',
          path: "m/44'/60'/0'/0/0",
          addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
        },
      ],
    };
    const otherCurve: Fits<'CURVE_X25519', (typeof parameters)['accounts'][number]['curve']> = false;
    const otherEffect: Fits<'ALLOW', ParametersOf<'ACTIVITY_TYPE_CREATE_POLICY_V3'>['effect']> = false;
    expect([parameters.walletName, otherCurve, otherEffect]).toEqual(['Treasury', false, false]);
  });

  it('knows the results of activities', () => {
    const wallet: ResultOf<'ACTIVITY_TYPE_CREATE_WALLET'> = { walletId: 'a', addresses: ['b'] };
    const half: Fits<{ r: string }, ResultOf<'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2'>> = false;
    expect([wallet.addresses, half]).toEqual([['b'], false]);
  });

  it('gives them from what was asked for', () => {
    const signed = async (client: ActivityClient): Promise<string> => {
      const result = await client.perform('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', {
        signWith: 'a',
        type: 'TRANSACTION_TYPE_ETHEREUM',
        unsignedTransaction: '02',
      });
      return result.signedTransaction;
    };
    const waitsFor = (activity: ActivityEnvelope): readonly string[] =>
      (activity.waitsFor?.policies ?? []).map(({ policyName }) => policyName);
    expect([typeof signed, typeof waitsFor]).toEqual(['function', 'function']);
  });

  it('knows the request and the response of queries', () => {
    const page: Fits<{ paginationOptions: { limit: string } }, RequestOf<'list_users'>> = true;
    const whose: Fits<{ userId: string }, RequestOf<'get_user'>> = true;
    const renamed: Fits<{ user: string }, RequestOf<'get_user'>> = false;
    const names: Fits<'list_user', QueryName> = false;
    const user: Fits<ResponseOf<'get_user'>, { readonly user: { readonly userName: string } }> = true;
    const otherMember: Fits<ResponseOf<'get_user'>, { readonly user: { readonly name: string } }> = false;
    expect([page, whose, renamed, names, user, otherMember]).toEqual([true, true, false, false, true, false]);
  });

  it('knows the data of an event once its type is known', () => {
    const lineOf = (event: ListedEvent): string => {
      switch (event.type) {
        case 'PolicyCreated':
          return event.data.policyName;
        case 'ActivitySubmitted':
          return `${event.data.vote.publicKey} at ${event.recordedAt}`;
        default:
          return event.type;
      }
    };
    const told = (answer: ResponseOf<'list_events'>): readonly string[] => answer.events.map(lineOf);
    const one = (answer: ResponseOf<'get_event'>): readonly string[] =>
      [answer.event, answer.decision ?? answer.event].map(lineOf);
    const policy: Fits<Extract<ListedEvent, { type: 'PolicyCreated' }>['data'], EventData<'PolicyCreated'>> = true;
    const unknown: Fits<'PolicyMade', ListedEvent['type']> = false;
    const elsewhere: Fits<'ActivityDenied', ListedEvent['type']> = false;
    const ofActivity: Fits<ResponseOf<'list_activity_events'>['events'][number], ListedEvent> = true;
    const untyped: Fits<{ type: 'PolicyCreated'; data: object }, Pick<ListedEvent, 'type' | 'data'>> = false;
    expect([typeof told, typeof one, policy, unknown, elsewhere, ofActivity, untyped]).toEqual([
      'function',
      'function',
      true,
      false,
      false,
      true,
      false,
    ]);
  });
});
