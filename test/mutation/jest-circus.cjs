const { mkdirSync, readFileSync, writeFileSync } = require('node:fs');
const { default: circus } = require('jest-circus/runner');

const file = 'coverage/mutation/titles.json';

/** Titles of the tests by spec file, as the run without a mutant wrote them. */
function readTitles() {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return {};
  }
}

/**
 * The runner of jest, which would load every spec for every mutant: this one leaves out those without a test that covers the
 * mutant, and those after a test that has killed it.
 */
module.exports = async function run(globalConfig, config, environment, runtime, path, ...rest) {
  const { __STRYKER_ACTIVE_MUTANT__: mutant } = process.env;
  const { testNamePattern } = globalConfig;
  const known = readTitles()[path];
  const isKilled = mutant !== undefined && globalThis.__stryker__?.killedMutant === mutant;
  const covers = (title) => !testNamePattern || new RegExp(testNamePattern, 'i').test(title);
  // jest takes a spec without any test for an error.
  const one = { title: path, fullName: known?.titles[0], ancestorTitles: [], failureMessages: [], failureDetails: [] };
  if (known && (isKilled || !known.titles.some(covers))) {
    return { ...known.empty, testResults: [{ ...one, status: 'pending' }] };
  }
  let result;
  try {
    result = await circus(globalConfig, config, environment, runtime, path, ...rest);
  } catch (error) {
    // A mutant with which a module cannot be loaded turns the spec red.
    if (mutant === undefined || !known) throw error;
    const failed = { ...one, status: 'failed', failureMessages: [String(error)] };
    return { ...known.empty, numFailingTests: 1, testResults: [failed] };
  }
  if (mutant === undefined) {
    const titles = result.testResults.map(({ fullName }) => fullName);
    const none = { numFailingTests: 0, numPassingTests: 0, numPendingTests: titles.length, numTodoTests: 0 };
    mkdirSync('coverage/mutation', { recursive: true });
    const empty = { ...result, ...none, testResults: [] };
    writeFileSync(file, JSON.stringify({ ...readTitles(), [path]: { titles, empty } }));
  }
  return result;
};
