/**
 * Whether an origin may use passkeys: a web origin (https, or http on this machine), or an app's
 * (`stamps/webauthn.ts`).
 */
export function isPasskeyOrigin(text: string): boolean {
  if (/^android:apk-key-hash:[A-Za-z0-9_-]{27,43}={0,2}$|^ios:bundle-id:[A-Za-z0-9.-]{1,155}$/.test(text)) return true;
  if (!URL.canParse(text)) return false;
  const { origin, protocol, hostname } = new URL(text);
  const isLoopback = /^(?:127\.0\.0\.1|\[::1\]|(?:[^.]+\.)*localhost)$/.test(hostname);
  // URL accepts wildcards and other characters that no host has.
  if (!/^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/.test(hostname)) return false;
  return origin === text && (protocol === 'https:' || (protocol === 'http:' && isLoopback));
}
