import { fork, type ChildProcess } from 'node:child_process';

type Reply = { readonly answer?: string; readonly error?: string };

/** The solver as a child process, which is ended when a script takes too long. One script at a time. */
export class SolverProcess {
  private child: ChildProcess | undefined;

  /** `limitMs` is for one script. */
  constructor(private readonly limitMs: number) {}

  /** What the solver prints for a script; undefined if it takes too long. */
  async run(script: string): Promise<string | undefined> {
    const child = (this.child ??= fork(new URL('./solver-worker.js', import.meta.url), {
      stdio: 'inherit',
      execArgv: [],
    }));
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        clearTimeout(timer);
        child.removeAllListeners();
        act();
      };
      const timer = setTimeout(() => {
        settle(() => void this.end().then(() => resolve(undefined), reject));
      }, this.limitMs);
      child.on('message', ({ answer, error }: Reply) => {
        settle(() => {
          if (answer === undefined) reject(new Error(`the solver failed: ${error ?? 'it did not say why'}`));
          else resolve(answer);
        });
      });
      child.on('error', (error) => settle(() => reject(error)));
      child.on('exit', (code) => {
        this.child = undefined;
        settle(() => reject(new Error(`the solver's process ended with ${code ?? 'a signal'}`)));
      });
      child.send(script);
    });
  }

  /** Ends the process, and waits until it has. */
  async end(): Promise<void> {
    const { child } = this;
    this.child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.removeAllListeners();
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }
}
