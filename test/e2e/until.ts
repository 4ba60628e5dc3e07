/** Generous bound, in milliseconds, for whatever must come about: the machines of tests are busy. */
export const patienceMs = 60_000;

/** Waits until something is so; fails, naming what it was, when it does not come about. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const begun = performance.now();
  while (!(await isSo())) {
    if (performance.now() - begun > patienceMs) throw new Error(`waited for ${patienceMs} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
