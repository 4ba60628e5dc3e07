import { join } from 'node:path';
import { activities } from '../activities/index.js';
import { buildRegistry } from '../decide/registry.js';
import { openForReading } from '../ledger/stores/open-event-store.js';
import { compareStates } from '../audit/timeline/compare-states.js';
import { tellActivity, tellEvent, type EventTold } from '../audit/explain/event-story.js';
import { firstOrganization, organizationOfActivity } from '../audit/timeline/find-organization.js';
import { OrganizationReplay } from '../audit/timeline/organization-replay.js';
import { ReplayCache } from '../audit/timeline/replay-cache.js';
import { documentOf, organizationTold } from '../audit/timeline/state-things.js';
import { BadUsage } from './bad-usage.js';
import type { Outcome } from './command.js';
import { eventsSoFar } from './progress.js';
import { printable } from './layout.js';
import { activityLines, eventLines, outline } from './replay-text.js';
import { ReplaySession } from './replay-session.js';
import { revisionOf } from './typed-point.js';
import type { ReplayOptions } from './replay-options.js';
import { checkSource, storeSettings } from './stores.js';
import type { Terminal } from './terminal.js';

/** `countersign replay`; see docs/how-to/debug-by-the-events.md. */
export async function replay(terminal: Terminal, options: ReplayOptions, input?: string): Promise<Outcome> {
  checkTogether(options);
  checkSource(options);
  const { profile } = options;
  if (profile !== undefined) {
    const { replayShown } = await import('./shown-history.js');
    return replayShown(terminal, { ...options, profile }, input);
  }
  const { eventStore, dataDir } = storeSettings(terminal, options);
  const store = await openForReading(eventStore, dataDir);
  try {
    const found = options.activity === undefined ? undefined : await organizationOfActivity(store, options.activity);
    const organizationId = input?.toLowerCase() ?? found ?? (await firstOrganization(store));
    if (organizationId === undefined) throw new BadUsage('the store has no organization yet');
    const opened = await OrganizationReplay.open(store, organizationId, {
      ...eventsSoFar(terminal, options),
      cache: new ReplayCache(join(dataDir, 'replay')),
    });
    return await told(terminal, options, opened);
  } finally {
    await store.close();
  }
}

function checkTogether({ diff, step, decisions, activity, from }: ReplayOptions): void {
  const requested = Object.entries({ diff, step: step ?? decisions, activity }).filter(
    ([, value]) => value !== undefined,
  );
  if (requested.length > 1)
    throw new BadUsage(`use only one of --diff, --step and --activity, got ${requested.length}`);
  if (from !== undefined && !step && !decisions) throw new BadUsage('--from only works with --step: add --step');
}

async function told(terminal: Terminal, options: ReplayOptions, replayed: OrganizationReplay): Promise<Outcome> {
  const registry = buildRegistry(activities);
  const now = Date.now();
  const { organizationId } = replayed;
  const at = await revisionOf(replayed, options.at);
  if (options.activity !== undefined) {
    const activityId = options.activity.toLowerCase();
    const steps = await tellActivity(replayed, registry, activityId, now);
    return { text: textOf(activityLines(activityId, steps)), json: { organizationId, activityId, steps } };
  }
  if (options.diff !== undefined) {
    const from = await revisionOf(replayed, options.diff);
    if (from > at)
      throw new BadUsage(`--diff ${options.diff} is later than --at ${options.at}: use the earlier point for --diff`);
    const [before, after] = [await replayed.stateAt(from), await replayed.stateAt(at)];
    const changes = [...compareStates(before, after, now)];
    const lines = [`organization ${organizationId} from ${from} to ${at}`, ...changes.map(({ text }) => `  ${text}`)];
    if (changes.length === 0) lines.push('  nothing has changed');
    return { text: textOf(lines.map(printable)), json: { organizationId, from, to: at, changes } };
  }
  if (options.step || options.decisions) {
    const from = options.from === undefined ? 0 : await revisionOf(replayed, options.from);
    const events: EventTold[] = [];
    for (let revision = from; revision <= at; revision++) {
      if (options.decisions && replayed.decisionOf(revision) !== revision) continue;
      const event = await tellEvent(replayed, registry, revision, now);
      if (options.json) events.push(event);
      else terminal.out(`${textOf(eventLines(event, replayed.last))}\n`);
    }
    return { text: '', json: { organizationId, events } };
  }
  const session = options.json || !options.tty ? undefined : ReplaySession.on(terminal, replayed, registry, at);
  if (session) {
    await session.run();
    return { text: '', json: {} };
  }
  const state = await replayed.stateAt(at);
  const [event] = await replayed.events(at, 1);
  const document = documentOf(state, now);
  const title = `organization ${organizationId} at ${at} of ${replayed.last}, after ${replayed.typeOf(at)} ${event!.id}`;
  const text = textOf([title, ...outline(document)]);
  return {
    text,
    json: { organizationId, at, eventId: event!.id, ...document, organization: organizationTold(state, now) },
  };
}

const textOf = (lines: readonly string[]): string => `${lines.join('\n')}\n`;
