const { default: Sequencer } = require('@jest/test-sequencer');

/** Specs of one module first, those that start a coordinator last: most mutants are killed before. */
module.exports = class CheapestFirst extends Sequencer {
  sort(tests) {
    const isWhole = ({ path }) => path.includes('/test/e2e/');
    return tests.toSorted((one, other) => isWhole(one) - isWhole(other) || (one.path < other.path ? -1 : 1));
  }
};
