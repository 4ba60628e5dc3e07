const { register } = require('node:module');
const { pathToFileURL } = require('node:url');
const NativeRuntime = require('../native/runtime.cjs');

register('./hooks.mjs', pathToFileURL(__filename));

module.exports = NativeRuntime;
