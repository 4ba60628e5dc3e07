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

  it('is not trusted once set back, until it has caught up', () => {
    const { clock, time, pass } = clocks();
    time.wall -= 7_200_000;
    expect(clock.jumped()).toBe(-7_200_000);
    pass(3_600_000);
    expect(clock.jumped()).toBe(-7_200_000);
    time.wall += 7_200_000;
    expect(clock.jumped()).toBe(0);
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
