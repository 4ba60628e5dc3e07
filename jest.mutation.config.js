import base from './jest.config.js';

/** Runs under Stryker, in its copy of the project: `npm run test:mutation`. */
/** @type {import('jest').Config} */
export default {
  ...base,
  // Stryker looks for it beside its own files.
  testEnvironment: new URL('./test/mutation/environment.cjs', import.meta.url).pathname,
  runtime: '<rootDir>/test/mutation/runtime.cjs',
  testRunner: '<rootDir>/test/mutation/jest-circus.cjs',
  setupFilesAfterEnv: [],
  globalSetup: undefined,
  maxWorkers: 1,
  watchman: false,
  testSequencer: '<rootDir>/test/mutation/sequencer.cjs',
};
