/**
 * The file of a worker thread, by its path from the module that starts it (`import.meta.url`). A worker cannot load TypeScript:
 * tests, which run the sources, use the worker of the last build.
 */
export function workerFile(path: string, from: string): URL {
  const { href } = new URL(path, from);
  return new URL(from.endsWith('.ts') ? href.replace(/\/src\/(?!.*\/src\/)/, '/dist/') : href);
}
