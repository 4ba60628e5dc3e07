import type { FastifyRequest } from 'fastify';
import { bodyBrokeOff, bodyTooLarge } from './errors.filter.js';

/** Largest request body, in bytes. */
export const maxBody = 2 * 1024 * 1024;

/**
 * The bytes of a body. Each part is put in its place as it comes: putting a large one together at its end would keep the
 * thread, for each of those that end together.
 */
export function receiveBody(
  { headers }: Pick<FastifyRequest, 'headers'>,
  payload: NodeJS.ReadableStream,
  done: (error: Error | null, body?: Buffer) => void,
): void {
  const length = headers['content-length'];
  const announced = length === undefined ? undefined : Number(length);
  if (announced !== undefined && announced > maxBody) return done(bodyTooLarge());
  const body = Buffer.allocUnsafe(announced ?? 0);
  const parts: Buffer[] = [];
  let received = 0;
  const take = (part: Buffer): void => {
    const before = received;
    received += part.length;
    if (received > maxBody) end(bodyTooLarge());
    else if (announced === undefined) parts.push(part);
    else part.copy(body, before);
  };
  const end = (error?: Error): void => {
    payload.removeListener('data', take).removeListener('end', ended).removeListener('error', ended);
    if (error) return done(error);
    done(null, announced === undefined ? Buffer.concat(parts) : body);
  };
  const ended = (error?: unknown): void => {
    // What was not received would be memory of others.
    const isWhole = error === undefined && (announced === undefined || received === announced);
    end(isWhole ? undefined : bodyBrokeOff());
  };
  payload.on('data', take).on('end', ended).on('error', ended).resume();
}
