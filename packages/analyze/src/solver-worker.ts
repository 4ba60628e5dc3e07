/** The solver, in a process of its own: its threads end only with the process. */
import { init } from 'z3-solver';

type Answer = { readonly answer: string } | { readonly error: string };

/** Of the solver's module, whose types the package leaves out. */
interface Memory {
  readonly _malloc: (bytes: number) => number;
  readonly _free: (at: number) => void;
  readonly HEAPU8: Uint8Array;
  readonly ccall: (name: string, result: string, types: readonly string[], input: readonly number[]) => void;
  readonly async_call: (call: () => void) => Promise<string>;
}

const reply = (answer: Answer): void => {
  process.send!(answer);
};

async function start(): Promise<void> {
  const solver = await init();
  const { Z3 } = solver;
  const memory = solver.em as Memory;
  process.on('message', (script: string) => {
    const context = Z3.mk_context(Z3.mk_config());
    // The package would hand the text over on a stack, which is small, and used again while the solver reads it.
    const text = Buffer.from(`${script}\0`);
    const at = memory._malloc(text.length);
    memory.HEAPU8.set(text, at);
    const call = () =>
      memory.ccall('async_Z3_eval_smtlib2_string', 'void', ['number', 'number'], [Number(context), at]);
    void memory
      .async_call(call)
      .then((answer) => reply({ answer }))
      .catch((error: unknown) => reply({ error: error instanceof Error ? error.message : String(error) }))
      .finally(() => {
        memory._free(at);
        Z3.del_context(context);
      });
  });
}

process.on('disconnect', () => process.exit());
await start();
