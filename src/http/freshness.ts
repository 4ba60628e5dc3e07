import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { invalidField } from '../domain/errors.js';

/**
 * Read-your-writes, paid by the reader: a submit responds as soon as it is durable and names its position; a query
 * waits until the read models have passed the last position that this instance has returned, or a later one named by
 * the caller.
 */
@Injectable()
export class Freshness {
  private answeredUpTo = -1n;

  /** The last position that this instance has returned, or that was recorded before. */
  private get latest(): bigint {
    return this.answeredUpTo;
  }

  /** What was recorded before this instance's first response. */
  begin(position: bigint): void {
    if (position > this.latest) this.answeredUpTo = position;
  }

  /** Notes the position of a response, and sends it to the caller in `X-Position`. */
  answered(position: bigint, reply: FastifyReply): void {
    if (position > this.latest) this.answeredUpTo = position;
    void reply.header('x-position', String(position));
  }

  /**
   * The position that a query must have seen.
   * @throws {CoordinatorError} INVALID_ARGUMENT if `X-Min-Position` is not a decimal number
   */
  wanted(request: FastifyRequest): bigint {
    const header = request.headers['x-min-position'];
    if (header === undefined) return this.latest;
    if (typeof header !== 'string' || !/^\d{1,20}$/.test(header)) {
      throw invalidField('X-Min-Position', 'must be the X-Position of an earlier response, a decimal number');
    }
    const requested = BigInt(header);
    return requested > this.latest ? requested : this.latest;
  }
}
