/**
 * Keeps the counts of a jest run in a file that is whole after each spec, so that a run which is ended at its limit still says
 * what passed, what failed and what was never reached. `--reporters=./.ci/report.mjs`, file named by REPORT.
 */
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';

class Report {
  constructor({ rootDir }) {
    this.rootDir = rootDir;
    this.report = { passed: 0, failed: 0, files: 0, red: [], waiting: [] };
  }

  onRunStart() {
    this.write();
  }

  onTestFileStart({ path }) {
    this.report.waiting.push(this.name(path));
    this.write();
  }

  onTestFileResult({ path }, { numPassingTests, numFailingTests, testExecError }) {
    const name = this.name(path);
    this.report.waiting = this.report.waiting.filter((one) => one !== name);
    this.report.files += 1;
    this.report.passed += numPassingTests;
    // A file that could not run has no tests to count, and has failed all the same.
    this.report.failed += numFailingTests + (testExecError && numFailingTests === 0 ? 1 : 0);
    if (numFailingTests > 0 || testExecError) this.report.red.push(name);
    this.write();
  }

  onRunComplete(_contexts, { numTotalTestSuites, numPassedTestSuites, numFailedTestSuites, numPendingTestSuites }) {
    this.report.ended = numTotalTestSuites === numPassedTestSuites + numFailedTestSuites + numPendingTestSuites;
    this.write();
  }

  name(path) {
    return relative(this.rootDir, path);
  }

  write() {
    writeFileSync(process.env.REPORT, JSON.stringify(this.report));
  }
}

export { Report as default };
