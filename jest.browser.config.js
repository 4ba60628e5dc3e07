import base from './jest.config.js';

/** What needs a browser, which a fresh machine has not: `npm run test:browser`. */
/** @type {import('jest').Config} */
export default {
  ...base,
  roots: ['<rootDir>/test/browser'],
  testPathIgnorePatterns: ['/node_modules/'],
  globalSetup: '<rootDir>/test/browser/open-browser.mjs',
  globalTeardown: '<rootDir>/test/browser/close-browser.mjs',
  maxWorkers: 1,
};
