import base from './jest.config.js';

/** What is generated against a running coordinator and looks for what nobody thought of: `npm run test:nets`. */
/** @type {import('jest').Config} */
export default {
  ...base,
  roots: ['<rootDir>/test/nets', '<rootDir>/test/conformance'],
  testPathIgnorePatterns: ['/node_modules/'],
};
