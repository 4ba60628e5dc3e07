import { Worker } from 'node:worker_threads';
import { shuttingDown, unavailable } from './unavailable.js';

interface OwnThreadOptions {
  readonly name: string;
  readonly file: URL;
  /** Memory of the thread, in MiB. */
  readonly heapMib: number;
  /** Time limit of one conversation, in milliseconds; a thread that takes longer is ended. */
  readonly longestMs: number;
  /** Why there is no response: the time was up, or the thread has ended. */
  readonly late: string;
  readonly ended: string;
}

/**
 * A thread for work that takes long, with one conversation at a time. It is started on demand, and replaced when it
 * dies or stops responding; it does not keep the process alive.
 */
export class OwnThread<Said, Heard> {
  private thread: Worker | undefined;
  private last: Promise<unknown> = Promise.resolve();
  private isClosed = false;

  constructor(private readonly options: OwnThreadOptions) {}

  /**
   * Has a conversation once earlier ones are over: `say` returns the thread's reply to each message.
   * @throws {CoordinatorError} UNAVAILABLE if the thread was lost, or is closed; and what `conversation` throws
   */
  talk<Made>(conversation: (say: (message: Said) => Promise<Heard>) => Promise<Made>): Promise<Made> {
    const made = this.last.then(() => this.begin(conversation));
    this.last = made.catch(() => undefined);
    return made;
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.thread?.terminate();
  }

  private async begin<Made>(conversation: (say: (message: Said) => Promise<Heard>) => Promise<Made>): Promise<Made> {
    if (this.isClosed) throw unavailable(shuttingDown);
    const talk = new Talk<Said, Heard>((this.thread ??= this.newThread()), this.options);
    try {
      return await conversation((message) => talk.say(message));
    } finally {
      talk.end();
      if (talk.isLost) {
        const { thread } = this;
        this.thread = undefined;
        void thread?.terminate();
      }
    }
  }

  private newThread(): Worker {
    const { name, file, heapMib } = this.options;
    const thread = new Worker(file, { name, execArgv: [], resourceLimits: { maxOldGenerationSizeMb: heapMib } });
    thread.unref();
    // Errors while nobody talks to it, or too late: neither may end the process.
    thread.on('error', () => undefined);
    thread.once('exit', () => {
      if (this.thread === thread) this.thread = undefined;
    });
    return thread;
  }
}

/** One conversation, message by message, within one time limit. */
class Talk<Said, Heard> {
  private readonly timer: NodeJS.Timeout;
  private heard: ((message: Heard) => void) | undefined;
  private failed: ((error: unknown) => void) | undefined;
  private loss: Error | undefined;

  constructor(
    private readonly thread: Worker,
    private readonly options: OwnThreadOptions,
  ) {
    thread.on('message', this.hear).on('error', this.fail).on('exit', this.fail);
    this.timer = setTimeout(() => this.lose(options.late), options.longestMs);
  }

  get isLost(): boolean {
    return this.loss !== undefined;
  }

  /** @throws {CoordinatorError} UNAVAILABLE if the thread is lost */
  async say(message: Said): Promise<Heard> {
    if (this.loss) throw this.loss;
    return new Promise<Heard>((resolve, reject) => {
      [this.heard, this.failed] = [resolve, reject];
      this.thread.postMessage(message);
    });
  }

  end(): void {
    clearTimeout(this.timer);
    this.thread.off('message', this.hear).off('error', this.fail).off('exit', this.fail);
  }

  private readonly hear = (message: Heard): void => this.heard?.(message);

  private readonly fail = (): void => this.lose(this.options.ended);

  private lose(why: string): void {
    this.loss ??= unavailable(why);
    this.failed?.(this.loss);
  }
}
