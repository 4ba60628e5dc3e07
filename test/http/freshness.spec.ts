import type { FastifyReply, FastifyRequest } from 'fastify';
import { CoordinatorError } from '../../src/domain/errors.js';
import { Freshness } from '../../src/http/freshness.js';

function replying() {
  const headers: Record<string, unknown> = {};
  const reply = { header: (name: string, value: unknown) => ((headers[name] = value), reply) };
  return { reply: reply as unknown as FastifyReply, headers };
}

const asking = (position?: string | string[]) =>
  ({ headers: position === undefined ? {} : { 'x-min-position': position } }) as unknown as FastifyRequest;

test('a question waits for the last answer of this instance, or for what it asks, whichever is later', () => {
  const freshness = new Freshness();
  expect(freshness.wanted(asking())).toBe(-1n);
  freshness.begin(3n);
  expect(freshness.wanted(asking())).toBe(3n);
  const { reply, headers } = replying();
  freshness.answered(7n, reply);
  expect(headers).toEqual({ 'x-position': '7' });
  expect(freshness.wanted(asking())).toBe(7n);
  expect(freshness.wanted(asking('6'))).toBe(7n);
  expect(freshness.wanted(asking('8'))).toBe(8n);
  // What one asks for is no answer that others have been given.
  expect(freshness.wanted(asking())).toBe(7n);
});

test('an answer that overtook another does not take it back', () => {
  const freshness = new Freshness();
  freshness.answered(7n, replying().reply);
  const { reply, headers } = replying();
  freshness.answered(5n, reply);
  freshness.begin(2n);
  expect(headers).toEqual({ 'x-position': '5' });
  expect(freshness.wanted(asking())).toBe(7n);
});

test('positions have no limit of doubles', () => {
  const freshness = new Freshness();
  expect(freshness.wanted(asking('18446744073709551615'))).toBe(18_446_744_073_709_551_615n);
});

test.each(['', 'x', '-1', '+1', '1.0', '0x1', ' 1', '١', '1'.repeat(21)])('`%s` is refused by its name', (position) => {
  expect(() => new Freshness().wanted(asking(position))).toThrow(CoordinatorError);
  expect(() => new Freshness().wanted(asking(position))).toThrow('X-Min-Position: must be the X-Position');
});

test('a header sent twice is refused', () => {
  expect(() => new Freshness().wanted(asking(['1', '2']))).toThrow(CoordinatorError);
});
