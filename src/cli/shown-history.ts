import type { ActivityClient, ListedEvent, RequestOf, ResponseOf } from '../client/activity-client.js';
import { noEventsOf } from '../audit/timeline/find-organization.js';
import { problemWith, type RecordedStamp } from '../audit/verify/verify-vote.js';
import { fingerprintOf } from '../stamps/fingerprint.js';
import { BadUsage } from './bad-usage.js';
import { profileClient } from './callers.js';
import type { Outcome } from './command.js';
import { exitCodes } from './exit-codes.js';
import { parsePoint, revisionOfEvent } from './typed-point.js';
import { printable } from './layout.js';
import { labelled, outline } from './replay-text.js';
import type { ReplayOptions } from './replay-options.js';
import type { Terminal } from './terminal.js';

/**
 * Replay and verification of what a coordinator shows a member of the root quorum: for those who have a profile and not the
 * store.
 */

/** Undefined is the newest. */
type Point = RequestOf<'get_organization_state'>['at'];
type Reached = ResponseOf<'get_organization_state'>['at'];

/** `countersign replay --profile`. */
export async function replayShown(
  terminal: Terminal,
  options: ReplayOptions & { readonly profile: string },
  organization: string | undefined,
): Promise<Outcome> {
  const { at, diff, step, decisions, from, activity, profile } = options;
  if (decisions) throw new BadUsage('--decisions makes decisions again, which takes the store: leave out --profile');
  const client = await clientOf(terminal, profile, organization);
  const { organizationId } = client;
  const to = await pointOf(client, at);
  if (diff !== undefined) {
    const earlier = await pointOf(client, diff);
    if (earlier === undefined) throw new BadUsage('--diff end compares with nothing: use an earlier point for --diff');
    const { reached, changes } = await changesBetween(client, earlier, to);
    const lines = [
      `organization ${organizationId} from ${reached.from.revision} to ${reached.to.revision}`,
      ...(changes.length > 0 ? changes.map(({ text }) => `  ${text}`) : ['  nothing has changed']),
    ];
    const [first, last] = [Number(reached.from.revision), Number(reached.to.revision)];
    return { text: textOf(lines), json: { organizationId, from: first, to: last, changes } };
  }
  if (step || activity !== undefined) {
    const last = at === 'end' ? Infinity : await revisionOf(client, to);
    const first = from === undefined ? 0 : await revisionOf(client, await pointOf(client, from));
    const events: ListedEvent[] = [];
    for await (const event of everyEvent(client, first)) {
      if (Number(event.revision) > last) break;
      if (activity !== undefined && event.activityId !== activity.toLowerCase()) continue;
      events.push(event);
      if (!options.json) terminal.out(textOf([...(await eventLines(event)), '']));
    }
    if (activity !== undefined && events.length === 0) throw noEventsOf(activity, organizationId);
    return { text: '', json: { organizationId, events } };
  }
  const { reached, organization: values, elements } = await stateAt(client, to);
  const document: Record<string, object[]> = {};
  for (const { list, value } of elements) (document[list] ??= []).push(value);
  const title = `organization ${organizationId} at ${reached.revision}, after ${reached.eventId}`;
  return {
    text: textOf([title, ...outline(values), ...outline(document)]),
    json: { organizationId, at: Number(reached.revision), eventId: reached.eventId, ...document, organization: values },
  };
}

/** What came of looking at a history from outside. */
interface ShownVerification {
  readonly events: number;
  readonly stamps: number;
  /** Stamps over requests that still open something, and are not shown in full. */
  readonly redacted: number;
  readonly findings: readonly { readonly revision: string; readonly problem: string }[];
}

/** `countersign verify --profile`. */
export async function verifyShown(terminal: Terminal, profile: string): Promise<Outcome> {
  const client = await clientOf(terminal, profile, undefined);
  const { organizationId } = client;
  const { last, ...verification } = await verifyEvents(client);
  const findings = [...verification.findings];
  if (last) {
    const { reached } = await stateAt(client, { revision: last.revision });
    if (reached.hash !== last.hash) {
      findings.push({ revision: last.revision, problem: 'the link of the event is not that of the state after it' });
    }
  }
  const { events, stamps, redacted } = verification;
  const looked = `${events} events; ${stamps} stamps verified${redacted > 0 ? `, ${redacted} not shown in full` : ''}`;
  const lines = [
    findings.length === 0
      ? `OK: what the coordinator shows of organization ${organizationId}: ${looked}.`
      : `${findings.length} finding${findings.length === 1 ? '' : 's'} (${looked}):`,
    ...findings.map(({ revision, problem }) => `  @ ${revision}: ${problem}`),
    ...(last
      ? [`The last link is ${last.hash} at ${last.revision}: keep it elsewhere, and compare it next time.`]
      : []),
    'Checked by the coordinator only: the links between events. Not checked: decisions, read models, other streams. ' +
      'Run countersign verify on the store for all of them.',
  ];
  return {
    text: textOf(lines),
    json: { organizationId, ...verification, findings, last: last && { revision: last.revision, hash: last.hash } },
    exitCode: findings.length > 0 ? exitCodes.failed : exitCodes.done,
  };
}

async function verifyEvents(
  client: ActivityClient,
): Promise<ShownVerification & { readonly last: ListedEvent | undefined }> {
  const findings: { revision: string; problem: string }[] = [];
  let [events, stamps, redacted] = [0, 0, 0];
  let last: ListedEvent | undefined;
  for await (const event of everyEvent(client, 0)) {
    const { revision, recordedAt } = event;
    const found = (problem: string) => findings.push({ revision, problem });
    if (revision !== String(events)) found(`revision ${events} is missing`);
    if (last && Date.parse(recordedAt) < Date.parse(last.recordedAt)) found('it was recorded before the one before it');
    if (!/^[0-9a-f]{64}$/.test(event.hash)) found('it has no link');
    const stamp = stampOf(event);
    if (stamp && event.redacted) redacted += 1;
    else if (stamp) {
      stamps += 1;
      const problem = await problemWith(stamp);
      if (problem !== undefined) found(`its stamp does not verify: ${problem}`);
      else if (fingerprintIn(event) !== undefined && fingerprintIn(event) !== fingerprintOf(stamp.vote.message)) {
        found('its fingerprint is not that of the signed request');
      }
    }
    events += 1;
    last = event;
  }
  return { events, stamps, redacted, findings, last };
}

type StampedVote = Extract<RecordedStamp, { readonly vote: unknown }>;

function stampOf({ data }: ListedEvent): StampedVote | undefined {
  return 'vote' in data ? { vote: data.vote } : undefined;
}

const fingerprintIn = ({ type, data }: ListedEvent): string | undefined =>
  type === 'ActivitySubmitted' ? data.fingerprint : undefined;

async function eventLines(event: ListedEvent): Promise<string[]> {
  const { revision, type, recordedAt, id, hash: link, activityId, decidedAt, redacted, data } = event;
  const stamp = stampOf(event);
  const problem = stamp && !redacted ? await problemWith(stamp) : undefined;
  const verified = redacted ? 'not shown in full' : (problem ?? 'verified');
  const decided = decidedAt === undefined || decidedAt === revision ? '' : `, decided at ${decidedAt}`;
  return [
    `${revision}  ${type}  ${recordedAt}`,
    ...labelled('event', [id, `link ${link}`]),
    ...labelled('activity', activityId === undefined ? ['none of this organization'] : [`${activityId}${decided}`]),
    ...(stamp ? labelled('stamp', [problem === undefined ? verified : `DOES NOT VERIFY: ${verified}`]) : []),
    ...labelled('data', outline(data)),
  ];
}

async function clientOf(terminal: Terminal, profile: string, organization: string | undefined) {
  return profileClient(terminal, {
    profile,
    ...(organization === undefined ? {} : { organization: organization.toLowerCase() }),
  });
}

async function* everyEvent(client: ActivityClient, from: number): AsyncGenerator<ListedEvent> {
  for (let after = from - 1; ;) {
    const page = after < 0 ? {} : { after: String(after) };
    const { events } = await client.query('list_events', { limit: '100', ...page });
    yield* events;
    const last = events.at(-1);
    if (!last) return;
    after = Number(last.revision);
  }
}

/** The state behind a point; of long ones, page by page, and each of the same revision. */
async function stateAt(client: ActivityClient, at: Point) {
  const elements: ResponseOf<'get_organization_state'>['elements'][number][] = [];
  let [point, reached] = [at, undefined as Reached | undefined];
  for (;;) {
    const after = elements.at(-1)?.number;
    const answer = await client.query('get_organization_state', {
      ...(point === undefined ? {} : { at: point }),
      ...(after === undefined ? {} : { after }),
    });
    reached ??= answer.at;
    point = { revision: reached.revision };
    elements.push(...answer.elements);
    if (!answer.hasMore) return { reached, organization: answer.organization, elements };
  }
}

async function changesBetween(client: ActivityClient, from: NonNullable<Point>, to: Point) {
  const changes: ResponseOf<'compare_states'>['changes'][number][] = [];
  let points: RequestOf<'compare_states'> = { from, ...(to === undefined ? {} : { to }) };
  for (;;) {
    const after = changes.at(-1)?.number;
    const answer = await client.query('compare_states', { ...points, ...(after === undefined ? {} : { after }) });
    points = { from: { revision: answer.from.revision }, to: { revision: answer.to.revision } };
    changes.push(...answer.changes);
    if (!answer.hasMore) return { reached: { from: answer.from, to: answer.to }, changes };
  }
}

const revisionOf = async (client: ActivityClient, at: Point): Promise<number> =>
  Number((await stateAt(client, at)).reached.revision);

/** A point as it is typed, for the coordinator to find. */
async function pointOf(client: ActivityClient, text: string): Promise<Point> {
  const point = parsePoint(text);
  switch (point.by) {
    case 'end':
      return undefined;
    case 'event':
      return { revision: await revisionOfEvent(point.id, client.organizationId, everyEvent(client, 0)) };
    case 'time':
      return { time: new Date(point.time).toISOString() };
    case 'revision':
      return { revision: String(point.revision) };
    case 'position':
      return { position: String(point.position) };
  }
}

/** Whatever the coordinator says, no line of it can control the terminal. */
const textOf = (lines: readonly string[]): string => `${lines.map(printable).join('\n')}\n`;
