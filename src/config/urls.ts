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

/** The part of a value with a password or a token that may be shown. */
export const schemeOf = (value: string): string =>
  value.includes('://') ? `${value.slice(0, value.indexOf('://'))}://…` : '…';

/** Undefined if the percent-encoding is invalid. */
export function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
