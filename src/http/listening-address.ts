import type { Server } from 'node:http';

/**
 * The origin of a listening server on its own machine, such as `http://127.0.0.1:8080`.
 * @throws before it listens
 */
export function listeningAddress(server: Server): string {
  const bound = server.address();
  if (typeof bound !== 'object' || bound === null) throw new Error('the server is not listening yet: set PUBLIC_URL');
  const { address, family, port } = bound;
  if (address === '0.0.0.0') return `http://127.0.0.1:${port}`;
  if (address === '::' || address === '::1') return `http://localhost:${port}`;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
