/** The solver, in a process of its own: its threads end only with the process. */

type Answer = { readonly answer: string } | { readonly error: string } | { readonly isMissing: true };

const reply = (answer: Answer): void => {
  process.send!(answer);
};

async function start(): Promise<void> {
  const z3 = await import('z3-solver').catch((error: unknown) => {
    if ((error as { readonly code?: string }).code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw error;
  });
  if (!z3) {
    reply({ isMissing: true });
    return;
  }
  const { Z3 } = await z3.init();
  process.on('message', (script: string) => {
    const context = Z3.mk_context(Z3.mk_config());
    void Z3.eval_smtlib2_string(context, script)
      .then((answer) => reply({ answer }))
      .catch((error: unknown) => reply({ error: error instanceof Error ? error.message : String(error) }))
      .finally(() => Z3.del_context(context));
  });
}

process.on('disconnect', () => process.exit());
await start();
