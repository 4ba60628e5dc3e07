/** An invalid setting; the message is the one line that the operator sees. */
export class BadSetting extends Error {
  constructor(name: string, value: string, rule: string) {
    super(`${name}=${value}: ${rule}`);
    this.name = 'BadSetting';
  }
}
