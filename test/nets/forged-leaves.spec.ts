import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { activities } from '../../src/activities/index.js';
import { createCoordinator, type Coordinator } from '../../src/app/create-coordinator.js';
import { readConfig } from '../../src/config/config.js';
import { beginningOf, recordedChild } from '../../src/decide/found-organization.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { RetryingDelivery } from '../../src/delivery/retrying.js';
import { organizationEventTypes, organizationStream } from '../../src/domain/organization/organization.js';
import { createLogger } from '../../src/logging/logger.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { eventsFile } from '../../src/ledger/stores/open-event-store.js';
import { SqliteEventStore } from '../../src/ledger/stores/sqlite/sqlite.js';
import { projectInMemory } from '../../src/read-models/projecting.js';
import { isChained } from '../../src/audit/verify/checked-chains.js';
import { SavedHeads } from '../../src/audit/verify/saved-heads.js';
import { verifyHistory } from '../../src/audit/verify/verify.js';
import { CapturedMessages } from '../../src/testing/captured-messages.js';
import { ManualClock, SeededRandomness } from '../../src/testing/index.js';
import { LocalKeyEncryption } from '../../src/vault/key-encryption.js';
import { TypingUser } from '../cli/typed.js';
import { isLong } from '../long.js';
import { fill, golden, isDeciding, sealAgain, withVaults, type Event, type History } from '../audit/forged-history.js';
import { richHistory, seed } from './rich-history.js';

// Every leaf of every kind of event of a rich history is changed to another plausible value, and the chain recomputed, as
// somebody can who writes to the store. `verify` finds it, except for what nobody has signed.

/**
 * What nobody signs, by the reason; `*` stands for anything. docs/how-to/verify-history.md has the same list. An entry that is found
 * after all fails the test.
 */
const unsigned: Readonly<Record<string, readonly string[]>> = {
  'The coordinator chooses ids of events, and its clock says when they are recorded; it never runs backwards.': [
    '*: id',
    '{organization-…,denials-…,installation-boots}: metadata.at',
    'installation-boots: metadata.$*',
  ],
  'The coordinator chooses these ids and times before it decides.': [
    'SubOrganizationCreated.subOrganizationId',
    'SubOrganizationCreated.initialEvents[OrganizationCreated].data.organizationId',
    'SubOrganizationCreated.initialEvents[{UserCreated,ApiKeyCreated,AuthenticatorCreated}].data.userId',
    'SubOrganizationCreated.initialEvents[{WalletCreated,WalletAccountsCreated}].data.walletId',
    'SubOrganizationCreated.initialEvents[*].data.{apiKeyId,authenticatorId,accounts[].walletAccountId,userIds[]}',
    'InvitationCreated.{invitationId,userId,expiresAt}',
    'OtpSent.otpId',
    'ActivityCompleted.result.{invitationIds[],otpId,rootUserIds[],subOrganizationId,wallet.walletId}',
  ],
  'The coordinator makes these keys and codes. An address must be that of its public key; both can be replaced together.':
    [
      '{ApiKey,Invitation,PrivateKey}Created.publicKey',
      'AuthProxyEnabled.publicKey',
      'ImportStarted.targetPublicKey',
      'OtpSent.codeHash',
      'PrivateKeyCreated.addresses[].address',
      'ActivityCompleted.result.{addresses[],addresses[].address}',
    ],
  'Made with keys that `verify` does not have.': [
    'ActivityCompleted.result.{r,s,v,signatures[].*,signedTransaction,session,*Bundle,*Token}',
  ],
  'The token of an attested stamp is not recorded.': [
    'ActivitySubmitted.vote.{attestation.logsInToIssuer,attestation.organizationId,attestation.tokenId,credentialId} (attested stamp)',
    'VerificationTokenUsed.tokenId',
  ],
  'Looked up for the decision: limits of the operator, the revision of the parent, claims.': [
    '*.decision.limits.*',
    'ActivitySubmitted.decision.{authority.revision,resolution.rule}',
  ],
  'The wording may differ between releases. The code and the outcome must be the same.': [
    '*.decision.evaluations[].error',
    'ActivityFailed.failure.message',
  ],
  'Denials are not decided again, and what a passkey signed for one is not recorded.': [
    'ActivityDenied.{details*,reason,revision,signature}',
  ],
  'Nobody signs anything in these streams.': ['{claims,vault,webhook-deliveries}-…', 'vault-installation'],
};

const registry = buildRegistry(activities);
const folder = mkdtempSync(join(tmpdir(), 'forged-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The first finding. @param sure the stream and revision of the last event that is known to be right: decisions up to it are not made again */
async function findingIn(history: History, sure?: { readonly stream: string; readonly revision: number }) {
  const store = new InMemoryEventStore();
  await fill(store, history);
  const since = sure && sure.revision >= 0 ? await headOf(history, sure) : undefined;
  try {
    const { findings } = await verifyHistory(store, { registry, maxFindings: 1, since });
    return findings[0]?.problem;
  } finally {
    since?.close();
    await store.close();
  }
}

function headOf(history: History, { stream, revision }: { readonly stream: string; readonly revision: number }) {
  const file = join(folder, 'heads.json');
  const head = { revision, hash: history.get(stream)![revision]!.metadata.hash };
  writeFileSync(file, JSON.stringify({ format: 'countersign heads 1', heads: { [stream]: head } }));
  return SavedHeads.read(file, false);
}

const isOrganization = (stream: string) => stream.startsWith(organizationStream(''));

/** Each parent with its sub-organizations, which can be verified alone. */
function families(history: History): History[] {
  const parentOf = (events: readonly Event[]) => events[0]!.data['parentOrganizationId'];
  const parents = [...history].filter(([, events]) => parentOf(events) === undefined);
  return parents.map(([stream, events]) => {
    const children = [...history].filter(([, others]) => parentOf(others) === events[0]!.data['organizationId']);
    return withVaults(new Map([[stream, events], ...children]));
  });
}

type Path = readonly (string | number)[];

interface Leaf {
  readonly history: History;
  readonly stream: string;
  readonly revision: number;
  readonly path: Path;
  readonly value: unknown;
}

function* leavesIn(value: unknown, path: Path = []): Generator<Pick<Leaf, 'path' | 'value'>> {
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) yield { path, value };
  else {
    for (const [name, inside] of Object.entries(value)) {
      yield* leavesIn(inside, [...path, Array.isArray(value) ? Number(name) : name]);
    }
  }
}

function leafAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((inside, name) => (inside as Record<string | number, unknown> | null)?.[name], value);
}

function withLeaf(value: unknown, [name, ...rest]: Path, leaf: unknown): unknown {
  if (name === undefined) return leaf;
  const inside = withLeaf((value as Record<string | number, unknown>)[name], rest, leaf);
  return Array.isArray(value) ? value.with(name as number, inside) : { ...(value as object), [name]: inside };
}

/** Events around one: those of its decision. */
function decisionAround(stream: string, events: readonly Event[], revision: number): [start: number, end: number] {
  const start = isOrganization(stream) ? events.slice(0, revision + 1).findLastIndex(isDeciding) : -1;
  if (start < 0) return [revision, revision + 1];
  const end = events.findIndex((event, index) => index > revision && isDeciding(event));
  return [start, end < 0 ? events.length : end];
}

/** Streams in which nobody signs anything. */
const unsignedStream = /^(?:claims|vault|webhook-deliveries)-/;

/** Leaves of one kind: of the same type of event, on the same path without the places in lists. */
function kindOf(stream: string, event: Event, path: Path): string {
  const name = stream.replace(/[0-9a-f]{8}-[0-9a-f-]{27}$/, '…');
  if (unsignedStream.test(stream)) return name;
  const folded = path.map((name, index) => {
    if (typeof name === 'string') return index === 0 ? name : `.${name}`;
    const { type } = (leafAt(event, path.slice(0, index + 1)) ?? {}) as { readonly type?: unknown };
    return (organizationEventTypes as readonly unknown[]).includes(type) ? `[${String(type)}]` : '[]';
  });
  const text = folded.join('');
  const isAttested = path[1] === 'vote' && leafAt(event, ['data', 'vote', 'attestation']) !== undefined;
  if (path[0] === 'data') return `${event.type}${text.slice('data'.length)}${isAttested ? ' (attested stamp)' : ''}`;
  return `${name}: ${text}`;
}

/** By kind, and by what has recorded them: the type of an activity, with its effects. */
function leavesByKind(histories: readonly History[]): Map<string, Map<string, Leaf[]>> {
  const kinds = new Map<string, Map<string, Leaf[]>>();
  for (const history of histories) {
    for (const [stream, events] of history) {
      for (const [revision, event] of events.entries()) {
        const [start, end] = decisionAround(stream, events, revision);
        const isDecided = isDeciding(events[start]!);
        // The recorded streams have neither what was installed nor what is in vaults.
        const isPart = isOrganization(stream) ? !isDecided : stream.startsWith('vault-');
        if (isPart && !history.has('installation-root')) continue;
        const effects = isDecided ? new Set(events.slice(start, end).map(({ type }) => type)) : [];
        const { hash: _hash, ...metadata } = event.metadata;
        for (const { path, value } of leavesIn({ ...event, metadata })) {
          const kind = kindOf(stream, event, path);
          const leafs = unsignedStream.test(stream) ? path.join('.') : '';
          const context = [events[start]!.data['type'], event.type, ...effects, leafs].join(' ');
          const contexts = kinds.get(kind) ?? new Map<string, Leaf[]>();
          kinds.set(
            kind,
            contexts.set(context, [...(contexts.get(context) ?? []), { history, stream, revision, path, value }]),
          );
        }
      }
    }
  }
  return kinds;
}

/** Another plausible value of the same type. */
function another(value: unknown): unknown {
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'number') return value + 1;
  if (Array.isArray(value)) return ['another'];
  if (typeof value !== 'string') return { another: 'value' };
  // Of bytes in base64, the last character may mean nothing.
  const end = value.length > 64 ? value.length - 8 : value.length;
  const last = value.slice(0, end).search(/[A-Za-z0-9](?=[^A-Za-z0-9]*$)/);
  return last < 0 ? `${value}x` : value.slice(0, last) + nextCharacter(value[last]!) + value.slice(last + 1);
}

function nextCharacter(character: string): string {
  if (/[0-9]/.test(character)) return String((Number(character) + 1) % 10);
  const code = character.charCodeAt(0);
  return /[fzZ]/.test(character) ? String.fromCharCode(code - 1) : String.fromCharCode(code + 1);
}

/**
 * The history with another value, in a chain that fits. @param everywhere in all copies of the value in the events of its decision
 */
function forged({ history, stream, revision, path, value }: Leaf, other: unknown, everywhere: boolean): History {
  const events = history.get(stream)!;
  const [start, end] = decisionAround(stream, events, revision);
  const isCopied = everywhere && typeof value === 'string' && value.length >= 16;
  const changed = events.map((event, index) => {
    if (index < start || index >= end) return event;
    const own = index === revision || (everywhere && path[0] === 'metadata') ? [path] : [];
    const copies = isCopied ? [...leavesIn(event)].filter((leaf) => leaf.value === value).map((leaf) => leaf.path) : [];
    return [...own, ...copies].reduce((made, at) => withLeaf(made, at, other) as Event, event);
  });
  const result = new Map(history).set(stream, sealAgain(stream, changed));
  // Whoever forges what founds a sub-organization founds it so.
  for (let index = start; index < end; index++) {
    const child = recordedChild(result.get(stream)![index]!, index);
    const name = child && organizationStream(child.subOrganizationId);
    if (!name || !result.has(name)) continue;
    const beginning = beginningOf(child) as Event[];
    result.set(name, sealAgain(name, [...beginning, ...result.get(name)!.slice(beginning.length)]));
  }
  return result;
}

/** Each way in which a leaf is forged. @param values other values of its kind */
function forgeriesOf(leaf: Leaf, values: readonly unknown[]): History[] {
  const other = values.find((value) => !isDeepStrictEqual(value, leaf.value) && typeof value === typeof leaf.value);
  const alone = forged(leaf, another(leaf.value), false);
  const copied = forged(leaf, another(leaf.value), true);
  return [
    alone,
    ...(isDeepStrictEqual(alone, copied) ? [] : [copied]),
    ...(other === undefined ? [] : [forged(leaf, other, true)]),
  ];
}

const patterns = Object.values(unsigned).flat();
const asExpression = (pattern: string) =>
  pattern
    .replace(/[$.()[\]+?^|\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replace(/\{([^}]*)\}/g, (_, choices: string) => `(?:${choices.replaceAll(',', '|')})`);
const patternOf = (kind: string) => patterns.find((pattern) => new RegExp(`^${asExpression(pattern)}$`).test(kind));

let histories: readonly History[];
let rich: Awaited<ReturnType<typeof richHistory>>;
beforeAll(async () => {
  rich = await richHistory();
  // What nothing else depends on is verified by itself.
  const isBeside = (stream: string) => /^(?:claims|webhook-deliveries)-/.test(stream);
  const chained = [...rich.history].filter(([stream]) => isChained(stream));
  const [beside, others] = [true, false].map((is) => new Map(chained.filter(([stream]) => isBeside(stream) === is)));
  histories = [...families(golden()), beside!, others!];
});

describe('verify', () => {
  it('has what it cannot find in its guide', async () => {
    const guide = await readFile(new URL('../../docs/how-to/verify-history.md', import.meta.url), 'utf8');
    const [, table] = /\n## What nobody signs\n[^]*?\n\| -[^\n]*\n((?:\|[^\n]*\n)+)/.exec(guide)!;
    const rows = table!
      .trimEnd()
      .split('\n')
      .map((row) => row.split('|').map((cell) => cell.trim()));
    const listed = rows.map(([, leaves, why]) => [why, [...leaves!.matchAll(/`([^`]+)`/g)].map(([, leaf]) => leaf)]);
    expect(Object.fromEntries(listed)).toEqual(unsigned);
  });

  it('finds nothing in what was recorded', async () => {
    for (const history of histories) expect(await findingIn(history)).toBeUndefined();
  });

  it('finds every leaf that is signed, or that follows from what is', async () => {
    const kinds = leavesByKind(histories);
    expect(kinds.size).toBeGreaterThan(500);
    const missed: string[] = [];
    const found = new Set(patterns);
    for (const [kind, contexts] of kinds) {
      const values = [...contexts.values()]
        .flat()
        .slice(0, 200)
        .map(({ value }) => value);
      const pattern = patternOf(kind);
      const isMissed = async (leaf: Leaf) => {
        const { history, stream, revision } = leaf;
        const [start] = decisionAround(stream, history.get(stream)!, revision);
        for (const forgery of forgeriesOf(leaf, values)) {
          if ((await findingIn(forgery, { stream, revision: start - 1 })) === undefined) return true;
        }
        return false;
      };
      // Those of the list until one is missed, others once, or in every context.
      const all = [...contexts.values()].map((leaves) => leaves.at(-1)!).reverse();
      let isFound = true;
      for (const leaf of pattern !== undefined || isLong ? all : all.slice(0, 1)) {
        if (await isMissed(leaf)) {
          isFound = false;
          break;
        }
      }
      if (!isFound && pattern === undefined) missed.push(kind);
      if (isFound && pattern !== undefined) missed.push(`found after all: ${kind}`);
      if (pattern !== undefined) found.delete(pattern);
    }
    expect(missed).toEqual([]);
    expect([...found]).toEqual([]);
  }, 900_000);
});

describe('a coordinator that is started on a forged store', () => {
  let user: TypingUser;
  beforeEach(async () => (user = await TypingUser.sitDown()));
  afterEach(() => user.leaves());

  /** A coordinator on these events, and a profile of its root user. */
  async function startOn(history: History): Promise<Coordinator> {
    await mkdir(user.path('data'));
    const store = await SqliteEventStore.open(eventsFile(user.path('data')));
    await fill(store, history);
    const randomness = new SeededRandomness('forged store');
    const kept = new CapturedMessages();
    const coordinator = await createCoordinator(readConfig({ PORT: '0' }), {
      store,
      projecting: projectInMemory(),
      clock: new ManualClock(Date.now()),
      randomness,
      keyEncryption: new LocalKeyEncryption([new SeededRandomness(`kek of ${seed}`).bytes(32)], randomness),
      delivery: new RetryingDelivery({ email: kept, sms: kept }, () => undefined, { now: Date.now }),
      logger: createLogger('silent'),
    });
    await coordinator.app.listen(0, '127.0.0.1');
    const root = { ...rich.root, apiUrl: await coordinator.app.getUrl() };
    await writeFile(user.path('root.json'), JSON.stringify(root));
    await user.json(['login', '--key-file', 'root.json']);
    return coordinator;
  }

  it.each([
    'ActivitySubmitted.fingerprint',
    'ActivitySubmitted.vote.selection',
    'WalletAccountsCreated.accounts[].path',
    'WalletAccountsCreated.accounts[].address',
    'AuthenticatorCreated.publicKey',
    'OauthProviderCreated.subject',
    'SubOrganizationCreated.initialEvents[UserCreated].data.userName',
  ])('shows no forged value of %s as verified', async (kind) => {
    const leaves = [...leavesByKind([rich.history]).get(kind)!.values()].flat();
    const leaf = leaves.findLast(({ stream }) => stream === organizationStream(rich.root.organizationId))!;
    const other = kind.endsWith('selection') ? 'VOTE_SELECTION_REJECTED' : String(another(leaf.value));
    const history = forged(leaf, other, true);
    const coordinator = await startOn(history);
    try {
      const { metadata } = history.get(leaf.stream)![leaf.revision]!;
      const shown = await user.types(['activities', 'show', metadata.$correlationId]);
      expect(shown.code === 1 ? '' : shown.out).not.toContain(other);
      expect(shown.code === 1 ? shown.error : shown.out).toMatch(/cannot be trusted|were verified|Not verified/);

      const store = ['--data-dir', 'data'];
      const words = ['replay', rich.root.organizationId, ...store, '--activity', metadata.$correlationId];
      const { steps } = await user.json<{ steps: { decision?: { again: string } }[] }>(words);
      const again = steps.flatMap(({ decision }) => decision?.again ?? []);
      expect(again).toHaveLength(1);
      expect(again).not.toContain('same');
      expect(await user.types(['verify', ...store])).toMatchObject({ code: 1 });
    } finally {
      await coordinator.close();
    }
  });
});
