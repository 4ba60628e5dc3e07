import { CoordinatorError } from '../domain/errors.js';
import type { VaultAttempt } from '../domain/vault-attempt.js';
import { vaultStream } from '../domain/vault-streams.js';
import { SharedMemory } from '../fairness/shared-memory.js';
import { appendWithRetry } from '../ledger/append-with-retry.js';
import { BrokenChain, verifyChain, type EventMetadata } from '../ledger/chain.js';
import {
  isBegun,
  StoreRefused,
  StoreUnavailable,
  StreamDeleted,
  type EventStore,
  type RecordedEvent,
} from '../ledger/event-store.js';
import { emptyTail, type Fact } from '../ledger/seal.js';
import {
  KeyEncryptionError,
  nonceLength,
  openAesGcm,
  sealAesGcm,
  type KeyEncryption,
  type WrappedKey,
} from './key-encryption.js';

/** Which secret of which vault; `organizationId` is bound into the seal. */
export interface SecretRef {
  readonly organizationId: string;
  readonly vaultId: string;
  readonly name: string;
}

/** A secret to be sealed; the caller wipes it. */
export interface NamedSecret {
  readonly name: string;
  readonly secret: Uint8Array;
}

/** Events of a `vault-…` stream. A secret is AES-256-GCM under its own data key, which the KEK wraps. */
export type VaultEvent =
  | { readonly type: 'SecretSealed'; readonly data: SealedSecret }
  | { readonly type: 'DataKeyRewrapped'; readonly data: { readonly name: string } & WrappedKey };

interface SealedSecret extends WrappedKey {
  readonly organizationId: string;
  readonly name: string;
  /** Base64 of nonce ‖ ciphertext ‖ tag. */
  readonly sealed: string;
  /** On the first secret of a vault that nothing recorded names yet. */
  readonly attempt?: VaultAttempt;
  /** It was made by a test harness for a history whose own secrets are elsewhere (docs/adr/0029). */
  readonly substitute?: true;
}

/** A vault's stream as far as it has been read. Everything in it is sealed. */
interface LoadedVault {
  revision: number;
  hash: string;
  readonly secrets: Map<string, SealedSecret>;
  /** Approximate bytes of its secrets. */
  bytes: number;
  /** When the stream was last known to exist, by the clock. */
  seenAt: number;
}

export interface VaultPorts {
  readonly store: EventStore;
  readonly keyEncryption: KeyEncryption;
  readonly randomness: { bytes(count: number): Uint8Array };
  readonly clock: { now(): number };
  /** Bytes of sealed secrets cached, over all vaults. 8 MiB by default. */
  readonly cachedBytes?: number;
  /** Whose share of it an organization's secrets use; by default, its own. */
  readonly familyOf?: (organizationId: string) => string;
}

const mostCachedBytes = 8 * 1024 * 1024;
/** Memory of a vault besides its secrets, and of a secret besides its strings: objects, names, map entries. */
const bytesBeside = { vault: 512, secret: 512 } as const;
/**
 * How long a vault is used from memory, in milliseconds, before the store is asked whether another coordinator has
 * shredded it.
 */
const unquestionedMs = 60_000;
const maxAttempts = 5;
const dataKeyLength = 32;

/**
 * Sealed secrets. Each vault is a stream `vault-<id>`: every coordinator of a store sees it, and deleting the stream
 * shreds the secrets. A plaintext leaves `open` only into the function it was opened for.
 */
export class Vault {
  private readonly cache: SharedMemory<LoadedVault>;
  private readonly loading = new Map<string, Promise<LoadedVault>>();

  constructor(private readonly ports: VaultPorts) {
    this.cache = new SharedMemory(ports.cachedBytes ?? mostCachedBytes);
  }

  /**
   * Puts secrets into a vault, which is created with the first. A secret whose name exists is kept.
   * @param attempt what the vault is created for, if nothing names it yet
   * @param isSubstitute whether it stands for a secret that is elsewhere
   * @throws {CoordinatorError} NOT_FOUND for a shredded vault, UNAVAILABLE if the store is unavailable
   */
  async seal(
    vaultId: string,
    organizationId: string,
    secrets: readonly NamedSecret[],
    attempt?: VaultAttempt,
    isSubstitute = false,
  ): Promise<void> {
    await this.change(vaultId, async (vault) => {
      const isNew = vault.revision < 0;
      const missing = secrets.filter(({ name }) => !vault.secrets.has(name));
      const events: VaultEvent[] = [];
      for (const { name, secret } of missing) {
        const sealed = await this.sealOne({ organizationId, vaultId, name }, secret);
        const named = attempt && isNew && events.length === 0 ? { ...sealed, attempt } : sealed;
        const data = isSubstitute ? { ...named, substitute: true as const } : named;
        events.push({ type: 'SecretSealed', data });
      }
      return events;
    });
  }

  /**
   * Opens a secret while `use` runs; the buffer is wiped afterwards, so nothing may keep it.
   * @throws {CoordinatorError} UNAVAILABLE if the store or the key-encryption key is unavailable, NOT_FOUND if the
   * secret does not exist
   */
  async open<Result>(ref: SecretRef, use: (secret: Buffer) => Result | Promise<Result>): Promise<Result> {
    const secret = await this.reveal(ref);
    try {
      return await use(secret);
    } finally {
      secret.fill(0);
    }
  }

  /** Names of the secrets of a vault; none for one that does not exist or was shredded. */
  async names(vaultId: string): Promise<readonly string[]> {
    return [...(await this.load(vaultId)).secrets.keys()];
  }

  /** Whether anything is sealed in it, according to the store. @throws {StoreUnavailable} */
  isThere(vaultId: string): Promise<boolean> {
    return isBegun(this.ports.store, vaultStream(vaultId));
  }

  /** Deletes a vault permanently: its secrets can never be opened again. Repeating it does no harm. */
  async shred(vaultId: string): Promise<void> {
    this.forget(vaultId);
    await this.ports.store.delete(vaultStream(vaultId));
    // A concurrent read has put it back into the cache.
    for (let running = this.loading.get(vaultId); running; running = this.loading.get(vaultId)) {
      await running.catch(() => undefined);
    }
    this.forget(vaultId);
  }

  /** Wraps the data keys of a vault under the current key-encryption key; returns how many were under another. */
  async rewrap(vaultId: string): Promise<number> {
    const { keyEncryption } = this.ports;
    try {
      return await this.change(vaultId, async (vault) => {
        const outdated = [...vault.secrets.values()].filter(({ kekId }) => kekId !== keyEncryption.currentId);
        const events: VaultEvent[] = [];
        for (const secret of outdated) {
          const context = contextOf({ ...secret, vaultId });
          const dataKey = await keyEncryption.unwrap(secret, context);
          try {
            const wrapped = await keyEncryption.wrap(dataKey, context);
            events.push({ type: 'DataKeyRewrapped', data: { name: secret.name, ...wrapped } });
          } finally {
            dataKey.fill(0);
          }
        }
        return events;
      });
    } catch (error) {
      if (error instanceof CoordinatorError && error.code === 'NOT_FOUND') return 0;
      throw error;
    }
  }

  /**
   * Opens every secret of a vault once; returns how many there are.
   * @throws {CoordinatorError} UNAVAILABLE if one does not open with the available key-encryption keys
   */
  async verify(vaultId: string): Promise<number> {
    const { secrets } = await this.load(vaultId);
    const sealed = [...secrets.values()];
    for (const { organizationId, name } of sealed) await this.open({ organizationId, vaultId, name }, () => undefined);
    return sealed.length;
  }

  /** Appends what `decide` returns for the current vault; decides again if another writer was first. */
  private async change(vaultId: string, decide: (vault: LoadedVault) => Promise<VaultEvent[]>): Promise<number> {
    let count = 0;
    const addition = async () => {
      const vault = await this.load(vaultId);
      // INVARIANT: captured together with what is decided on; a reader may advance the vault while the keys are
      // wrapped.
      const { revision, hash } = vault;
      const events = await decide(vault);
      count = events.length;
      return count === 0 ? undefined : { tail: { revision, hash }, facts: this.factsOf(vaultId, events) };
    };
    try {
      await appendWithRetry(this.ports.store, vaultStream(vaultId), addition, { attempts: maxAttempts });
    } catch (error) {
      throw error instanceof StreamDeleted ? gone(vaultId, error) : unreachable(error);
    }
    return count;
  }

  private async sealOne(ref: SecretRef, secret: Uint8Array): Promise<SealedSecret> {
    const { keyEncryption, randomness } = this.ports;
    const context = contextOf(ref);
    const dataKey = randomness.bytes(dataKeyLength);
    try {
      const sealed = sealAesGcm(dataKey, randomness.bytes(nonceLength), secret, context);
      const wrapped = await keyEncryption.wrap(dataKey, context);
      const { organizationId, name } = ref;
      return { organizationId, name, ...wrapped, sealed: sealed.toString('base64') };
    } finally {
      dataKey.fill(0);
    }
  }

  private async reveal(ref: SecretRef): Promise<Buffer> {
    let { secret, isFresh } = await this.find(ref);
    const context = contextOf(ref);
    for (;;) {
      let dataKey: Buffer;
      try {
        dataKey = await this.ports.keyEncryption.unwrap(secret, context);
      } catch (error) {
        // A rotation may have rewrapped it since it was read.
        if (isFresh || !(error instanceof KeyEncryptionError)) throw unopened(error);
        this.forget(ref.vaultId);
        ({ secret, isFresh } = await this.find(ref));
        continue;
      }
      try {
        return openAesGcm(dataKey, Buffer.from(secret.sealed, 'base64'), context);
      } catch (error) {
        throw unopened(error);
      } finally {
        dataKey.fill(0);
      }
    }
  }

  private async find({ vaultId, name }: SecretRef): Promise<{ secret: SealedSecret; isFresh: boolean }> {
    const vault = this.cache.get(vaultId);
    const cached = vault?.secrets.get(name);
    if (vault && cached && this.isUnquestioned(vault)) {
      this.keep(vaultId, vault);
      return { secret: cached, isFresh: false };
    }
    // Twice: a read started by others may not include what was sealed since.
    for (const _ of ['joined', 'own']) {
      const secret = (await this.load(vaultId)).secrets.get(name);
      if (secret) return { secret, isFresh: true };
    }
    throw gone(vaultId);
  }

  private isUnquestioned({ seenAt }: LoadedVault): boolean {
    const age = this.ports.clock.now() - seenAt;
    // A clock that was set back says nothing.
    return age >= 0 && age <= unquestionedMs;
  }

  /** The vault at the head of its stream; an empty one if there is no stream. */
  private load(vaultId: string): Promise<LoadedVault> {
    // Two concurrent readers of one stream would apply the same events twice to one vault.
    const running = this.loading.get(vaultId);
    if (running) return running;
    const load = this.catchUp(vaultId).finally(() => this.loading.delete(vaultId));
    this.loading.set(vaultId, load);
    return load;
  }

  private async catchUp(vaultId: string): Promise<LoadedVault> {
    const seenAt = this.ports.clock.now();
    const vault = this.cache.get(vaultId) ?? emptyVault();
    const known = vault.revision;
    let isThere = known < 0;
    try {
      // From the last known event: a stream that has lost it was deleted.
      for await (const event of this.ports.store.read(vaultStream(vaultId), Math.max(known, 0))) {
        if (event.revision === known) {
          checkUnchanged(vault, event);
          isThere = true;
        } else {
          take(vault, event);
        }
      }
    } catch (error) {
      this.forget(vaultId);
      throw unreachable(error);
    }
    if (!isThere) {
      this.forget(vaultId);
      return emptyVault();
    }
    vault.seenAt = seenAt;
    if (vault.revision >= 0) this.keep(vaultId, vault);
    return vault;
  }

  private factsOf(vaultId: string, events: readonly VaultEvent[]): Fact[] {
    const { clock, randomness } = this.ports;
    return events.map(({ type, data }) => ({
      id: randomUuid(randomness.bytes(16)),
      type,
      data,
      metadata: { at: clock.now(), $correlationId: vaultId, $causationId: vaultId },
    }));
  }

  private keep(vaultId: string, vault: LoadedVault): void {
    const [secret] = vault.secrets.values();
    const organizationId = secret?.organizationId ?? '';
    const family = this.ports.familyOf?.(organizationId) ?? organizationId;
    this.cache.keep(vaultId, vault, bytesBeside.vault + vault.bytes, family);
  }

  private forget(vaultId: string): void {
    this.cache.delete(vaultId);
  }
}

function emptyVault(): LoadedVault {
  return { ...emptyTail, secrets: new Map(), bytes: 0, seenAt: 0 };
}

function take(vault: LoadedVault, recorded: RecordedEvent): void {
  const hash = verifyChain(vault.hash, recorded);
  const { type, data } = recorded as unknown as VaultEvent;
  const known = vault.secrets.get(data.name);
  switch (type) {
    case 'SecretSealed':
      if (known) break;
      vault.secrets.set(data.name, data);
      vault.bytes += bytesBeside.secret + data.name.length + data.sealed.length;
      break;
    case 'DataKeyRewrapped':
      // Only the wrapping changes: what is sealed, and for whom, never does.
      if (known) vault.secrets.set(data.name, { ...known, kekId: data.kekId, wrappedKey: data.wrappedKey });
      break;
    default:
      throw new Error(
        `stream \`${recorded.stream}\` has an event \`${recorded.type}\` at revision ${recorded.revision}, which this ` +
          'release does not know: start the release that wrote it, or a newer one',
      );
  }
  vault.hash = hash;
  vault.revision = recorded.revision;
}

function checkUnchanged({ hash }: LoadedVault, event: RecordedEvent): void {
  if ((event.metadata as Partial<EventMetadata> | null)?.hash === hash) return;
  throw new BrokenChain(event.stream, event.revision, 'it is not the event that was there before');
}

/** What a seal is bound to: a sealed secret moved to another place does not open there. */
function contextOf({ organizationId, vaultId, name }: SecretRef): string {
  return JSON.stringify(['countersign secret', 1, organizationId, vaultId, name]);
}

function gone(vaultId: string, cause?: unknown): CoordinatorError {
  return new CoordinatorError(
    'NOT_FOUND',
    `vault \`${vaultId}\` does not hold the secret: it was deleted in the meantime`,
    {
      cause,
    },
  );
}

function unopened(cause: unknown): CoordinatorError {
  const reason = cause instanceof KeyEncryptionError ? `: ${cause.message}` : '';
  return new CoordinatorError('UNAVAILABLE', `a sealed secret could not be opened${reason}`, { cause });
}

function unreachable(cause: unknown): unknown {
  if (!(cause instanceof StoreUnavailable)) return cause;
  if (cause instanceof StoreRefused) {
    return new CoordinatorError(
      'UNAVAILABLE',
      'the event store refuses access to the vault: its operator must fix that',
      {
        cause,
      },
    );
  }
  return new CoordinatorError('UNAVAILABLE', 'the vault cannot be reached: send the same request again', { cause });
}

/** A UUID version 4 (RFC 9562, 5.4). */
function randomUuid(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes);
  hex[6] = (hex[6]! & 0x0f) | 0x40;
  hex[8] = (hex[8]! & 0x3f) | 0x80;
  const text = hex.toString('hex');
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-${text.slice(12, 16)}-${text.slice(16, 20)}-${text.slice(20)}`;
}
