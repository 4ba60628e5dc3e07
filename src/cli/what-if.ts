import { parseDocument } from 'yaml';
import { activities } from '../activities/index.js';
import { buildRegistry, type Registry } from '../decide/registry.js';
import { CoordinatorError } from '../domain/errors.js';
import type { Draft } from '../read-models/draft-shapes.js';
import { readDraft } from '../audit/simulate/parse-draft.js';
import { whatIf } from '../audit/simulate/what-if.js';
import { divergenceKinds, type DivergenceKind, type WhatIf } from '../audit/simulate/what-if-report.js';
import { openForReading } from '../ledger/stores/open-event-store.js';
import { firstOrganization } from '../audit/timeline/find-organization.js';
import type { ResponseOf } from '../client/activity-client.js';
import { BadUsage } from './bad-usage.js';
import { profileClient } from './callers.js';
import type { Outcome } from './command.js';
import { exitCodes } from './exit-codes.js';
import { eventsSoFar } from './progress.js';
import { bytesIn, typedRevision } from './input-files.js';
import { printable } from './layout.js';
import { labelled } from './replay-text.js';
import { checkSource, storeSettings } from './stores.js';
import type { Terminal } from './terminal.js';
import { failures, type WhatIfCommandOptions } from './what-if-options.js';

type WhatIfResponse = ResponseOf<'what_if'>;

/** Most characters of a draft: as many as the clauses of all policies of an organization may have, and some. */
const mostCharacters = 2_000_000;

/** What a draft would have changed in the whole history; see docs/how-to/debug-by-the-events.md. */
export async function askWhatIf(
  terminal: Terminal,
  options: WhatIfCommandOptions,
  organization: string | undefined,
): Promise<Outcome> {
  checkSource(options);
  const registry = buildRegistry(activities);
  const draft = await draftIn(terminal.path(options.file), registry);
  const from = options.from === undefined ? undefined : typedRevision('from', options.from);
  const found =
    options.profile === undefined
      ? await askStore(terminal, options, { registry, draft, from, organization })
      : await askCoordinator(terminal, options, { draft, from, organization });
  const isFailed = (failures[options.failOn ?? ''] ?? []).some((kind) => found.counts[kind] > 0);
  // What was not reached may be the difference that this run is to stop.
  const isUnsure = options.failOn !== undefined && found.notComplete !== undefined;
  const exitCode = isFailed || isUnsure ? exitCodes.failed : exitCodes.done;
  return { text: `${whatIfLines(found).map(printable).join('\n')}\n`, json: found, exitCode };
}

interface Asked {
  readonly draft: Draft;
  readonly from: number | undefined;
  readonly organization: string | undefined;
}

async function askCoordinator(
  terminal: Terminal,
  { profile }: WhatIfCommandOptions,
  { draft, from, organization }: Asked,
): Promise<WhatIfResponse> {
  const client = await profileClient(terminal, { profile: profile!, ...(organization ? { organization } : {}) });
  return client.query('what_if', { draft, ...(from === undefined ? {} : { from }) });
}

async function askStore(
  terminal: Terminal,
  options: WhatIfCommandOptions,
  { registry, draft, from, organization }: Asked & { readonly registry: Registry },
): Promise<WhatIf> {
  const { eventStore, dataDir } = storeSettings(terminal, options);
  const store = await openForReading(eventStore, dataDir);
  try {
    const organizationId = organization?.toLowerCase() ?? (await firstOrganization(store));
    if (organizationId === undefined) throw new BadUsage('the store has no organization yet');
    return await whatIf(store, {
      organizationId,
      registry,
      draft,
      now: Date.now(),
      ...(from === undefined ? {} : { from }),
      ...eventsSoFar(terminal, options),
    });
  } finally {
    await store.close();
  }
}

async function draftIn(path: string, registry: Registry): Promise<Draft> {
  const text = (await bytesIn(path)).toString('utf8');
  if (text.length > mostCharacters) {
    throw new BadUsage(`${path} has ${text.length} characters: a draft has at most ${mostCharacters}`);
  }
  const plain = valueOf(path, text);
  if (typeof plain !== 'object' || plain === null || Array.isArray(plain)) {
    throw new BadUsage(`${path} is no draft: it has members such as \`policies\` (docs/how-to/debug-by-the-events.md)`);
  }
  try {
    return readDraft(plain, registry.policyEnvironment);
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    throw new BadUsage(`${path}: ${error.message.replace(/^invalid request: /, '')}`, { cause: error });
  }
}

/** The value of a text in YAML, and so in JSON. */
function valueOf(path: string, text: string): unknown {
  const document = parseDocument(text);
  const [wrong] = document.errors;
  if (wrong) throw new BadUsage(`${path}: ${wrong.message}`, { cause: wrong });
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    // More aliases than that.
    if (!(error instanceof ReferenceError)) throw error;
    throw new BadUsage(`${path}: ${error.message}`, { cause: error });
  }
}

const headings: Readonly<Record<DivergenceKind, string>> = {
  'newly-allowed': 'Newly allowed',
  'newly-denied': 'Newly denied',
  'now-waits': 'Now waiting for votes',
  'not-judged': 'Cannot be judged',
  otherwise: 'Otherwise different',
};

const prospects = {
  passes: 'passes with the next approval',
  'needs-votes': 'waits for votes',
  denied: 'can no longer pass',
  'not-there': 'does not wait',
} as const;

/** A report in lines, the first of which names the organization. */
export function whatIfLines(found: WhatIfResponse): string[] {
  const { organizationId, from, last, counts, divergences, more, waiting, neverHeld, notJudged, unchanged } = found;
  const lines = [`organization ${organizationId}, with the draft from revision ${from} of ${last}`];
  for (const text of neverHeld) lines.push(`  never in effect: ${text}, because what it names never existed`);
  for (const kind of divergenceKinds) {
    if (counts[kind] === 0) continue;
    lines.push('', `${headings[kind]} (${counts[kind]}):`);
    for (const one of divergences.filter((each) => each.kind === kind)) lines.push(...divergenceLines(one));
  }
  if (divergences.length === 0) lines.push('', 'Every request comes out as it did.');
  if (more > 0) lines.push(`  … and ${more} more`);
  if (waiting.length > 0) {
    lines.push('', 'Waiting at the end:');
    lines.push(...waiting.map(waitingLine));
  }
  if (notJudged.length > 0) {
    lines.push('', 'Not judged:', ...notJudged.map(({ why, count }) => `  ${count} × ${why}`));
  }
  if (found.differences.length > 0) {
    const hidden = found.moreDifferences > 0 ? [`… and ${found.moreDifferences} more`] : [];
    lines.push('', 'In the end, compared with what was recorded:');
    lines.push(...[...found.differences, ...hidden].map((text) => `  ${text}`));
  }
  const { decisions, forOtherReasons, denials, asRecorded } = unchanged;
  const others = forOtherReasons > 0 ? ` (${forOtherReasons} for other reasons)` : '';
  const parents = asRecorded > 0 ? `; ${asRecorded} of the parent taken as recorded` : '';
  const rest = found.notComplete === undefined ? [] : [`Not complete: ${found.notComplete}.`];
  return [...lines, '', `Unchanged: ${decisions} decisions${others}; ${denials} denials${parents}.`, ...rest];
}

/** A waiting activity, what could become of it, and what can now. */
export function waitingLine({ activityId, activityType, was, is }: WhatIfResponse['waiting'][number]): string {
  return `  ${activityType} ${activityId}: ${prospects[was]} → ${prospects[is]}`;
}

function divergenceLines(one: WhatIfResponse['divergences'][number]): string[] {
  const { revision, isDenial, at, activityType, userId, userName, isFirst, was, is, because } = one;
  const where = isDenial ? `denial ${revision}` : `revision ${revision}`;
  return [
    `  ${where}  ${at}  ${activityType} of ${userName === undefined ? userId : `'${userName}'`}`,
    ...labelled('was', [was]),
    ...labelled('is', [is]),
    ...labelled('because', [...because, ...(isFirst ? [] : ['it follows from an earlier difference'])]),
  ];
}
