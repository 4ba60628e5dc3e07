/**
 * The last lines of .ci/run and .ci/long: what ran, what is red or did not run, by name, and "N passed, N failed". A suite without a report, one
 * that was ended at its limit and a step that failed count as one failure each.
 */
import { readFileSync } from 'node:fs';

let passed = 0;
let failed = 0;

function fail(text) {
  failed += 1;
  console.log(text);
}

for (const argument of process.argv.slice(2)) {
  if (!argument.endsWith('.json')) {
    fail(`failed: ${argument}`);
    continue;
  }
  let report;
  try {
    report = JSON.parse(readFileSync(argument, 'utf8'));
  } catch {
    fail(`did not run: the suite of ${argument}`);
    continue;
  }
  console.log(`ran: the suite of ${argument}: ${report.passed + report.failed} tests in ${report.files} files`);
  passed += report.passed;
  failed += report.failed;
  for (const name of report.red) console.log(`red: ${name}`);
  if (!report.ended) fail(`ended at its limit: the suite of ${argument}, in ${report.waiting.join(', ') || 'no spec'}`);
}
console.log(`${passed} passed, ${failed} failed`);
