import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { validate } from '../../src/wire/validate.js';

const { versions } = buildRegistry(activities);

/**
 * The newest intent that an intent of an older version becomes: checked by its own class, then lifted, as plain JSON.
 * @throws {CoordinatorError} as the server would refuse it
 */
export function lifted(type: string, intent: object): object {
  const version = versions.get(type);
  if (!version?.lift) throw new Error(`\`${type}\` is not an older version of a verb`);
  const newest = version.lift(validate(version.intent, intent, 'parameters'));
  return JSON.parse(JSON.stringify(newest)) as object;
}
