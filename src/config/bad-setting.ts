import { shownAddress } from './urls.js';

/** An invalid setting; the message is the one line that the operator sees. */
export class BadSetting extends Error {
  /** @param value without secrets; an address, which may be in the wrong setting, is shown by its host only */
  constructor(name: string, value: string, rule: string) {
    super(`${name}=${value.includes('://') ? shownAddress(value) : value}: ${rule}`);
    this.name = 'BadSetting';
  }
}
