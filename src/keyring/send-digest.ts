import { createHmac } from 'node:crypto';
import type { InstallationKeys } from './installation-keys.js';

/** Names whoever is written to, or asks for it, where only this installation can tell who that is: HMAC-SHA-256, hex. */
export function sendDigest(keys: InstallationKeys): (text: string) => Promise<string> {
  return (text) => keys.use('sends', (key) => createHmac('sha256', key).update(text).digest('hex'));
}
