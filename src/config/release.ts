import { readFileSync } from 'node:fs';

/** Version of the installed package. */
export function release(): string {
  const file = new URL('../../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version;
}
