import { dirname } from 'node:path';
import { folders } from './test/mutation/folders.mjs';

// `scripts/test-mutation.mjs` names a folder, and its files or some of their lines.
const {
  MUTATION_FOLDER: name = 'machine',
  MUTATION_FILES: files = '',
  MUTATION_CONCURRENCY: concurrency = '1',
} = process.env;
const { specs, least } = folders[name];

export default {
  mutate: files.split(','),
  testRunner: 'jest',
  plugins: ['@stryker-mutator/jest-runner'],
  jest: {
    projectType: 'custom',
    configFile: 'jest.mutation.config.js',
    config: {
      // jest reads these folders again for every mutant.
      roots: [...new Set(specs.map((spec) => `<rootDir>/${dirname(spec)}`))],
      testMatch: specs.map((spec) => `<rootDir>/${spec}`),
    },
    // Specs import `dist`, of which jest knows nothing.
    enableFindRelatedTests: false,
  },
  coverageAnalysis: 'perTest',
  buildCommand: 'node test/mutation/build.mjs',
  disableTypeChecks: false,
  ignorePatterns: ['/bench', '/coverage', '/deploy', '/dist', '/editors', '/examples', '/test/golden'],
  tempDirName: `coverage/mutation/sandbox-${name}`,
  incremental: true,
  incrementalFile: `coverage/mutation/${name}.json`,
  reporters: ['clear-text', 'json', 'progress-append-only'],
  jsonReporter: { fileName: `coverage/mutation/${name}-report.json` },
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false, reportMutants: true },
  concurrency: Number(concurrency),
  // Every run loads the mutated modules again, and nothing unloads them.
  maxTestRunnerReuse: 50,
  timeoutMS: 60_000,
  dryRunTimeoutMinutes: 30,
  allowConsoleColors: false,
  thresholds: { high: 100, low: least, break: least },
};
