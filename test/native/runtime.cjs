const { createRequire, register } = require('node:module');
const { pathToFileURL } = require('node:url');
const { default: Runtime } = require('jest-runtime');

register('./hooks.mjs', pathToFileURL(__filename));
process.setSourceMapsEnabled(true);

/** What has the state of one spec, and is loaded anew for the next. */
const ofOneSpec = /\/node_modules\/(?:jest-circus|expect|@jest\/expect|jest-snapshot)\//;
let specs = 0;

/** Imports a spec as Node.js itself would, where jest gives it a context and all modules anew (docs/adr/0032). */
module.exports = class NativeRuntime extends Runtime {
  spec = ++specs;

  unstable_shouldLoadAsEsm() {
    return true;
  }

  async unstable_importModule(path) {
    // jest's would stand in the way of Node's own source maps.
    Error.prepareStackTrace = undefined;
    globalThis[Symbol.for('countersign.jest')] = this.jestGlobals.jestObjectFor(path);
    return import(`${pathToFileURL(path)}?spec=${this.spec}`);
  }

  requireInternalModule(from, to) {
    if (to) return createRequire(from)(to);
    for (const path of Object.keys(require.cache)) if (ofOneSpec.test(path)) delete require.cache[path];
    return require(from);
  }
};
