import { decodingSteps, Steps } from '../../src/domain/steps.js';
import { checkDepth } from '../../src/transactions/refusals.js';

test.each([
  ['lists', '[', ']'],
  ['objects', '{"a":', '}'],
])(
  '%s that are nested without end are refused before they are parsed, and none that text only seems to nest',
  (_what, open, close) => {
    const check = (text: string) => checkDepth(text, new Steps(decodingSteps));
    const nested = (depth: number) => `${open.repeat(depth)}1${close.repeat(depth)}`;
    expect(check(nested(20_000))).toBeUndefined();
    expect(check(nested(20_001))).toBe('is nested deeper than 20000 levels');
    expect(check(open.repeat(20_001))).toBe('is nested deeper than 20000 levels');
    expect(check(JSON.stringify(open.repeat(30_000)))).toBeUndefined();
  },
);
