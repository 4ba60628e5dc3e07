import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { transformSync } from '@swc/core';

// Hooks of Node's module loader (`module.register`): how specs find `src`, each other and jest.

const root = new URL('../../', import.meta.url).href;

/** `src`, of a package as well, is what is built of it; a module of `test` belongs to the spec that asks for it, whose number its URL keeps. */
export function resolve(specifier, context, next) {
  const { parentURL } = context;
  if (!parentURL?.startsWith(`${root}test/`)) return next(specifier, context);
  const { search } = new URL(parentURL);
  if (specifier === '@jest/globals') return found(new URL(`globals.mjs${search}`, import.meta.url));
  if (!/^\.{1,2}\//.test(specifier)) return next(specifier, context);
  const url = new URL(specifier, parentURL);
  const source = /^((?:packages\/[\w-]+\/)?)src\/(.+)$/.exec(url.href.slice(root.length));
  if (source) return found(new URL(`${source[1]}dist/${source[2]}`, root));
  if (!url.href.startsWith(`${root}test/`)) return next(specifier, context);
  url.pathname = url.pathname.replace(/\.js$/, '.ts');
  url.search = search;
  return found(url);
}

function found({ href: url }) {
  return { url, shortCircuit: true };
}

export function load(url, context, next) {
  if (!url.startsWith(`${root}test/`) || !/\.ts(?:\?|$)/.test(url)) return next(url, context);
  const filename = fileURLToPath(url);
  const { code: source } = transformSync(readFileSync(filename, 'utf8'), { filename, sourceMaps: 'inline' });
  return { format: 'module', source, shortCircuit: true };
}
