import { fork, type ChildProcess } from 'node:child_process';
import { errorMessage, ActivityClient, send, apiKeyPairFromPrivate, type ApiKeyPair } from 'countersign/internal';
import { NotExecuted } from './trial-facts.js';

interface Started {
  readonly apiUrl: string;
  readonly organizationId: string;
  readonly apiPrivateKey: string;
}
type Told = { readonly at: number } | { readonly found: string } | { readonly mailTo: string };
type Done = Started | { readonly at: number } | { readonly organizationId: string } | { readonly mail: string };
type Reply = Done | { readonly error: string };

interface SealingKeys {
  readonly oauthSecretEncryption: string;
  readonly onRampEncryption: string;
}

/** Longest waits for one answer, and for the process to start, in milliseconds. */
const longestMs = 20_000;
const longestStartMs = 60_000;

/** The coordinator as a child process: real stamps over HTTP on loopback, its events in memory, its clock set by us. */
export class TrialCoordinator {
  private constructor(
    private readonly child: ChildProcess,
    private readonly started: Started,
    private time: number,
  ) {}

  /** @throws {NotExecuted} if it does not start, as where nothing may listen on loopback */
  static async start(at: number): Promise<TrialCoordinator> {
    const child = fork(new URL('./trial-worker.js', import.meta.url), {
      // Settings of whoever analyzes are not for it.
      env: { PATH: process.env['PATH'] },
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    try {
      const started = await ask(child, { at }, longestStartMs);
      if (!('apiUrl' in started)) throw new Error(`it answered ${JSON.stringify(started)} at its start`);
      return new TrialCoordinator(child, started, at);
    } catch (error) {
      child.kill('SIGKILL');
      throw new NotExecuted(`no coordinator starts here: ${errorMessage(error)}`);
    }
  }

  get url(): string {
    return this.started.apiUrl;
  }

  /** Stamps as the user of the installation's root organization. */
  get root(): ActivityClient {
    return this.clientOf(apiKeyPairFromPrivate(this.started.apiPrivateKey), this.started.organizationId);
  }

  clientOf(key: ApiKeyPair, organizationId: string): ActivityClient {
    return new ActivityClient(this.url, organizationId, key, { now: () => this.time }, longestMs);
  }

  /** What it answers to a body with a stamp in these headers. @throws {ApiError} */
  async post<Answer>(path: string, body: string, headers: Readonly<Record<string, string>>): Promise<Answer> {
    return (await send<Answer>(`${this.url}${path}`, body, headers, longestMs)).body;
  }

  /** Sets its clock, in milliseconds since the epoch; never back. */
  async setTime(at: number): Promise<void> {
    if (at === this.time) return;
    if (at < this.time) throw new RangeError(`its clock is at ${this.time} and cannot go back to ${at}`);
    await ask(this.child, { at });
    this.time = at;
  }

  /** Another organization without a parent, of one user with this key, who is its root quorum. */
  async found(key: ApiKeyPair): Promise<ActivityClient> {
    const founded = await ask(this.child, { found: key.publicKey });
    if (!('organizationId' in founded)) throw new Error(`it answered ${JSON.stringify(founded)} to a founding`);
    return this.clientOf(key, founded.organizationId);
  }

  /** The text of the newest mail to an address that was not read yet. @throws {Error} if none comes */
  async mailTo(address: string): Promise<string> {
    const read = await ask(this.child, { mailTo: address });
    if (!('mail' in read)) throw new Error(`it answered ${JSON.stringify(read)} about a mailbox`);
    return read.mail;
  }

  /** The keys to which secrets for others are sealed: uncompressed P-256, hex. */
  async sealingKeys(): Promise<SealingKeys> {
    const signal = AbortSignal.timeout(longestMs);
    return (await (await fetch(`${this.url}/public/v1/discovery/keys`, { signal })).json()) as SealingKeys;
  }

  /** Ends the process. */
  async end(): Promise<void> {
    const { child } = this;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }
}

/** One message and its answer. */
function ask(child: ChildProcess, told: Told, limitMs = longestMs): Promise<Done> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      child.off('message', onMessage).off('exit', onExit).off('error', onError);
      act();
    };
    const onMessage = (reply: Reply): void =>
      settle(() => ('error' in reply ? reject(new Error(reply.error)) : resolve(reply)));
    const onExit = (): void => settle(() => reject(new Error('its process ended')));
    const onError = (error: Error): void => settle(() => reject(error));
    const timer = setTimeout(
      () => settle(() => reject(new NotExecuted(`a coordinator did not answer within ${limitMs / 1000} s`))),
      limitMs,
    );
    child.on('message', onMessage).on('exit', onExit).on('error', onError);
    child.send(told);
  });
}
