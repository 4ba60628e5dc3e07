/**
 * EventStoreDB's double in a process of its own, as a server would be: forked, this file serves it, and answers `counts` with
 * what has reached it.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = fileURLToPath(import.meta.url);

/** Its connection string; `counts()` gives appends, events, reads of streams and reads of everything so far. */
export async function startDouble() {
  const server = fork(here, ['--serve'], { execArgv: ['--max-old-space-size=8000'] });
  const [connectionString] = await once(server, 'message');
  return {
    connectionString,
    async counts() {
      server.send('counts');
      return (await once(server, 'message'))[0];
    },
    async stop() {
      server.kill('SIGTERM');
      await once(server, 'exit');
    },
  };
}

/** The double is a part of the tests, in TypeScript; what it imports is found from inside `node_modules`. */
async function serve() {
  const { transformSync } = await import('@swc/core');
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const folder = join(root, 'node_modules', '.cache', `countersign-bench-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  for (const name of ['double', 'log', 'wire']) {
    const source = readFileSync(join(root, 'test/ledger/stores/double', `${name}.ts`), 'utf8');
    const { code } = transformSync(source, { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' } });
    writeFileSync(join(folder, `${name}.js`), code);
  }
  const { EventStoreDouble } = await import(pathToFileURL(join(folder, 'double.js')).href);
  rmSync(folder, { recursive: true });
  const double = await EventStoreDouble.start();
  double.maxAppendBytes = 4 * 1024 * 1024;
  process.on('message', () => {
    const { appends, proposed, streamReads, allReads } = double;
    process.send({
      appends: appends.batch + appends.classic,
      events: proposed,
      streamReads,
      allReads: allReads.length,
    });
  });
  process.send(double.connectionString);
}

if (process.argv[1] === here && process.argv[2] === '--serve') await serve();
