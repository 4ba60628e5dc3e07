import base from './jest.config.js';

/** What starts processes and kills them, or has connections break, which takes minutes: `npm run test:processes`. */
/** @type {import('jest').Config} */
export default {
  ...base,
  roots: ['<rootDir>/test/processes'],
  testPathIgnorePatterns: ['/node_modules/'],
};
