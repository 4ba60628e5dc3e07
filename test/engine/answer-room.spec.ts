import { answerRoom } from '../../src/engine/answer-room.js';
import { organizationPath, strangersPath, type QueuePath } from '../../src/fairness/fair-queue.js';

/** Who has got in of those who asked, and how to leave. */
class Asked {
  private readonly leave: (() => void)[] = [];
  private readonly all: Promise<unknown>[] = [];

  constructor(path: QueuePath, count: number) {
    for (let one = 0; one < count; one += 1) {
      this.all.push(answerRoom.enter(path).then((gone) => this.leave.push(gone)));
    }
  }

  get inside(): number {
    return this.leave.length;
  }

  /** All leave, those too who get in by that. */
  async end(): Promise<void> {
    for (let gone = 0; gone < this.all.length; gone += 1) {
      while (this.leave.length === gone) await settled();
      this.leave[gone]!();
    }
    await Promise.all(this.all);
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('large answers that a stranger does not read leave places to its siblings and its parent', async () => {
  const greedy = new Asked(organizationPath('greedy', 'parent'), 8);
  await settled();
  expect(greedy.inside).toBe(2);
  const sibling = new Asked(organizationPath('sibling', 'parent'), 1);
  const others = [
    new Asked(organizationPath('third', 'parent'), 3),
    new Asked(strangersPath('parent', '192.0.2.1'), 3),
    new Asked(organizationPath('fourth', 'parent'), 1),
  ];
  const parent = new Asked(organizationPath('parent'), 5);
  const another = new Asked(organizationPath('another'), 9);
  await settled();
  expect(sibling.inside).toBe(1);
  // Strangers have four together, by whichever way they come, and the family eight.
  expect(others.reduce((sum, { inside }) => sum + inside, 0)).toBe(1);
  expect(parent.inside).toBe(4);
  expect(another.inside).toBe(8);
  await Promise.all([greedy, sibling, ...others, parent, another].map((asked) => asked.end()));
  const afterwards = new Asked(organizationPath('greedy', 'parent'), 2);
  await settled();
  expect(afterwards.inside).toBe(2);
  await afterwards.end();
});
