// The client by itself, in a process of its own, since some of its defects end the process.
// node bare-client.mjs late-answer <port> <other port>: one client's append is answered late, the other loses its connection
// node bare-client.mjs lost-queue <port>: more appends than the stream takes at once, and then it is lost, which waits for a line on its input
import { EventStoreDBClient, jsonEvent, NO_STREAM } from '@eventstore/db-client';

// The defects end the process long before this. It ends in any case, whatever the client waits for.
setTimeout(() => {
  console.log('alive');
  process.exit(0);
}, 45_000);

/** Resolves once whoever has started this has said something. */
const told = () => new Promise((resolve) => process.stdin.once('data', resolve));
const [what, ...ports] = process.argv.slice(2);
const clients = ports.map((port) => EventStoreDBClient.connectionString(`esdb://127.0.0.1:${port}?tls=false`));
const append = (client, stream, text = '') =>
  client
    .appendToStream(`organization-${stream}`, jsonEvent({ type: 'Happened', data: { text } }), {
      expectedRevision: NO_STREAM,
    })
    .then(
      () => 'written',
      (error) => error.type,
    );

if (what === 'late-answer') {
  const [first, second] = clients;
  const outcomes = await Promise.all([append(first, 'late'), append(second, 'cut')]);
  console.log(JSON.stringify(outcomes));
} else {
  await append(clients[0], 'first');
  console.log('connected');
  await told();
  const many = Array.from({ length: 100 }, (_, index) => append(clients[0], index, 'x'.repeat(50_000)));
  setTimeout(() => console.log('queued'), 300);
  console.log(JSON.stringify(await Promise.race(many)));
}
