import { CoordinatorError } from '../../src/domain/errors.js';
import {
  decisionSteps,
  mainThreadSteps,
  Meter,
  MeterSpent,
  OutOfSteps,
  readingSteps,
  Steps,
  weights,
} from '../../src/domain/steps.js';

describe('Steps', () => {
  it('counts work by its weight', () => {
    const steps = new Steps(100_000);
    steps.take('curveOperation', 2);
    steps.take('byteRead', 3);
    expect(steps.spent).toBe(2 * weights.curveOperation + 3 * weights.byteRead);
    expect(steps.left).toBe(100_000 - steps.spent);
    expect(steps.isSpent).toBe(false);
  });

  it('has 50 ms of the main thread unless told otherwise, and stays used up', () => {
    const steps = new Steps();
    steps.take('policyNode', mainThreadSteps);
    expect(() => steps.take('policyNode')).toThrow(OutOfSteps);
    expect(() => steps.take('policyNode')).toThrow(/more than 500000 steps of work .*policyNode/);
    expect([steps.isSpent, steps.left]).toEqual([true, 0]);
  });

  it('is a refusal of the caller where nobody turns it into an outcome', () => {
    expect(new OutOfSteps(10, 'byteRead')).toBeInstanceOf(CoordinatorError);
    expect(new OutOfSteps(10, 'byteRead').code).toBe('INVALID_ARGUMENT');
  });

  it('gives a part with a limit of its own, which takes from the whole', () => {
    const whole = new Steps(100);
    const part = whole.upTo(30);
    part.take('policyNode', 30);
    expect(() => part.take('policyNode')).toThrow(/more than 30 steps/);
    expect([whole.spent, whole.left, part.left]).toEqual([31, 69, 0]);
    const other = whole.upTo(90);
    expect(other.left).toBe(69);
    expect(() => other.take('policyNode', 70)).toThrow(/more than 100 steps/);
    expect([whole.isSpent, other.isSpent]).toEqual([true, true]);
  });

  it('adds what was spent elsewhere', () => {
    const whole = new Steps(10);
    whole.upTo(5).note(20);
    expect(whole.isSpent).toBe(true);
  });

  it('has weights whose sums are the same in any order', () => {
    for (const weight of Object.values(weights)) expect(Number.isInteger(weight * 2 ** 20)).toBe(true);
  });
});

describe('Meter', () => {
  it('has as much for the first decision as one may take, whatever was read', () => {
    const meter = new Meter();
    expect(() => meter.reading.take('policyNode', 10 * readingSteps)).toThrow(OutOfSteps);
    meter.reading.note(readingSteps);
    const other = new Meter();
    other.reading.note(readingSteps);
    const decision = other.decision();
    decision.take('policyNode', decisionSteps);
    expect([other.spent, other.left]).toEqual([mainThreadSteps, 0]);
    // Its own end is an outcome, and the same as when it is decided again from history.
    expect(() => decision.take('policyNode')).toThrow(/more than 480000 steps/);
    expect(other.isSpent).toBe(false);
  });

  it('has what is left for another, whose end is no outcome', () => {
    const meter = new Meter();
    meter.decision().take('policyNode', 300_000);
    const again = meter.decision();
    again.take('policyNode', 200_000);
    expect(again.left).toBe(280_000);
    expect(() => again.upTo(100).take('policyNode')).toThrow(MeterSpent);
    expect(new MeterSpent()).not.toBeInstanceOf(CoordinatorError);
  });

  it('does not count twice what it has refused', () => {
    const meter = new Meter();
    for (let tried = 0; tried < 100; tried += 1) {
      expect(() => meter.take('policyNode', mainThreadSteps + 1)).toThrow(OutOfSteps);
    }
    expect(meter.spent).toBe(mainThreadSteps + 1);
    expect(decisionSteps).toBe(480_000);
  });
});
