import { EventStoreDBClient } from '@eventstore/db-client';
import { within } from './failures.js';
import { clientString } from './settings.js';
import type { ConnectionSettings } from './settings.js';

/** How long a client may take to end its streams: without a server it takes forever. */
const DISPOSE_MS = 1_000;

/** @param generation makes the client connect anew, beside those of other numbers */
export function newClient(settings: ConnectionSettings, generation: number): EventStoreDBClient {
  try {
    return EventStoreDBClient.connectionString(clientString(settings, generation));
  } catch (error) {
    // The client's own error has the connection string, with the password, in a member, and parts of it in its text.
    const aboutFiles = error instanceof Error && error.message.includes('userCertFile') ? error.message : '';
    throw new TypeError(
      `the connection string cannot be used: ${aboutFiles || 'check hosts, ports and option values'}`,
    );
  }
}

/** Ends the streams of a client, and then its connection, which is not in its interface. */
export async function close(client: EventStoreDBClient): Promise<void> {
  await within(client.dispose(), DISPOSE_MS).catch(() => undefined);
  const { getChannel } = client as unknown as { getChannel(): Promise<{ close(): void }> };
  getChannel().then(
    (channel) => channel.close(),
    () => undefined,
  );
}
