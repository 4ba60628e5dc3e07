/** `failing`: this instance cannot do its work, readiness is red. `degraded`: part of the work is affected. */
export type Severity = 'failing' | 'degraded';

/** Something that operators must know about now. */
export interface Condition {
  /** Kebab-case, stable: it is a label of a metric, and alerts name it. */
  readonly name: string;
  readonly severity: Severity;
  /** What is wrong and what to do, for the log and for `/health/ready`: no ids of organizations, no secrets. */
  readonly message: string;
  /** Monotonic milliseconds at which it started. */
  readonly since: number;
}

/** Learns of each condition once when it starts, and once when it ends. */
export interface HealthObserver {
  started(condition: Condition): void;
  ended(condition: Condition, durationMs: number): void;
  /** The process cannot continue; called at most once. */
  failed(error: FatalError): void;
}

/** The conditions of one process. Whatever notices one raises it, and clears it when it has ended. */
export class Health {
  private readonly current = new Map<string, Condition>();
  private fatal: FatalError | undefined;

  /**
   * @param monotonic milliseconds of a clock that never runs backwards
   * @param onFatal called once the observer has learnt of a failure; a process ends there
   */
  constructor(
    private readonly observer: HealthObserver,
    private readonly monotonic: () => number = () => performance.now(),
    private readonly onFatal: OnFatal = () => undefined,
  ) {}

  /** Repeating it with the same name and severity changes nothing. */
  raise(name: string, severity: Severity, message: string): void {
    const known = this.current.get(name);
    if (known?.severity === severity) return;
    const condition = { name, severity, message, since: known?.since ?? this.monotonic() };
    this.current.set(name, condition);
    this.observer.started(condition);
  }

  clear(name: string): void {
    const condition = this.current.get(name);
    if (!condition) return;
    this.current.delete(name);
    this.observer.ended(condition, this.monotonic() - condition.since);
  }

  /** Nothing can be promised from here on. Only the first call counts. */
  fail(error: FatalError): void {
    if (this.fatal) return;
    this.fatal = error;
    const { message } = error;
    this.current.set('stopped', { name: 'stopped', severity: 'failing', message, since: this.monotonic() });
    this.observer.failed(error);
    this.onFatal(error);
  }

  /** Why this process has stopped serving, if it has. */
  get failure(): FatalError | undefined {
    return this.fatal;
  }

  conditions(): readonly Condition[] {
    return [...this.current.values()];
  }
}

/** The part of `Health` for whatever notices something. */
export type HealthReports = Pick<Health, 'raise' | 'clear' | 'fail'>;

export const HEALTH = Symbol('Health');

/** The process cannot guarantee what it has promised: a restart is the recovery. The message says why and what to do. */
export class FatalError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'FatalError';
  }
}

/**
 * Called at most once, by whatever cannot go on. `main.ts` and the command line log one `fatal` line and exit with code 1;
 * embedders decide for themselves, while every later request is refused.
 */
export type OnFatal = (error: FatalError) => void;
