import { activities } from '../activities/index.js';
import { buildRegistry } from '../decide/registry.js';
import { openForReading } from '../ledger/stores/open-event-store.js';
import { NoSuchBranch, readGiven, type Change } from '../audit/simulate/fork-change.js';
import { forkHistory } from '../audit/simulate/fork-history.js';
import type { Divergence, Forked } from '../audit/simulate/fork-report.js';
import { BadUsage } from './bad-usage.js';
import type { Outcome } from './command.js';
import { eventsSoFar } from './progress.js';
import { bytesIn, typedRevision } from './input-files.js';
import { printable } from './layout.js';
import { labelled } from './replay-text.js';
import { storeSettings, type StoreOptions } from './stores.js';
import type { Terminal } from './terminal.js';

export interface HistoryForkOptions extends StoreOptions {
  readonly organization: string;
  readonly skip?: string;
  readonly edit?: string;
  readonly insert?: string;
  readonly file?: string;
  readonly json?: boolean;
}

/**
 * What would have become of an organization if one event had been different; see docs/how-to/debug-by-the-events.md.
 */
export async function fork(terminal: Terminal, options: HistoryForkOptions): Promise<Outcome> {
  try {
    const change = await changeOf(terminal, options);
    const { eventStore, dataDir } = storeSettings(terminal, options);
    const store = await openForReading(eventStore, dataDir);
    try {
      const forked = await forkHistory(store, {
        organizationId: options.organization.toLowerCase(),
        registry: buildRegistry(activities),
        change,
        now: Date.now(),
        ...eventsSoFar(terminal, options),
      });
      return { text: `${linesOf(forked).map(printable).join('\n')}\n`, json: forked };
    } finally {
      await store.close();
    }
  } catch (error) {
    if (error instanceof NoSuchBranch) throw new BadUsage(error.message, { cause: error });
    throw error;
  }
}

async function changeOf(terminal: Terminal, { skip, edit, insert, file }: HistoryForkOptions): Promise<Change> {
  const requested = Object.entries({ skip, edit, insert }).flatMap(([kind, value]) => {
    return value === undefined ? [] : [{ kind: kind as Change['kind'], value }];
  });
  const [one, ...more] = requested;
  if (!one || more.length > 0) throw new BadUsage('say one of --skip N, --edit N and --insert N, with N a revision');
  const { kind, value } = one;
  const revision = typedRevision(kind, value);
  if (kind === 'skip') {
    if (file !== undefined) throw new BadUsage('--skip takes no --file: it leaves the event out');
    return { kind, revision };
  }
  if (file === undefined) throw new BadUsage(`--${kind} needs --file: what should be there instead, as JSON`);
  return { kind, revision, as: readGiven(await bytesIn(terminal.path(file))) };
}

function linesOf({
  organizationId,
  last,
  change,
  divergences,
  more,
  notDecided,
  unchanged,
  differences,
}: Forked): string[] {
  const [first, ...following] = divergences;
  const lines = [
    `organization ${organizationId}, otherwise from revision ${change?.revision} of ${last}: ${change?.text}`,
  ];
  if (change?.is !== undefined) lines.push(...labelled('is', [change.is]));
  lines.push(...labelled('changes', change && change.changes.length > 0 ? change.changes : ['none']), '');
  if (!first) lines.push('Nothing that follows comes out otherwise.');
  else lines.push('First divergence:', ...divergenceLines(first));
  if (following.length > 0) {
    lines.push('', `What follows (${following.length + more}):`);
    for (const one of following) lines.push(...divergenceLines(one));
    if (more > 0) lines.push(`  … and ${more} more`);
  }
  const notJudged = divergences.filter(({ isJudged }) => !isJudged).length;
  const doubts = [
    ...(notJudged > 0 ? [`${notJudged} of these, and what follows from them`] : []),
    ...notDecided.map(({ why, count }) => `${count} denied request${count === 1 ? '' : 's'}: ${why}`),
  ];
  if (doubts.length > 0) lines.push('', 'Cannot be judged:', ...doubts.map((doubt) => `  ${doubt}`));
  lines.push('', 'In the end, compared with what was recorded:');
  lines.push(...(differences.length > 0 ? differences.map(({ text }) => `  ${text}`) : ['  nothing is otherwise']));
  return [...lines, '', `Unchanged: ${unchangedText(unchanged)}.`];
}

function divergenceLines({ revision, isDenial, at, activityType, userId, userName, ...told }: Divergence): string[] {
  const { was, is, because, changed, changes } = told;
  const where = isDenial ? `denial ${revision}` : `revision ${revision}`;
  return [
    `  ${where}  ${at}  ${activityType} of ${userName === undefined ? userId : `'${userName}'`}`,
    ...labelled('was', [was, ...changed.map((text) => `  ${text}`)]),
    ...labelled('is', [is, ...changes.map((text) => `  ${text}`)]),
    ...(because.length > 0 ? labelled('because', because) : []),
  ];
}

function unchangedText({ decisions, forOtherReasons, denials, things }: Forked['unchanged']): string {
  const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;
  return [
    `${counted(decisions, 'decision')} made again${forOtherReasons > 0 ? ` (${forOtherReasons} for other reasons)` : ''}`,
    counted(denials, 'denial'),
    ...Object.entries(things).map(([list, count]) => `${list} ${count}`),
  ].join('; ');
}
