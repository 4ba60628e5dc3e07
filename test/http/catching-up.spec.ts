import { CatchingUp } from '../../src/http/catching-up.js';

test('read models that start beside others who write all the time have caught up with what there was', () => {
  const one = new CatchingUp();
  const checks = [
    [100n, 10n],
    [140n, 90n],
    // More than there was at the first check; and each time, somebody has written since.
    [180n, 110n],
    [220n, 190n],
    [260n, 230n],
  ] as const;
  expect(checks.map(([head, reached], index) => one.isBehind(head, reached, index * 2_000))).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
});

test('read models that stay behind for more than five seconds are behind, until they have reached it', () => {
  const one = new CatchingUp();
  expect(one.isBehind(100n, 100n, 0)).toBe(false);
  const reached = [100n, 100n, 100n, 100n, 190n, 200n];
  expect(reached.map((position, index) => one.isBehind(200n, position, 2_000 * (index + 1)))).toEqual([
    false,
    false,
    false,
    true,
    true,
    false,
  ]);
});
