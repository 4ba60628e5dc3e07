import { queries } from '../../src/read-models/index.js';
import {
  stampBody,
  startCoordinator,
  submitPath,
  type StampingClient,
  type TestCoordinator,
} from '../../src/testing/index.js';
import { PublishedTypes } from '../answers/published-types.js';
import { exchange } from '../e2e/exchange.js';
import { furnish, querySamples, sampleSettings, submitSamples, type Furnished } from '../e2e/samples.js';

// Answers to every activity and query that the published clients know, decoded as strictly as their generated types allow, with
// the times that clients other than JavaScript's get.

const published = new PublishedTypes();

let coordinator: TestCoordinator;
let furnished: Furnished;

beforeAll(async () => {
  const settings = { ...sampleSettings, ACTIVITY_TIMESTAMPS: 'object' };
  coordinator = await startCoordinator({ seed: 'strict decoders', settings });
  furnished = await furnish(coordinator);
});
afterAll(() => coordinator.close());

/** Differences that are meant. */
const meant: readonly RegExp[] = [
  // The specification (4.3.9) has other names for the providers.
  /onrampProvider must be a known value of the enumeration, is "FIAT_ON_RAMP_PROVIDER_(?:ALPHA|BETA)"$/,
  // Whoever accepts an invitation is not a user yet, and may do so with an API key alone: ours has members of its own.
  /\.acceptInvitationIntent\.(?:userId|authenticator) is required$/,
];

/** Posts a body, and decodes whatever comes back. */
async function problemsOf(client: StampingClient, path: string, text: string): Promise<Decoded> {
  const { headerName, headerValue } = stampBody(text, client.key);
  const headers = { 'content-type': 'application/json', [headerName]: headerValue };
  const { status, body } = await exchange(coordinator.url + path, { method: 'POST', headers, body: text });
  const problems = published
    .answerProblems({ path, status, body }, 'object')
    .filter((one) => !meant.some((difference) => difference.test(one)))
    .map((one) => `${path}: ${one}`);
  return { status, body, problems };
}

interface Decoded {
  readonly status: number;
  readonly body: unknown;
  readonly problems: readonly string[];
}

const query = (path: string, request: object = {}): Promise<Decoded> =>
  problemsOf(
    coordinator.client,
    `/public/v1/query/${path}`,
    JSON.stringify({ organizationId: coordinator.organizationId, ...request }),
  );

const publishedQueries = queries
  .map(({ path }) => path)
  .filter((path) => published.known.has(`/public/v1/query/${path}`));

test('every query answers what the published types say', async () => {
  const samples = querySamples(furnished);
  const decoded = [];
  for (const path of publishedQueries) decoded.push({ path, ...(await query(path, samples[path])) });
  expect(decoded.filter(({ status }) => status !== 200).map(({ path, body }) => [path, body])).toEqual([]);
  expect(decoded.flatMap(({ problems }) => problems)).toEqual([]);
  expect(decoded.length).toBeGreaterThan(36);
});

test('every activity, and the lists of them, answer what the published types say', async () => {
  const who: Readonly<Record<string, StampingClient>> = {
    ACTIVITY_TYPE_APPROVE_ACTIVITY: furnished.alice.client,
    ACTIVITY_TYPE_REJECT_ACTIVITY: furnished.alice.client,
    ACTIVITY_TYPE_ACCEPT_INVITATION: furnished.invited.client,
    ACTIVITY_TYPE_ACCEPT_INVITATION_V2: furnished.invited.client,
    ACTIVITY_TYPE_DELETE_SUB_ORGANIZATION: furnished.child,
  };
  const decoded = [];
  for (const [type, parameters] of Object.entries(submitSamples(furnished) as Readonly<Record<string, object>>)) {
    coordinator.clock.advance(1);
    const client = who[type] ?? coordinator.client;
    const text = client.submitBody(type, parameters, { generateAppProofs: true });
    decoded.push({ type, ...(await problemsOf(client, submitPath(type), text)) });
  }
  for (const path of publishedQueries.filter((one) => one.startsWith('list_'))) {
    decoded.push({ type: path, ...(await query(path, { paginationOptions: { limit: '100' } })) });
  }
  expect([...new Set(decoded.flatMap(({ problems }) => problems))]).toEqual([]);
  expect(decoded.filter(({ status }) => status === 200).length).toBeGreaterThan(60);
});

test.each([
  ['a missing member', (activity: Activity) => delete activity['fingerprint'], '.activity.fingerprint is required'],
  ['an unknown status', (activity: Activity) => (activity['status'] = 'DONE'), 'a known value of the enumeration'],
  ['a time in text', (activity: Activity) => (activity['createdAt'] = '2026-01-01T00:00:00Z'), 'must be an object'],
  ['a number for a text', (activity: Activity) => (activity['id'] = 7), '.activity.id must be a string'],
  ['an object for a list', (activity: Activity) => (activity['votes'] = {}), '.activity.votes must be a list'],
])('a decoder refuses %s', async (_what, spoil, problem) => {
  const { body, problems } = await query('get_activity', { activityId: furnished.waiting.id });
  expect(problems).toEqual([]);
  const { activity } = structuredClone(body) as { activity: Activity };
  spoil(activity);
  const answer = { path: '/public/v1/query/get_activity', status: 200, body: { activity } };
  expect(published.answerProblems(answer, 'object')).toEqual([expect.stringContaining(problem)]);
});

type Activity = Record<string, unknown>;
