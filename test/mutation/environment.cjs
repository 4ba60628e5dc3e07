const NativeEnvironment = require('../native/environment.cjs');

/**
 * Tells the mutated modules which mutant is active, which they read from the environment variable once a process. A mutant is
 * killed by one test, so those after it are left out.
 */
module.exports = class MutationEnvironment extends NativeEnvironment {
  async setup() {
    await super.setup();
    this.stryker = globalThis.__stryker__ ??= {};
    this.stryker.activeMutant = process.env.__STRYKER_ACTIVE_MUTANT__;
  }

  async handleTestEvent({ name, test }) {
    const { activeMutant, killedMutant } = this.stryker;
    if (activeMutant === undefined) return;
    if (name === 'test_start' && killedMutant === activeMutant) test.mode = 'skip';
    if (name === 'test_done' && test.errors.length > 0) this.stryker.killedMutant = activeMutant;
  }
};
