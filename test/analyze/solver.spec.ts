import { SolverProcess } from '../../packages/analyze/src/solver.js';

const solver = new SolverProcess(60_000);

afterAll(() => solver.end());

it('the solver reads a script that is longer than its stack, and another after it', async () => {
  const long = `;${'x'.repeat(21 * 1024 * 1024)}\n`;
  for (const [number, before] of [long, ''].entries()) {
    const script = `${before}(declare-const a Int)(assert (= a ${number}))(check-sat)(get-value (a))`;
    expect(await solver.run(script)).toBe(`sat\n((a ${number}))\n`);
  }
});
