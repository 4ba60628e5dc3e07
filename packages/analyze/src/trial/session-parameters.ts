import { newKey } from './trial-organization.js';
import type { Makers } from './trial-parameters.js';

/** What everybody may do for themselves, unless a policy denies it. */
export const sessionParameters = {
  async ACTIVITY_TYPE_CREATE_READ_ONLY_SESSION() {
    return { parameters: {} };
  },
  async ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION_V2() {
    return { parameters: { targetPublicKey: newKey().publicKey } };
  },
  async ACTIVITY_TYPE_STAMP_LOGIN() {
    return { parameters: { publicKey: newKey().publicKey } };
  },
} satisfies Makers;
