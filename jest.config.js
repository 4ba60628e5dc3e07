/** @type {import('jest').Config} */
export default {
  testEnvironment: 'node',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.spec.ts'],
  // These have configurations of their own: jest.balancer.config.js, jest.browser.config.js, jest.nets.config.js, jest.processes.config.js.
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/(balancer|browser|conformance|nets|processes)/'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': '@swc/jest' },
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  setupFilesAfterEnv: ['<rootDir>/test/answers/hold-against-document.ts', '<rootDir>/test/replay/verified-at-close.ts'],
  globalSetup: '<rootDir>/test/build-before-tests.mjs',
  testTimeout: 90_000,
  maxWorkers: 2,
  // Every spec file leaves its module registry behind; a heap of gigabytes slows the files that come after fivefold.
  workerIdleMemoryLimit: '700MB',
};
