const dist = new URL('../../dist/', import.meta.url).href;

/**
 * Loads `dist` anew for each spec file: what a module computes when it is loaded has the active mutant, and what it caches does
 * not outlive it.
 */
export async function resolve(specifier, context, next) {
  const resolved = await next(specifier, context);
  const { search } = new URL(context.parentURL ?? dist);
  if (search === '' || !resolved.url.startsWith(dist)) return resolved;
  return { ...resolved, url: new URL(search, resolved.url).href };
}
