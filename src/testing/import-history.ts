import { errorMessage } from '../domain/errors.js';
import { derivedId } from '../ledger/ids.js';
import type { Founding } from '../decide/found-organization.js';
import { isExpired } from '../domain/organization/credentials.js';
import type { ImportedEvent, TestKey } from '../domain/organization/imported.js';
import { organizationStream, type OrganizationView } from '../domain/organization/organization.js';
import type { User } from '../domain/organization/users.js';
import type { EventMetadata } from '../ledger/chain.js';
import type { EventStore, NewEvent } from '../ledger/event-store.js';
import { apply, nothingLoaded, type LoadedOrganization } from '../ledger/loaded-organization.js';
import { emptyTail, seal } from '../ledger/seal.js';
import { NotAHistory, readHistory, type HistoryEvent, type HistoryHeader } from '../audit/export/history-file.js';
import { generateApiKeyPair, type ApiKeyPair } from '../stamps/sign.js';
import type { Vault } from '../vault/vault.js';
import { sealSubstitutes } from './substitutes.js';

const rootStream = 'installation-root';
/** Events and characters per append: a store may accept less than a file contains. */
const together = { events: 200, characters: 1_000_000 };

/** A parsed, verified and folded history; nothing is written yet. */
export interface ReadHistory {
  readonly file: string;
  readonly header: HistoryHeader;
  readonly events: readonly HistoryEvent[];
  /** Its organizations, the parent first. */
  readonly organizations: readonly LoadedOrganization[];
  /** Recorded time of its last event. */
  readonly lastAt: number;
}

/** What the harness knows about an imported history. */
export interface Imported {
  readonly organizationId: string;
  /** A member of the root quorum, or anyone else if no member has a credential. */
  readonly userId: string;
  /** Test keys by organization and user. */
  readonly keys: ReadonlyMap<string, ReadonlyMap<string, ApiKeyPair>>;
}

/**
 * Parses a file and folds its contents. A file may come from a stranger: it names no path, and
 * contains nothing executable except policies, which have a budget.
 * @throws {NotAHistory}
 */
export async function readImport(file: string): Promise<ReadHistory> {
  const { header, events } = await readHistory(file);
  const { organizationId, parentOrganizationId } = header;
  const folded = new Map<string, LoadedOrganization>();
  for (const id of [parentOrganizationId, organizationId]) if (id) folded.set(organizationStream(id), nothingLoaded());
  let lastAt = 0;
  for (const [index, event] of events.entries()) {
    try {
      const recorded = { ...event, position: BigInt(index) };
      const { hash } = event.metadata as EventMetadata;
      const loaded = folded.get(event.stream);
      if (loaded) apply(loaded, recorded, hash);
    } catch (error) {
      const problem = errorMessage(error);
      throw new NotAHistory(file, `revision ${event.revision} of ${event.stream} cannot be folded: ${problem}`);
    }
    lastAt = Math.max(lastAt, (event.metadata as EventMetadata).at);
  }
  const organizations = [...folded.values()];
  for (const [stream, { organization }] of folded) {
    const parent = stream === organizationStream(organizationId) ? parentOrganizationId : undefined;
    const isOwn = organizationStream(organization.organizationId) === stream;
    if (!isOwn || organization.parentOrganizationId !== parent) {
      throw new NotAHistory(file, `${stream} is the stream of another organization, or of one under another parent`);
    }
  }
  return { file, header, events, organizations, lastAt };
}

/**
 * Fills an empty store with a history, marks it, and adds for its users and wallets what only this harness has.
 * @throws {Error} if the store is not empty
 */
export async function importHistory(
  { file, header, events, organizations }: ReadHistory,
  {
    store,
    vault,
    randomness,
    now,
  }: {
    readonly store: EventStore;
    readonly vault: Vault;
    readonly randomness: { bytes(count: number): Uint8Array };
    readonly now: number;
  },
): Promise<Imported> {
  if ((await store.head()) !== undefined)
    throw new Error(`${file} can be imported only into an empty store, and this one is not empty`);
  const isRedacted = header.redacted === 'personal-data';
  const [root] = organizations as [LoadedOrganization];
  const founding = foundingOf(file, root.organization, events, isRedacted);
  const { organizationId: rootId } = root.organization;
  const metadata = { at: founding.at, $correlationId: rootId, $causationId: rootId };
  const id = derivedId(rootStream, rootId);
  const installed = seal(rootStream, emptyTail, [{ id, type: 'CoordinatorInstalled', data: founding, metadata }]);
  await store.append(rootStream, installed.events, 'no-stream');
  await appendAll(store, events);

  const keys = new Map<string, ReadonlyMap<string, ApiKeyPair>>();
  for (const { organization, revision, hash } of organizations) {
    const { organizationId } = organization;
    const pairs = new Map<string, ApiKeyPair>();
    const testKeys: TestKey[] = [];
    for (const user of organization.users.values()) {
      const credential = credentialOf(user, now);
      if (!credential) continue;
      const pair = generateApiKeyPair((count) => randomness.bytes(count), credential.curve);
      pairs.set(user.userId, pair);
      testKeys.push({ userId: user.userId, credentialId: credential.id, publicKey: pair.publicKey });
    }
    keys.set(organizationId, pairs);
    const mark: ImportedEvent = { type: 'HistoryImported', data: { redacted: isRedacted, testKeys } };
    const marked = { at: now, $correlationId: organizationId, $causationId: id };
    const stream = organizationStream(organizationId);
    const { events: made } = seal(stream, { revision, hash }, [{ ...mark, metadata: marked }]);
    await store.append(stream, made, revision);
    if (!organization.isDeleted) await sealSubstitutes(vault, organization, randomness);
  }
  const { organizationId } = header;
  const own = organizations.at(-1)!.organization;
  return { organizationId, userId: callerOf(own, keys.get(organizationId)!), keys };
}

async function appendAll(store: EventStore, events: readonly HistoryEvent[]): Promise<void> {
  let run: HistoryEvent[] = [];
  let characters = 0;
  const flush = async () => {
    const [first] = run;
    if (!first) return;
    const added = run.map(({ id, type, data, metadata }): NewEvent => ({ id, type, data, metadata }));
    await store.append(first.stream, added, first.revision === 0 ? 'no-stream' : first.revision - 1);
    run = [];
    characters = 0;
  };
  for (const event of events) {
    const isFull = run.length >= together.events || characters >= together.characters;
    if (isFull || run[0]?.stream !== event.stream) await flush();
    run.push(event);
    characters += JSON.stringify(event.data).length;
  }
  await flush();
}

/** What the installation of that root organization must have recorded about it. */
function foundingOf(
  file: string,
  { organizationId }: OrganizationView,
  events: readonly HistoryEvent[],
  redacted: boolean,
): Founding {
  const stream = organizationStream(organizationId);
  const first = <Data>(type: string) => {
    const event = events.find((one) => one.stream === stream && one.type === type);
    if (!event) throw new NotAHistory(file, `${stream} has no ${type}, which every organization begins with`);
    return { data: event.data as Data, at: (event.metadata as EventMetadata).at };
  };
  const { data: created, at } = first<{ readonly name: string }>('OrganizationCreated');
  const { data: user } = first<Pick<User, 'userId' | 'userName'>>('UserCreated');
  const { data: key } = first<{ readonly publicKey: string; readonly curve: Founding['curve'] }>('ApiKeyCreated');
  return {
    organizationId,
    organizationName: created.name,
    userId: user.userId,
    userName: user.userName,
    apiPublicKey: key.publicKey,
    curve: key.curve,
    at,
    imported: { redacted },
  };
}

/** The credential that a test key stands for: the one that the user would most likely stamp with. */
function credentialOf({ apiKeys, authenticators }: User, now: number) {
  const lasting = apiKeys.findLast(({ expirationSeconds }) => expirationSeconds === undefined);
  const key = lasting ?? apiKeys.findLast((one) => !isExpired(one, now)) ?? apiKeys.at(-1);
  const passkey = authenticators.at(-1);
  if (lasting || (key && !passkey)) return { id: key!.apiKeyId, curve: key!.curve };
  return passkey && { id: passkey.authenticatorId, curve: 'API_KEY_CURVE_P256' as const };
}

function callerOf({ rootQuorum, users }: OrganizationView, keys: ReadonlyMap<string, ApiKeyPair>): string {
  const able = (userId: string) => keys.has(userId);
  return rootQuorum.userIds.find(able) ?? [...users.keys()].find(able) ?? rootQuorum.userIds[0] ?? '';
}
