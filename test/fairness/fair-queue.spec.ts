import { stat } from 'node:fs';
import fc from 'fast-check';
import { callerPath, FairQueue, organizationPath, type QueuePath } from '../../src/fairness/fair-queue.js';
import { largeBody, Turns } from '../../src/fairness/turns.js';
import { pageWriter } from '../../src/read-models/pages.js';

const key = fc.constantFrom('a', 'b', 'c', 'd');
const path = fc.oneof(fc.tuple(key), fc.tuple(key, key), fc.tuple(key, key, key));
const step = fc.option(path, { nil: undefined, freq: 2 });

/** Puts in and takes out, and tells of each that was taken how it stood with the others. */
function play(steps: readonly (QueuePath | undefined)[]) {
  const queue = new FairQueue<{ readonly path: QueuePath; readonly number: number }>();
  const taken: { readonly path: QueuePath; readonly number: number }[] = [];
  const put: typeof taken = [];
  const take = () => {
    const item = queue.shift();
    if (item) taken.push(item);
  };
  for (const [number, one] of steps.entries()) {
    if (!one) take();
    else {
      put.push({ path: one, number });
      queue.push(one, { path: one, number });
    }
  }
  const left = [...queue];
  while (queue.size > 0) take();
  return { put, taken, left };
}

describe('a fair queue', () => {
  test('loses nothing, makes nothing, and keeps the order of what has the same path', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { put, taken } = play(steps);
        expect(taken.toSorted((one, other) => one.number - other.number)).toEqual(put);
        for (const { path: of } of put) {
          const same = taken.filter((item) => item.path.join() === of.join()).map(({ number }) => number);
          expect(same).toEqual(same.toSorted((one, other) => one - other));
        }
      }),
    );
  });

  test('serves no key twice while another of its level waits', () => {
    fc.assert(
      fc.property(fc.array(path, { minLength: 1, maxLength: 60 }), (paths) => {
        const queue = new FairQueue<QueuePath>();
        for (const one of paths) queue.push(one, one);
        const waiting = [...paths];
        const order: QueuePath[] = [];
        for (let item = queue.shift(); item; item = queue.shift()) {
          // At each level: between two turns of this key, every other key that waits all the time has had one.
          for (let depth = 0; depth < item.length; depth++) {
            const level = item.slice(0, depth).join();
            const at = (one: QueuePath) =>
              one.length > depth && one.slice(0, depth).join() === level ? one[depth] : undefined;
            const turns = order.filter((one) => at(one) !== undefined).map(at);
            const last = turns.lastIndexOf(item[depth]);
            if (last < 0) continue;
            const others = new Set(waiting.map(at).filter((one) => one !== undefined && one !== item[depth]));
            for (const other of others) expect(turns.slice(last + 1)).toContain(other);
          }
          order.push(item);
          waiting.splice(
            waiting.findIndex((one) => one.join() === item.join()),
            1,
          );
        }
        expect(order).toHaveLength(paths.length);
      }),
    );
  });

  test('whoever comes late waits for one turn of each that was there', () => {
    fc.assert(
      fc.property(fc.array(key, { minLength: 1, maxLength: 50 }), fc.nat(20), (keys, before) => {
        const queue = new FairQueue<string>();
        for (const one of keys) queue.push([one], one);
        for (let count = 0; count < before; count++) queue.shift();
        const there = new Set(queue).size;
        queue.push(['late'], 'late');
        let turns = 0;
        // The others go on putting in all the time.
        for (let item = queue.shift(); item !== 'late'; item = queue.shift()) {
          turns += 1;
          queue.push([item!], item!);
        }
        expect(turns).toBeLessThanOrEqual(there);
      }),
    );
  });

  test('a parent has as many turns as all of its sub-organizations together, and strangers no more than both', () => {
    const queue = new FairQueue<string>();
    for (let number = 0; number < 100; number++) {
      queue.push(organizationPath(`child ${number}`, 'parent'), 'child');
      queue.push(organizationPath('parent'), 'parent');
      queue.push(callerPath(`address ${number}`), 'caller');
    }
    const first = Array.from({ length: 40 }, () => queue.shift());
    const count = (who: string) => first.filter((one) => one === who).length;
    expect([count('caller'), count('parent'), count('child')]).toEqual([20, 10, 10]);
  });
});

describe('turns', () => {
  function steered() {
    const clock = { ms: 0 };
    const later: (() => void)[] = [];
    const turns = new Turns({ sliceMs: 20, now: () => clock.ms, later: (call) => void later.push(call) });
    /** The next turn of the event loop. */
    const loop = async () => {
      for (const call of later.splice(0)) call();
      await Promise.resolve();
    };
    return { clock, turns, loop };
  }

  test('nobody waits as long as the slice lasts, and everybody once it is used', async () => {
    const { clock, turns, loop } = steered();
    expect(turns.next(['a'])).toBeUndefined();
    clock.ms = 19;
    expect(turns.next(['b'])).toBeUndefined();
    await loop();
    await loop();
    clock.ms = 30;
    expect(turns.next(['a'])).toBeUndefined();
    clock.ms = 50;
    expect(turns.next(['b'])).toBeInstanceOf(Promise);
    expect(turns.size).toBe(1);
  });

  test('a used slice gives way, and then those that wait take turns, the latest arrivals too', async () => {
    const { clock, turns, loop } = steered();
    const order: string[] = [];
    const work = async (who: string, count: number) => {
      for (let number = 0; number < count; number++) {
        await turns.next([who]);
        order.push(who);
        clock.ms += 20;
      }
    };
    const all = [work('a', 4), work('b', 2), work('c', 1)];
    for (let count = 0; count < 9; count++) await loop();
    await Promise.all(all);
    expect(order).toEqual(['a', 'b', 'c', 'a', 'b', 'a', 'a']);
  });

  test('whoever takes a whole turn shares it with nobody', async () => {
    const { turns, loop } = steered();
    const order: string[] = [];
    const work = async (who: string, alone: boolean) => {
      const turn = turns.next([who], { alone });
      if (turn) await turn;
      order.push(who);
    };
    const all = [work('small', false), work('large', true), work('late', false), work('larger', true)];
    await loop();
    expect(order).toEqual(['small']);
    for (const there of [
      ['small', 'large'],
      ['small', 'large', 'late'],
      ['small', 'large', 'late', 'larger'],
    ]) {
      await loop();
      expect(order).toEqual(there);
    }
    await Promise.all(all);
    // Begun by somebody who needs all of it, it is not for others either.
    await loop();
    expect(turns.next(['large'], { alone: true })).toBeUndefined();
    expect(turns.next(['small'])).toBeDefined();
  });

  test('what a socket has brought is not followed by another large piece of work before timers have had their turn', async () => {
    const turns = new Turns();
    const order: string[] = [];
    await new Promise<void>((read) => stat('.', () => read()));
    // As after the arrival of a body: in the part of the event loop that serves sockets and files.
    await new Promise<void>((done) =>
      stat('.', () => {
        setTimeout(() => order.push('timer'), 1);
        expect(turns.next(['a'], { alone: true })).toBeUndefined();
        void turns.next(['b'], { alone: true })!.then(() => {
          order.push('second');
          done();
        });
        const ends = performance.now() + 5;
        while (performance.now() < ends) order.length = 0;
      }),
    );
    expect(order).toEqual(['timer', 'second']);
  });

  test('of several lists that are asked for at once, one large element is read in a turn', async () => {
    const { clock, turns, loop } = steered();
    const read: number[] = [];
    let turn = -1;
    function* elements() {
      for (let count = 0; count < 3; count++) {
        read.push(turn);
        clock.ms += 25;
        yield { text: 'x'.repeat(largeBody) };
      }
    }
    const list = async (who: string) => {
      const own = turns.next([who]);
      if (own) await own;
      const write = pageWriter({
        room: () => undefined,
        turn: (bytes) => turns.next([who], { alone: bytes > largeBody }),
      });
      return write({ inTurn: elements(), isBackward: false });
    };
    const lists = ['a', 'b', 'c', 'd', 'e', 'f'].map(list);
    for (turn = 0; turn < 60; turn++) {
      await loop();
      await new Promise(setImmediate);
    }
    await Promise.all(lists);
    expect(read).toHaveLength(18);
    expect(new Set(read).size).toBe(18);
  });
});
