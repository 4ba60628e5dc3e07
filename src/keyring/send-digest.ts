import { createHmac } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InstallationKeys } from './installation-keys.js';

/** Names for recipients and requesters of messages that only this installation can resolve, the same on every coordinator, forever. */
@Injectable()
export class SendDigest {
  constructor(private readonly keys: InstallationKeys) {}

  /** HMAC-SHA-256, hex. */
  of(text: string): Promise<string> {
    return this.keys.use('message-counts', (key) => createHmac('sha256', key).update(text).digest('hex'));
  }
}
