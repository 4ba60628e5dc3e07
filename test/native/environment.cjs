const { ModernFakeTimers } = require('@jest/fake-timers');
const { ModuleMocker } = require('jest-mock');

/** What jest-circus keeps in the global object: the tests of one spec, and who listens to them. */
const ofOneSpec = new Set(['JEST_STATE_SYMBOL', 'EVENT_HANDLERS']);

/** The process itself, without a context of its own for each spec. Environment variables are put back after it. */
module.exports = class NativeEnvironment {
  global = globalThis;
  fakeTimers = null;
  moduleMocker = new ModuleMocker(globalThis);
  variables = { ...process.env };

  constructor({ projectConfig }) {
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
    Error.stackTraceLimit = 100;
  }

  exportConditions() {
    return ['node', 'node-addons'];
  }

  getVmContext() {
    return null;
  }

  async setup() {}

  async teardown() {
    this.fakeTimersModern.dispose();
    for (const symbol of Object.getOwnPropertySymbols(globalThis)) {
      if (ofOneSpec.has(symbol.description)) delete globalThis[symbol];
    }
    for (const name of Object.keys(process.env)) if (!(name in this.variables)) delete process.env[name];
    Object.assign(process.env, this.variables);
  }
};
