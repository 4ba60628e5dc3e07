import base from './jest.config.js';

/** What needs a load balancer, Debian's haproxy: `npm run test:balancer`. */
/** @type {import('jest').Config} */
export default {
  ...base,
  roots: ['<rootDir>/test/balancer'],
  testPathIgnorePatterns: ['/node_modules/'],
};
