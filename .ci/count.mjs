/** Sums up reports of jest, the last line of .ci/run. A suite that could not run, or a report that is not there, failed. */
import { readFileSync } from 'node:fs';

let passed = 0;
let failed = 0;
for (const file of process.argv.slice(2)) {
  try {
    const { numPassedTests, numFailedTests, numRuntimeErrorTestSuites } = JSON.parse(readFileSync(file, 'utf8'));
    passed += numPassedTests;
    failed += numFailedTests + numRuntimeErrorTestSuites;
  } catch (error) {
    console.error(`${file} cannot be read, so its suites count as one that failed: ${error.message}`);
    failed += 1;
  }
}
console.log(`${passed} passed, ${failed} failed`);
