import base from './jest.config.js';

/** What needs Debian's haproxy, nginx and promtool: `npm run test:balancer`. */
/** @type {import('jest').Config} */
export default {
  ...base,
  roots: ['<rootDir>/test/balancer'],
  testPathIgnorePatterns: ['/node_modules/'],
};
