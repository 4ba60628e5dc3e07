/** @type {import('jest').Config} */
export default {
  testEnvironment: '<rootDir>/test/native/environment.cjs',
  runtime: '<rootDir>/test/native/runtime.cjs',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.spec.ts'],
  // These have configurations of their own: jest.balancer.config.js, jest.browser.config.js, jest.nets.config.js, jest.processes.config.js.
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/(balancer|browser|conformance|nets|processes)/'],
  // Nothing goes through jest's own loader.
  transform: {},
  setupFilesAfterEnv: ['<rootDir>/test/answers/hold-against-document.ts', '<rootDir>/test/audit/verified-at-close.ts'],
  globalSetup: '<rootDir>/test/build-before-tests.mjs',
  testTimeout: process.env.LONG === '1' ? 900_000 : 90_000,
  maxWorkers: 2,
  workerIdleMemoryLimit: '1200MB',
};
