import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const dist = fileURLToPath(new URL('../../dist/', import.meta.url));

/**
 * What is said to an operator when a statement fails that imports `tried` from a module of `src`, in a process that may
 * create files and write nothing to them, as on a full disk. Its arguments are `process.argv[1]` and so on.
 */
export function saidWithoutRoom(module: string, statement: string, ...args: readonly string[]): string {
  const script = `
    import * as tried from ${JSON.stringify(dist + module)};
    const said = await (${statement}).then(() => 'done', (error) => error.message);
    process.stdout.write(said);
  `;
  const node = [process.execPath, '--input-type=module', '-e', script, ...args];
  const { stdout, stderr } = spawnSync('sh', ['-c', 'ulimit -f 0; exec "$@"', 'sh', ...node], {
    encoding: 'utf8',
    env: {},
    timeout: 60_000,
  });
  return stdout + stderr;
}
