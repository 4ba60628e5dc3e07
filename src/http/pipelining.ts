import type { RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests that one connection may have under way; no client pipelines more. */
const mostUnderWay = 8;

/**
 * Closes a connection with too many requests under way: everything that one read brings is handled in one turn of the event
 * loop. When a connection closes, Node closes only the response that it was sending; those queued behind it are closed
 * here, so that what they hold is freed.
 */
export function limitPipelining(handle: RequestListener): RequestListener {
  const connections = new WeakMap<Socket, Set<ServerResponse>>();
  const follow = (socket: Socket): Set<ServerResponse> => {
    const underWay = new Set<ServerResponse>();
    connections.set(socket, underWay);
    socket.once('close', () => process.nextTick(() => underWay.forEach(close)));
    return underWay;
  };
  return (request, response) => {
    const { socket } = request;
    if (socket.destroyed) return;
    const underWay = connections.get(socket) ?? follow(socket);
    // Looked at here, because a response has many listeners already.
    for (const earlier of underWay) if (earlier.closed) underWay.delete(earlier);
    if (underWay.size === mostUnderWay) return void socket.destroy();
    underWay.add(response);
    handle(request, response);
  };
}

function close(response: ServerResponse): void {
  if (response.closed) return;
  response.destroy();
  response.emit('close');
}
