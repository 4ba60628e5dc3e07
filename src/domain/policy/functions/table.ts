import { contains } from './contains.js';
import { count } from './count.js';
import type { PolicyFunction } from './function.js';
import { all, any, filter } from './quantifiers.js';
import { CronSpan, Timestamp } from './times.js';

/** The functions of the policy language. */
export const policyFunctions: readonly PolicyFunction[] = [all, any, contains, count, filter, Timestamp, CronSpan];
