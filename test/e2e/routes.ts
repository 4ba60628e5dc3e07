import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { queries } from '../../src/read-models/index.js';

/** Everything that follows from the list of activities of this build. */
export const registry = buildRegistry(activities);

/** Every path that takes a stamped request, from the lists that register them. */
export const stampedPaths: readonly string[] = [
  ...[...registry.paths.keys()].map((name) => `/public/v1/submit/${name}`),
  ...queries.map(({ path }) => `/public/v1/query/${path}`),
];
