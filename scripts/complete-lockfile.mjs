/**
 * Adds to package-lock.json the optional packages of other platforms that `npm install` has left out. A registry need not
 * serve every build of a binary package; npm then writes a lock file without those it could not see, and `npm ci` refuses
 * it for not naming them. Run after every change of the lock file: `node scripts/complete-lockfile.mjs`.
 */
import './no-arguments.mjs';
import { readFileSync, writeFileSync } from 'node:fs';

const file = new URL('../package-lock.json', import.meta.url);
const lock = JSON.parse(readFileSync(file, 'utf8'));

const systems = new Set([
  'aix',
  'android',
  'darwin',
  'freebsd',
  'linux',
  'netbsd',
  'openbsd',
  'openharmony',
  'sunos',
  'win32',
]);
const processors = new Set(['arm', 'arm64', 'ia32', 'loong64', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']);

/** Binary packages say in their names what they run on: `@swc/core-linux-arm-gnueabihf`. */
function platformOf(name) {
  const words = name.split(/[/-]/);
  const os = words.find((word) => systems.has(word));
  const cpu = words.find((word) => processors.has(word));
  return { ...(cpu ? { cpu: [cpu] } : {}), ...(os ? { os: [os] } : {}) };
}

const isLocked = (path, name) => {
  for (let at = path; at; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    if (lock.packages[`${at}/node_modules/${name}`]) return true;
  }
  return Boolean(lock.packages[`node_modules/${name}`]);
};

let added = 0;
for (const [path, { optional, optionalDependencies, dependencies, dev }] of Object.entries(lock.packages)) {
  // What an optional package needs is optional too: without it npm leaves the whole branch out.
  const wanted = { ...optionalDependencies, ...(optional ? dependencies : {}) };
  for (const [name, version] of Object.entries(wanted)) {
    if (isLocked(path, name)) continue;
    lock.packages[`node_modules/${name}`] = { version, ...(dev ? { dev } : {}), optional: true, ...platformOf(name) };
    added += 1;
  }
}
lock.packages = Object.fromEntries(
  Object.entries(lock.packages).sort(([one], [other]) => one.localeCompare(other, 'en')),
);
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
console.log(`${added} optional packages of other platforms added`);
