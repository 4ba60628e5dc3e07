import { BadSetting } from './bad-setting.js';

/** An OAuth 2.0 provider (OAUTH2_PROVIDERS; see `oidc/oauth2-providers.ts`). */
export interface Oauth2ProviderSettings {
  readonly tokenUrl: string;
  readonly userUrl: string;
  readonly userId: string;
  readonly scopes: readonly string[];
  readonly clientAuthentication: 'basic' | 'post';
}

/** Configuration of an OAuth 2.0 provider; `userId` is a path of member names in the response of `userUrl`. */
export function oauth2ProvidersOf(value: string, allowPlain: boolean): Record<string, Oauth2ProviderSettings> {
  const rule = (text: string): BadSetting => new BadSetting('OAUTH2_PROVIDERS', '…', text);
  const read: Record<string, Oauth2ProviderSettings> = {};
  for (const [name, profile] of Object.entries(jsonObject(value) ?? {})) {
    const must = (what: string): BadSetting => rule(`${name} must have ${what}`);
    if (!/^OAUTH2_PROVIDER_[A-Z0-9_]{1,32}$/.test(name))
      throw rule(`\`${name}\` must be a name such as OAUTH2_PROVIDER_GITHUB`);
    const { tokenUrl, userUrl, userId = 'id', scopes = [], clientAuthentication = 'basic', ...others } = profile ?? {};
    for (const url of [tokenUrl, userUrl]) {
      const isTaken = typeof url === 'string' && URL.canParse(url) && (allowPlain ? /^https?:/ : /^https:/).test(url);
      if (!isTaken) throw must('a tokenUrl and a userUrl, both https unless ALLOW_PRIVATE_NETWORK is true');
    }
    if (typeof userId !== 'string' || !/^\w+(?:\.\w+)*$/.test(userId)) throw must('a userId such as id or data.id');
    if (!Array.isArray(scopes) || !scopes.every((scope) => typeof scope === 'string')) throw must('a list of scopes');
    if (clientAuthentication !== 'basic' && clientAuthentication !== 'post') {
      throw must('a clientAuthentication of basic or post');
    }
    if (Object.keys(others).length > 0) throw must(`no member \`${Object.keys(others)[0]}\``);
    read[name] = { tokenUrl: tokenUrl as string, userUrl: userUrl as string, userId, scopes, clientAuthentication };
  }
  if (Object.keys(read).length === 0) throw rule('must be a JSON object of providers');
  return read;
}

function jsonObject(text: string): Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return value as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  } catch {
    return undefined;
  }
}
