import fc from 'fast-check';
import { evaluate } from '../../src/domain/policy/evaluate.js';
import { compileClause } from '../../src/domain/policy/language.js';
import { Steps } from '../../src/domain/steps.js';
import { truthForAll } from '../../src/audit/lint/lint-reach.js';
import { environment } from '../domain/policy/environment.js';
import { policies, requests, users } from '../domain/policy/generated.js';
import { isLong } from '../long.js';

/** Requests that are drawn. */
const runs = isLong ? 30_000 : 1_000;

/** Conditions, and each two of them joined and negated: what one leaves open, the other may hide. */
const conditions = policies.map((list) => {
  const texts = list.flatMap(({ condition = 'not a policy' }) => (condition === 'not a policy' ? [] : [condition]));
  const joined = texts.slice(1).map((text, index) => `(${texts[index]}) && (${text})`);
  return [...texts, ...joined.map((text) => `!(${text})`), ...joined.map((text) => `(${text}) == false`)];
});

test('what is said of a condition for all requests of an activity is so for each', () => {
  const said = { true: 0, false: 0, undefined: 0 };
  fc.assert(
    fc.property(requests, conditions, ({ parts: _parts, ...request }, texts) => {
      const { params: _params, ...activity } = request.activity;
      const hasResources = request.resources !== undefined;
      const value = (name: string) =>
        environment.namespaces.get(name)?.value(request, [], {
          now: 0,
          user: (userId) => users.find((one) => one.userId === userId),
        });
      for (const text of texts) {
        const condition = compileClause(text, 'condition', environment);
        const found = truthForAll(condition, { ...activity, hasResources }, new Steps());
        said[`${found}`]++;
        if (found === undefined) continue;
        const { truth } = evaluate(condition, { now: 0, value });
        expect([text, truth]).toEqual([text, found ? 'true' : expect.stringMatching(/^(false|not-applicable)$/)]);
      }
    }),
    { numRuns: runs },
  );
  for (const times of Object.values(said)) expect(times).toBeGreaterThan(runs / 30);
});
