import { SharedResult } from '../../src/webhooks/shared-result.js';

/** Questions that are answered when the test says so, with their number. */
function questions() {
  const open: { answer(): void; fail(): void }[] = [];
  let asked = 0;
  const shared = new SharedResult(() => {
    const number = ++asked;
    return new Promise<number>((resolve, reject) => {
      open.push({ answer: () => resolve(number), fail: () => reject(new Error(`question ${number}`)) });
    });
  });
  return { shared, open, asked: () => asked };
}

test('who asks while an answer is under way gets the next one, together with all who do', async () => {
  const { shared, open, asked } = questions();
  const first = shared.ask();
  const later = [shared.ask(), shared.ask()];
  expect(asked()).toBe(1);
  open[0]!.answer();
  await expect(first).resolves.toBe(1);
  expect(asked()).toBe(2);
  const latest = shared.ask();
  open[1]!.answer();
  await expect(Promise.all(later)).resolves.toEqual([2, 2]);
  open[2]!.answer();
  await expect(latest).resolves.toBe(3);
});

test('nothing is kept: who asks after an answer, asks again', async () => {
  const { shared, open } = questions();
  for (const number of [1, 2]) {
    const asked = shared.ask();
    open[number - 1]!.answer();
    await expect(asked).resolves.toBe(number);
  }
});

test('a failure is for those who asked for it, and the next question is asked all the same', async () => {
  const { shared, open } = questions();
  const first = expect(shared.ask()).rejects.toThrow('question 1');
  const later = [shared.ask(), shared.ask()];
  open[0]!.fail();
  await first;
  open[1]!.answer();
  await expect(Promise.all(later)).resolves.toEqual([2, 2]);
});
