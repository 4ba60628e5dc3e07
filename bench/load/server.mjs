import { once } from 'node:events';
import { createServer } from 'node:net';

/** A port of loopback that nobody listens on. */
export async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return port;
}

/** Resolves when a coordinator answers that it is ready. @throws when its process has ended, or after some minutes */
export async function ready(server, url, minutes = 1) {
  for (const end = Date.now() + minutes * 60_000; Date.now() < end;) {
    if (server.exitCode !== null) throw new Error(`the server ended with code ${server.exitCode}`);
    const answer = await fetch(`${url}/health/ready`).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`the server was not ready within ${minutes} min`);
}
