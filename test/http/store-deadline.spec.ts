import { inTime } from '../../src/http/store-deadline.js';

/** A request during which a remote store stops responding. */

const never = () => new Promise<never>(() => undefined);
const stalled = { isStalled: () => true };

test('is refused as unavailable once it has taken too long', async () => {
  const begun = performance.now();
  await expect(inTime(never(), stalled, 100)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  expect(performance.now() - begun).toBeGreaterThan(90);
});

test('is waited for as long as the store responds', async () => {
  let isStalled = false;
  const outcome = inTime(never(), { isStalled: () => isStalled }, 10);
  const first = await Promise.race([
    outcome.catch(() => 'refused'),
    new Promise((resolve) => setTimeout(resolve, 400, 'waits')),
  ]);
  expect(first).toBe('waits');
  isStalled = true;
  await expect(outcome).rejects.toMatchObject({ code: 'UNAVAILABLE' });
});

test('has its outcome where there is one', async () => {
  await expect(inTime(Promise.resolve('done'), stalled, 10)).resolves.toBe('done');
  await expect(inTime(Promise.reject(new Error('refused')), stalled, 10)).rejects.toThrow('refused');
});
