import type { AnyDefinition } from './define-activity.js';
import { updateUserName } from './users/update-user-name.js';

/** Every verb of the Activity API, in alphabetical order. Being listed is being registered. */
export const activities = [updateUserName] as const satisfies readonly AnyDefinition[];

/** The newest type of every verb. */
export type ActivityType = (typeof activities)[number]['type'];
