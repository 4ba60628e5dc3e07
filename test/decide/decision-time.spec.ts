import { SteadyClock } from '../../src/app/world.js';

/** Two clocks that are steered apart. */
function clocks() {
  const time = { wall: 1_000_000, monotonic: 0 };
  const clock = new SteadyClock(
    () => time.wall,
    () => time.monotonic,
  );
  const pass = (ms: number) => {
    time.wall += ms;
    time.monotonic += ms;
  };
  return { clock, time, pass };
}

describe('a clock that is held against a monotonic one', () => {
  it('follows drift, however far it adds up', () => {
    const { clock, time, pass } = clocks();
    for (let hour = 0; hour < 100; hour += 1) {
      pass(3_600_000);
      time.wall -= 400;
      expect(clock.jumped()).toBe(0);
    }
  });

  it('continues from the last trusted time once set back, until the clock has caught up', () => {
    const { clock, time, pass } = clocks();
    const before = clock.now();
    time.wall -= 7_200_000;
    expect([clock.jumped(), clock.now()]).toEqual([0, before]);
    expect(clock.state().lead).toBe(7_200_000);
    pass(3_600_000);
    // A hundredth slower than the monotonic clock, so that it meets the system clock some day.
    expect([clock.jumped(), clock.now()]).toEqual([0, before + 3_564_000]);
    time.wall += 7_200_000;
    expect(clock.jumped()).toBe(0);
    expect(clock.now()).toBe(time.wall);
    expect(clock.state().lead).toBe(0);
  });

  it('never runs backwards, however its clock is set', () => {
    const { clock, time, pass } = clocks();
    let last = clock.now();
    for (const step of [-1, -4_000, -6_000, 3_000, -1_800_000, 900_000, -5_000, 7_200_000, -7_200_000, -3_600_000]) {
      time.wall += step;
      for (const ms of [0, 1, 1_000, 59_000, 61_000]) {
        pass(ms);
        const now = clock.now();
        expect(now).toBeGreaterThanOrEqual(last);
        expect(Number.isInteger(now)).toBe(true);
        last = now;
      }
    }
  });

  it('adopts a step ahead of at most 30 minutes at once', () => {
    const { clock, time, pass } = clocks();
    time.wall += 1_800_000;
    expect([clock.jumped(), clock.now()]).toEqual([0, time.wall]);
    expect(clock.state().adopted).toEqual({ count: 1, last: 1_800_000 });
    pass(1_000);
    time.wall += 1_800_001;
    expect(clock.jumped()).toBe(1_800_001);
    expect(clock.now()).toBe(time.wall - 1_800_001);
    expect(clock.latest()).toBe(time.wall);
    expect(clock.state().untrusted).toBe(1_800_001);
  });

  it('continues from what was recorded up to 30 minutes ahead, whichever streams have it', () => {
    const { clock, time, pass } = clocks();
    const start = time.wall;
    expect(clock.follow(start + 1_200_000, 'one')).toBe(true);
    expect(clock.now()).toBe(start + 1_200_000);
    // Not 30 minutes from there: streams must not pull it ahead step by step.
    expect(clock.follow(start + 1_800_001, 'two')).toBe(false);
    expect([...clock.state().organizationsAhead]).toEqual([['two', start + 1_800_001]]);
    pass(600_000);
    expect(clock.now()).toBe(start + 1_200_000 + 594_000);
    expect(clock.state().lead).toBe(1_194_000);
    // Its last event is near enough by now.
    expect(clock.state().organizationsAhead.size).toBe(0);
    time.wall += 1_194_000;
    expect(clock.now()).toBe(start + 1_200_000 + 594_000);
    expect(clock.state().lead).toBe(0);
  });

  it('is trusted again after it was set ahead and has run steadily for a minute', () => {
    const { clock, time, pass } = clocks();
    time.wall += 7_200_000;
    expect(clock.jumped()).toBe(7_200_000);
    pass(30_000);
    time.wall += 60_000;
    expect(clock.jumped()).toBe(7_260_000);
    pass(59_999);
    expect(clock.jumped()).toBe(7_260_000);
    pass(1);
    expect(clock.jumped()).toBe(0);
    expect(clock.now()).toBe(time.wall);
  });
});
