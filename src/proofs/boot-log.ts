import { bootStream, type BootEvent, type BootFacts, type RestoreFacts } from '../domain/boots.js';
import { verifyChain } from '../ledger/chain.js';
import { appendWithRetry } from '../ledger/append-with-retry.js';
import type { EventStore, RecordedEvent } from '../ledger/event-store.js';
import { emptyTail } from '../ledger/seal.js';

interface World {
  readonly store: EventStore;
  readonly clock: { now(): number };
  /** Creates the id of an event. */
  readonly newId: () => string;
}

/** The stream as far as it has been read. */
interface Head {
  revision: number;
  hash: string;
  root: Uint8Array | undefined;
}

/** Attempts at an append: this many coordinators may start at once. */
const maxAttempts = 50;

/** Every boot of every coordinator of an installation, in one stream with its own hash chain. */
export class BootLog {
  private head: Head = { ...emptyTail, root: undefined };

  constructor(private readonly world: World) {}

  /**
   * The root certificate of the installation (DER), recorded on first use; several coordinators that create one at once
   * all end up with the same.
   */
  async root(issue: () => Promise<Uint8Array>): Promise<Uint8Array> {
    await this.catchUp();
    if (this.head.root) return this.head.root;
    const issued = await issue();
    const data = { certificate: Buffer.from(issued).toString('base64') };
    await this.append({ type: 'AttestationRootIssued', data }, () => this.head.root !== undefined);
    return this.head.root ?? issued;
  }

  /** Resolves when the boot is durable. */
  booted(facts: BootFacts): Promise<void> {
    return this.append({ type: 'CoordinatorBooted', data: facts }, () => false);
  }

  /** Resolves when it is durable that an operator has accepted the loss of events. */
  restored(facts: RestoreFacts): Promise<void> {
    return this.append({ type: 'HistoryRestored', data: facts }, () => false);
  }

  private async append({ type, data }: BootEvent, isNeedless: () => boolean): Promise<void> {
    const { store, clock, newId } = this.world;
    const id = newId();
    const metadata = { at: clock.now(), $correlationId: id, $causationId: id };
    const decide = async () => {
      await this.catchUp();
      return isNeedless() ? undefined : { tail: this.head, facts: [{ id, type, data, metadata }] };
    };
    await appendWithRetry(store, bootStream, decide, { attempts: maxAttempts });
  }

  private async catchUp(): Promise<void> {
    for await (const event of this.world.store.read(bootStream, this.head.revision + 1)) {
      const hash = verifyChain(this.head.hash, event);
      this.head = { revision: event.revision, hash, root: this.head.root ?? rootIn(event) };
    }
  }
}

function rootIn({ type, data }: RecordedEvent): Uint8Array | undefined {
  const issued: BootEvent['type'] = 'AttestationRootIssued';
  if (type !== issued) return undefined;
  return new Uint8Array(Buffer.from((data as { readonly certificate: string }).certificate, 'base64'));
}
