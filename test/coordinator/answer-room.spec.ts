import { responseCapacity } from '../../src/queries/response-capacity.js';
import type { Slot } from '../../src/fairness/fair-slots.js';
import { organizationPath, strangersPath, type QueuePath } from '../../src/fairness/fair-queue.js';

/** Who has got in of those who asked, and which of them were cut off. */
class Asked {
  readonly slots: Slot[] = [];
  cutOff = 0;
  refused = 0;
  private readonly all: Promise<unknown>[] = [];

  constructor(path: QueuePath, count: number) {
    for (let one = 0; one < count; one += 1) {
      this.all.push(
        responseCapacity.enter(path).then(
          (slot) => this.slots.push(slot),
          () => (this.refused += 1),
        ),
      );
    }
  }

  /** They are read slowly from now on. */
  slow(): void {
    for (const slot of this.slots) slot.offer(() => (this.cutOff += 1));
  }

  /** All leave, those too who get in by that. */
  async end(): Promise<void> {
    for (let left = 0; left < this.all.length - this.refused; left += 1) {
      while (this.slots.length === left) await settled();
      this.slots[left]!.leave();
    }
    await Promise.all(this.all);
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('large answers that one does not read make room for those of others, of whoever has most', async () => {
  const greedy = new Asked(organizationPath('greedy', 'parent'), 12);
  const accomplice = new Asked(organizationPath('accomplice', 'parent'), 8);
  await settled();
  expect([greedy.slots.length, accomplice.slots.length]).toEqual([12, 4]);
  const sibling = new Asked(organizationPath('sibling', 'parent'), 1);
  const others = [
    new Asked(strangersPath('parent', '192.0.2.1'), 1),
    new Asked(organizationPath('parent'), 2),
    new Asked(organizationPath('another'), 3),
  ];
  await settled();
  // None is slow yet.
  expect([sibling, ...others].map(({ slots }) => slots.length)).toEqual([0, 0, 0, 0]);
  greedy.slow();
  await settled();
  expect([sibling, ...others].map(({ slots }) => slots.length)).toEqual([1, 1, 2, 3]);
  expect([greedy.cutOff, greedy.slots.length, accomplice.slots.length]).toEqual([8, 12, 5]);
  await Promise.all([greedy, accomplice, sibling, ...others].map((asked) => asked.end()));
  const afterwards = new Asked(organizationPath('greedy', 'parent'), 16);
  await settled();
  expect(afterwards.slots.length).toBe(16);
  await afterwards.end();
});

test('of those that wait, the latest of whoever has most is refused', async () => {
  const greedy = new Asked(organizationPath('greedy', 'parent'), 300);
  await settled();
  expect([greedy.slots.length, greedy.refused]).toEqual([16, 44]);
  const sibling = new Asked(organizationPath('sibling', 'parent'), 2);
  await settled();
  expect([greedy.refused, sibling.refused]).toEqual([46, 0]);
  for (const slot of greedy.slots.slice(0, 2)) slot.leave();
  await settled();
  expect(sibling.slots.length).toBe(1);
  await Promise.all([greedy.end(), sibling.end()]);
});
