import { FairQueue, organizationPath } from '../../src/fairness/fair-queue.js';
import { lanePath, openTo, roomOfEndpoint } from '../../src/webhooks/shares.js';

interface Endpoint {
  readonly endpointId: string;
  readonly path: readonly string[];
  readonly isProven: boolean;
}

const endpoints = (count: number, isProven: boolean, organizationId: string, parentId?: string): Endpoint[] =>
  Array.from({ length: count }, (_, at) => ({
    endpointId: `${organizationId} ${at}`,
    path: organizationPath(organizationId, parentId),
    isProven,
  }));

type InFlight = Endpoint & { readonly busy: number };

/** What gets a place beside what is in flight, when all endpoints have much to be told and none answers. */
function begun(all: readonly Endpoint[], inFlight: readonly InFlight[] = []): readonly InFlight[] {
  const waiting = new FairQueue<Endpoint>();
  for (const one of all) {
    for (let time = 0; time < roomOfEndpoint({ ...one, settled: 0 }); time++) waiting.push(lanePath(one), one);
  }
  const begun: InFlight[] = [];
  const next = () => waiting.shift(openTo([...inFlight, ...begun]));
  for (let one = next(); one; one = next()) begun.push({ ...one, busy: 1 });
  return begun;
}

/** How many of each organization those are. */
function started(all: readonly Endpoint[], inFlight: readonly InFlight[] = []): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { path } of begun(all, inFlight)) {
    const name = path.at(-1) === 'own' ? path[1]! : path[3]!;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

const sum = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((one, other) => one + other, 0);
const children = (count: number, each: number, isProven: boolean, parentId = 'parent') =>
  Array.from({ length: count }, (_, at) => endpoints(each, isProven, `child ${at} of ${parentId}`, parentId)).flat();

describe('places for webhook deliveries', () => {
  it('of a slow endpoint are one, of a good one eight', () => {
    expect(started([...endpoints(1, false, 'slow'), ...endpoints(1, true, 'good')])).toEqual({ slow: 1, good: 8 });
  });

  it('of slow endpoints of one sub-organization are four', () => {
    expect(started(endpoints(20, false, 'child', 'parent'))).toEqual({ child: 4 });
  });

  it('of slow endpoints of all sub-organizations of one parent are 24', () => {
    expect(sum(started(children(20, 20, false)))).toBe(24);
  });

  it('of slow endpoints of a parent’s own are 16, and of all together 32', () => {
    expect(started(endpoints(40, false, 'parent'))).toEqual({ parent: 16 });
    expect(sum(started([1, 2, 3].flatMap((one) => endpoints(40, false, `parent ${one}`))))).toBe(32);
  });

  it('of one sub-organization are eight, also where all of its endpoints answer soon, and of a parent’s own 32', () => {
    expect(started(endpoints(10, true, 'child', 'parent'))).toEqual({ child: 8 });
    expect(started(endpoints(10, true, 'parent'))).toEqual({ parent: 32 });
  });

  it('of sub-organizations of one parent are half, also where all of them answer soon', () => {
    expect(sum(started(children(40, 20, true)))).toBe(64);
  });

  it('are 128 in all', () => {
    expect(sum(started(['one', 'other', 'third'].flatMap((parent) => children(40, 20, true, parent))))).toBe(128);
  });

  it('are left for the first of a sibling: beside the first of each, sub-organizations of one parent have 32', () => {
    const others = begun(children(8, 10, true));
    expect(others).toHaveLength(8 + 32);
    expect(started(endpoints(10, true, 'sibling', 'parent'), others)).toEqual({ sibling: 1 });
  });

  it('are left for the first of another parent: beside the first of each, all have 96', () => {
    const others = begun(['one', 'two', 'three', 'four'].flatMap((parent) => endpoints(10, true, parent)));
    expect(others).toHaveLength(4 + 96);
    expect(started(endpoints(10, true, 'parent'), others)).toEqual({ parent: 1 });
  });

  it('are left for a new endpoint, however many others have turned slow with all that they had', () => {
    const slow = begun(children(8, 10, true)).map((one) => ({ ...one, isProven: false }));
    expect(started(endpoints(1, false, 'other'), slow)).toEqual({ other: 1 });
    expect(started(endpoints(1, true, 'sibling', 'parent'), slow)).toEqual({ sibling: 1 });
    const own = begun(['one', 'two'].flatMap((parent) => endpoints(10, true, parent)));
    const [one] = own.map((each) => ({ ...each, isProven: false }));
    expect(started(endpoints(1, false, 'other'), [{ ...one!, busy: 32 }])).toEqual({ other: 1 });
  });

  it('takes so many tests to give, however many wait for a share that is used up', () => {
    const slow = begun(children(6, 10, false));
    const good = begun(children(8, 10, true, 'other parent'));
    const testsFor = (count: number, isProven: boolean, parentId?: string) => {
      const waiting = new FairQueue<Endpoint>();
      for (const one of children(count, 1, isProven, parentId)) waiting.push(lanePath(one), one);
      const isOpen = openTo([...slow, ...good]);
      let tests = 0;
      const found = waiting.shift((path) => {
        tests += 1;
        return isOpen(path);
      });
      return { found: found?.endpointId, tests };
    };
    expect(slow).toHaveLength(24);
    expect(testsFor(3_000, false)).toEqual({ found: undefined, tests: 4 });
    expect(testsFor(6, false).found).toBeUndefined();
    // Those that have something in flight are asked one by one.
    const { found, tests } = testsFor(3_000, true, 'other parent');
    expect(found).toBe('child 8 of other parent 0');
    expect(tests).toBe(4 + 8 + 2);
  });

  it('are left for a good endpoint, whatever strangers do', () => {
    const strangers = [...children(50, 20, false), ...children(50, 20, true)];
    expect(started([...strangers, ...endpoints(1, true, 'parent')])).toMatchObject({ parent: 8 });
  });
});

test('an endpoint whose 256 outcomes wait to be recorded gets nothing more', () => {
  expect(roomOfEndpoint({ isProven: true, settled: 255 })).toBe(8);
  expect(roomOfEndpoint({ isProven: true, settled: 256 })).toBe(0);
});
