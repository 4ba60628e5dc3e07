/**
 * A process to be killed: writes to its streams in parallel, as fast as it can and for ever, and says on its standard
 * output what was acknowledged, one line `<stream> <last revision>` each. The parent picks the moment it dies.
 *
 * Arguments: the database file, then the names of the streams.
 */
import { writeSync } from 'node:fs';
import { SqliteEventStore } from '../../dist/ledger/stores/sqlite/sqlite.js';

const [, , file, ...streams] = process.argv;
const store = await SqliteEventStore.open(file);

await Promise.all(
  streams.map(async (stream) => {
    let next = 0;
    for await (const { revision } of store.read(stream)) next = revision + 1;
    for (;;) {
      const size = 1 + Math.floor(Math.random() * 3);
      const events = Array.from({ length: size }, (_, index) => ({
        id: `${stream}#${next + index}`,
        type: 'Written',
        data: { index, of: size, text: 'x'.repeat(Math.floor(Math.random() * 2_000)) },
        metadata: {},
      }));
      const { revision } = await store.append(stream, events, next === 0 ? 'no-stream' : next - 1);
      // Not through process.stdout: a line that waited in a buffer would be lost with the process.
      writeSync(1, `${stream} ${revision}\n`);
      next = revision + 1;
    }
  }),
);
