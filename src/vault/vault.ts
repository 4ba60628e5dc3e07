import { CoordinatorError } from '../domain/errors.js';
import { chainEvent, GENESIS_HASH, verifyChain } from '../event-store/chain.js';
import { StoreUnavailable, WrongRevision, type EventStore, type RecordedEvent } from '../event-store/event-store.js';
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

/** A secret on its way into a vault; the caller wipes it. */
export interface NamedSecret {
  readonly name: string;
  readonly secret: Uint8Array;
}

/** Facts of a `vault-…` stream. A secret is AES-256-GCM under a data key of its own, which the KEK wraps. */
type VaultEvent =
  | { readonly type: 'SecretSealed'; readonly data: SealedSecret }
  | { readonly type: 'DataKeyRewrapped'; readonly data: { readonly name: string } & WrappedKey };

interface SealedSecret extends WrappedKey {
  readonly organizationId: string;
  readonly name: string;
  /** Base64 of nonce ‖ ciphertext ‖ tag. */
  readonly sealed: string;
}

/** A vault's stream as far as it was read. Everything in it is sealed. */
interface LoadedVault {
  revision: number;
  hash: string;
  readonly secrets: Map<string, SealedSecret>;
  /** How many of its secrets the cache's bound has counted. */
  counted: number;
}

export interface VaultPorts {
  readonly store: EventStore;
  readonly keyEncryption: KeyEncryption;
  readonly randomness: { bytes(count: number): Uint8Array };
  readonly clock: { now(): number };
}

/** Sealed secrets kept in memory, over all vaults; the least recently used vault goes first. */
const cachedSecrets = 100_000;
const maxAttempts = 5;
const dataKeyLength = 32;
const streamPrefix = 'vault-';

/**
 * Sealed secrets, each vault a stream `vault-<id>` of its own: every coordinator of a store sees them, and deleting the
 * stream shreds them (design, section 7). A plaintext leaves `open` only into the function it was opened for.
 */
export class Vault {
  private readonly cache = new Map<string, LoadedVault>();
  private readonly loading = new Map<string, Promise<LoadedVault>>();
  private cached = 0;

  constructor(private readonly ports: VaultPorts) {}

  /** Puts secrets into a vault, which comes into being with the first. A name that is there keeps its secret. */
  async seal(vaultId: string, organizationId: string, secrets: readonly NamedSecret[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const vault = await this.load(vaultId);
      const events: VaultEvent[] = [];
      for (const { name, secret } of secrets) {
        if (vault.secrets.has(name)) continue;
        events.push({ type: 'SecretSealed', data: await this.sealOne({ organizationId, vaultId, name }, secret) });
      }
      try {
        return await this.append(vaultId, vault, events);
      } catch (error) {
        if (!(error instanceof WrongRevision) || attempt === maxAttempts) throw error;
        this.forget(vaultId);
      }
    }
  }

  /**
   * Opens a secret for as long as `use` runs; the buffer is wiped afterwards, so nothing may keep it.
   * @throws {CoordinatorError} UNAVAILABLE when the store or the key-encryption key cannot be had
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

  /** Removes a vault for good: what was sealed in it can never be opened again. Doing it twice does no harm. */
  async shred(vaultId: string): Promise<void> {
    this.forget(vaultId);
    await this.ports.store.delete(`${streamPrefix}${vaultId}`);
  }

  /** Wraps the data keys of a vault under the current key-encryption key; how many were under another. */
  async rewrap(vaultId: string): Promise<number> {
    const { keyEncryption } = this.ports;
    for (let attempt = 1; ; attempt++) {
      const vault = await this.load(vaultId);
      const events: VaultEvent[] = [];
      for (const secret of vault.secrets.values()) {
        if (secret.kekId === keyEncryption.currentId) continue;
        const context = contextOf({ ...secret, vaultId });
        const dataKey = await keyEncryption.unwrap(secret, context);
        try {
          const wrapped = await keyEncryption.wrap(dataKey, context);
          events.push({ type: 'DataKeyRewrapped', data: { name: secret.name, ...wrapped } });
        } finally {
          dataKey.fill(0);
        }
      }
      try {
        await this.append(vaultId, vault, events);
        return events.length;
      } catch (error) {
        if (!(error instanceof WrongRevision) || attempt === maxAttempts) throw error;
        this.forget(vaultId);
      }
    }
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
        // It may have been rewrapped by a rotation since it was read.
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
    const cached = this.cache.get(vaultId)?.secrets.get(name);
    if (cached) {
      this.touch(vaultId);
      return { secret: cached, isFresh: false };
    }
    const secret = (await this.load(vaultId)).secrets.get(name);
    if (!secret) throw new Error(`vault \`${vaultId}\` has no secret \`${name}\``);
    return { secret, isFresh: true };
  }

  /** The vault at the head of its stream; an empty one when there is no stream. */
  private load(vaultId: string): Promise<LoadedVault> {
    // Two readers of one stream at once would take the same events twice into one vault.
    const running = this.loading.get(vaultId);
    if (running) return running;
    const load = this.catchUp(vaultId).finally(() => this.loading.delete(vaultId));
    this.loading.set(vaultId, load);
    return load;
  }

  private async catchUp(vaultId: string): Promise<LoadedVault> {
    const vault = this.cache.get(vaultId) ?? { revision: -1, hash: GENESIS_HASH, secrets: new Map(), counted: 0 };
    try {
      for await (const event of this.ports.store.read(`${streamPrefix}${vaultId}`, vault.revision + 1)) {
        this.take(vault, event);
      }
    } catch (error) {
      this.forget(vaultId);
      throw unreachable(error);
    }
    if (vault.revision >= 0) this.keep(vaultId, vault);
    return vault;
  }

  private take(vault: LoadedVault, recorded: RecordedEvent): void {
    vault.hash = verifyChain(vault.hash, recorded);
    vault.revision = recorded.revision;
    const { type, data } = recorded as unknown as VaultEvent;
    const known = vault.secrets.get(data.name);
    if (type === 'SecretSealed') {
      vault.secrets.set(data.name, data);
    } else if (known) {
      vault.secrets.set(data.name, { ...known, ...data });
    }
  }

  private async append(vaultId: string, vault: LoadedVault, events: readonly VaultEvent[]): Promise<void> {
    if (events.length === 0) return;
    const { store, clock, randomness } = this.ports;
    const stream = `${streamPrefix}${vaultId}`;
    let { hash } = vault;
    const sealed = events.map(({ type, data }, index) => {
      const id = randomUuid(randomness.bytes(16));
      const metadata = { at: clock.now(), schemaVersion: 1, $correlationId: vaultId, $causationId: vaultId };
      hash = chainEvent(hash, { stream, revision: vault.revision + 1 + index, id, type, data, metadata });
      return { id, type, data, metadata: { ...metadata, hash } };
    });
    try {
      await store.append(stream, sealed, vault.revision < 0 ? 'no-stream' : vault.revision);
    } catch (error) {
      if (error instanceof WrongRevision) throw error;
      throw unreachable(error);
    }
  }

  private keep(vaultId: string, vault: LoadedVault): void {
    this.cached += vault.secrets.size - vault.counted;
    vault.counted = vault.secrets.size;
    this.cache.delete(vaultId);
    this.cache.set(vaultId, vault);
    for (const oldest of this.cache.keys()) {
      if (this.cached <= cachedSecrets || oldest === vaultId) return;
      this.forget(oldest);
    }
  }

  private touch(vaultId: string): void {
    const vault = this.cache.get(vaultId);
    if (vault) this.keep(vaultId, vault);
  }

  private forget(vaultId: string): void {
    const vault = this.cache.get(vaultId);
    if (!vault) return;
    this.cached -= vault.counted;
    vault.counted = 0;
    this.cache.delete(vaultId);
  }
}

/** What a seal is bound to: a sealed secret that is moved to another place does not open there. */
function contextOf({ organizationId, vaultId, name }: SecretRef): string {
  return JSON.stringify(['countersign secret', 1, organizationId, vaultId, name]);
}

function unopened(cause: unknown): CoordinatorError {
  const reason = cause instanceof KeyEncryptionError ? `: ${cause.message}` : '';
  return new CoordinatorError('UNAVAILABLE', `a sealed secret could not be opened${reason}`, { cause });
}

function unreachable(cause: unknown): unknown {
  if (!(cause instanceof StoreUnavailable)) return cause;
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
