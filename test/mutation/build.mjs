/** Builds `dist` without looking at types: a mutant need not have any. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { transformSync } from '@swc/core';

for (const entry of readdirSync('src', { withFileTypes: true, recursive: true })) {
  if (!entry.name.endsWith('.ts')) continue;
  const filename = `${entry.parentPath}/${entry.name}`;
  const target = filename.replace(/^src/, 'dist').replace(/\.ts$/, '.js');
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, transformSync(readFileSync(filename, 'utf8'), { filename, sourceMaps: false }).code);
}
