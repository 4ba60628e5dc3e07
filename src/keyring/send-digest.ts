import { createHmac } from 'node:crypto';
import type { InstallationKeys } from './installation-keys.js';

/** A name for the recipient or requester of messages that only this installation can resolve: HMAC-SHA-256, hex. */
export function sendDigest(keys: InstallationKeys): (text: string) => Promise<string> {
  return (text) => keys.use('message-counts', (key) => createHmac('sha256', key).update(text).digest('hex'));
}
