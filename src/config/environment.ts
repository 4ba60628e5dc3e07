import { existsSync, readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { BadSetting } from './bad-setting.js';
import { settings } from './settings.js';

/**
 * The environment, which takes precedence over `.env` of the working folder.
 * @throws {BadSetting} for an unknown name that looks like one of ours
 */
export function environment(
  input: Readonly<Record<string, string | undefined>> = process.env,
): Readonly<Record<string, string | undefined>> {
  const all = existsSync('.env') ? { ...parseEnv(readFileSync('.env', 'utf8')), ...input } : input;
  refuseMisspelled(all);
  return all;
}

/** Variables that the command line reads in addition to the settings. */
const ofCommandLine = ['COUNTERSIGN_PROFILE'];

/** Prefixes that only our settings have. */
const ownPrefixes =
  /^(?:COUNTERSIGN_|RATE_LIMIT_|PROXY_RATE_LIMIT_|PROXY_SECRET_|PROXY_CAPTCHA_|AUTH_PROXY_|SMTP_|SMS_WEBHOOK_|MAIL_FROM_|OIDC_|OAUTH2_|SOCIAL_LINKING_|WEBAUTHN_|VOTE_NOTICES?_|KEK_|ROOT_API_|EVENT_STORE_|INVITATION_)/;
/** Variables that container engines and Kubernetes add for a service, whatever its name. */
const ofServices = /_(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT_\d+_(?:TCP|UDP)(?:_\w+)?)$/;

/**
 * Refuses an unknown name that was evidently meant to be one of ours: it has one of our prefixes, or is a typo away
 * from a setting. Other names are not our concern, nor are short ones, because a typo in those makes another word.
 * @param only every name must be a setting, as in a test that has no other use for one
 * @throws {BadSetting} with the closest setting
 */
export function refuseMisspelled(
  from: Readonly<Record<string, string | undefined>>,
  { only = false }: { readonly only?: boolean } = {},
): void {
  const known = settings.map(([name]): string => name);
  for (const [name, value] of Object.entries(from)) {
    if (known.includes(name) || ofCommandLine.includes(name) || value === undefined) continue;
    const isOfService = ofServices.test(name) || (name.endsWith('_PORT') && /^(?:tcp|udp):\/\//.test(value));
    if (!only && isOfService) continue;
    const ranked = known
      .map((setting) => ({ setting, slips: slipsBetween(name.replace(/^COUNTERSIGN_/, ''), setting) }))
      .toSorted((one, other) => one.slips - other.slips);
    const { setting, slips } = ranked[0]!;
    const isSlip = name.length >= 8 && slips <= (name.length >= 12 ? 2 : 1) && /^[A-Z][A-Z0-9_]*$/.test(name);
    if (!only && !isSlip && !ownPrefixes.test(name)) continue;
    // The value may be a password.
    throw new BadSetting(name, '…', `is not a setting; did you mean ${setting}? See docs/reference/settings.md`);
  }
}

/**
 * Number of letters inserted, removed, changed or swapped with the next between two texts (optimal string alignment).
 */
export function slipsBetween(one: string, other: string): number {
  let [before, last] = [[] as number[], Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let row = 1; row <= one.length; row++) {
    const next = [row];
    for (let at = 1; at <= other.length; at++) {
      const isSame = one[row - 1] === other[at - 1];
      let slips = Math.min(last[at]! + 1, next[at - 1]! + 1, last[at - 1]! + (isSame ? 0 : 1));
      const isSwapped = one[row - 1] === other[at - 2] && one[row - 2] === other[at - 1];
      if (row > 1 && at > 1 && isSwapped) slips = Math.min(slips, before[at - 2]! + 1);
      next.push(slips);
    }
    [before, last] = [last, next];
  }
  return last.at(-1)!;
}
