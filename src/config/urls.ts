/** An http or https origin, exactly as a browser writes it. */
export function isWebOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

/** A valid issuer (OpenID Connect Discovery 1.0, section 3): a URL without query and fragment. */
export function isIssuer(text: string): boolean {
  return /^https?:\/\/[^?#@]+$/.test(text) && URL.canParse(text);
}

/** A host name, an IPv4 address, or an IPv6 address in brackets. */
export const hostPattern = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])$/i;
export const loopbackPattern = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i;

const schemePattern = /^[a-z][a-z0-9+.-]*:\/\//i;
/** Without a scheme in front, only what is too plain to be a password: one with a dot, or in small letters. */
const plainHostPattern = /^(?:(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)+|[a-z-]+)(?::\d{0,5})?$/;

/** The part of a value with a password or a token that may be shown. */
export const schemeOf = (value: string): string => `${schemePattern.exec(value)?.[0] ?? ''}…`;

/**
 * The part of a refused address that may be shown: `scheme://host:port`. A user and a password, a path, a query and a
 * fragment are `…`, and so is all of what cannot be told apart, as where a password has an `@` or a `/`.
 */
export function shownAddress(value: string): string {
  const scheme = schemePattern.exec(value)?.[0] ?? '';
  const {
    user,
    host = '',
    rest = '',
  } = /^(?<user>[^@/?#]*@)?(?<host>[^@/?#]*)(?<rest>[/?#][^@]*)?$/.exec(value.slice(scheme.length))?.groups ?? {};
  const isHost = scheme === '' && !user ? plainHostPattern.test(host) : hostPattern.test(host.replace(/:\d{0,5}$/, ''));
  if (!isHost) return `${scheme}…`;
  return `${scheme}${user ? '…@' : ''}${host}${rest.length > 1 ? `${rest[0]}…` : rest}`;
}

/** The part of EVENT_STORE that may be shown: `sqlite:`, or scheme and hosts of a server. What cannot be told apart is `…`. */
export function shownStore(eventStore: string): string {
  const scheme = schemePattern.exec(eventStore)?.[0];
  if (scheme === undefined) return eventStore;
  const hosts =
    /^(?:[^@/?#]*@)?([^@/?#]*)(?:[/?#][^@]*)?$/.exec(eventStore.slice(scheme.length))?.[1]?.split(',') ?? [];
  const areHosts = hosts.length > 0 && hosts.every((host) => hostPattern.test(host.replace(/:\d{1,5}$/, '')));
  return `${scheme}${areHosts ? hosts.join(',') : '…'}`;
}

/** Undefined if the percent-encoding is invalid. */
export function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
