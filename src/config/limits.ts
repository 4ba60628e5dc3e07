import { BadLimits, readLimits, type LimitsOfOperator, type LimitsSet } from '../domain/organization/limits.js';
import { BadSetting } from './bad-setting.js';
import type { SettingValues } from './setting-values.js';
import type { SettingName } from './settings.js';

/** How much may be stored, and how many requests are taken. */
export interface LimitSettings {
  /** Limits of what is stored that are set to other than the usual values. */
  readonly limits: LimitsOfOperator;
  /** Requests per second; undefined means no limit. */
  readonly rateLimits: {
    readonly perAddress: number | undefined;
    readonly perOrganization: number | undefined;
    readonly perCredential: number | undefined;
  };
  /** Number of keys that each limit remembers. */
  readonly rateLimitKeys: number;
}

/** @throws {BadSetting} */
export function readLimitSettings(input: SettingValues): LimitSettings {
  const rateLimitKeys = input.text('RATE_LIMIT_MAX_KEYS');
  if (!/^[1-9]\d{1,6}$/.test(rateLimitKeys) || Number(rateLimitKeys) < 16) {
    throw new BadSetting('RATE_LIMIT_MAX_KEYS', rateLimitKeys, 'must be a whole number from 16 to 9999999');
  }
  return {
    limits: Object.freeze({
      organizations: limits(input, 'ORGANIZATION_LIMITS'),
      subOrganizations: limits(input, 'SUB_ORGANIZATION_LIMITS'),
    }),
    rateLimits: Object.freeze({
      perAddress: rate(input, 'RATE_LIMIT_PER_ADDRESS'),
      perOrganization: rate(input, 'RATE_LIMIT_PER_ORGANIZATION'),
      perCredential: rate(input, 'RATE_LIMIT_PER_CREDENTIAL'),
    }),
    rateLimitKeys: Number(rateLimitKeys),
  };
}

function limits(input: SettingValues, name: SettingName): LimitsSet {
  const value = input.optional(name);
  try {
    return Object.freeze(value === undefined ? {} : readLimits(value));
  } catch (error) {
    throw error instanceof BadLimits ? new BadSetting(name, value ?? '', error.message) : error;
  }
}

function rate(input: SettingValues, name: SettingName): number | undefined {
  const value = input.optional(name);
  if (value === undefined) return undefined;
  if (!/^[1-9]\d{0,6}$/.test(value)) throw new BadSetting(name, value, 'must be a whole number of requests a second');
  return Number(value);
}
