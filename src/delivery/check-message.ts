import { mailAddress } from '../domain/contact-key.js';
import { invalidFields } from '../domain/errors.js';
import type { Message } from './delivery.js';

/** An addr-spec without quoting or comments (RFC 5321, 4.1.2): nothing in it can end a header or start another. */
const emailPattern =
  /^[^\s@\p{Cc}"(),:;<>[\]\\]{1,64}@[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/iu;
/** E.164: a plus, then at most fifteen digits that do not begin with zero. */
const phonePattern = /^\+[1-9]\d{6,14}$/;
/** Control characters and line separators end headers; bidirectional overrides make a name look like another. */
const unfitForHeaders = /[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

const maxTextLength = { email: 64 * 1024, sms: 1_600 } as const;
const maxHtmlLength = 256 * 1024;
const maxHeaderLength = 255;
const maxAddressLength = 254;

const isEmail = (text: string): boolean => {
  const address = mailAddress(text);
  return address.length <= maxAddressLength && emailPattern.test(address);
};

/**
 * Refuses what must not reach a carrier. Errors never quote the texts, which may contain a code.
 * @throws {CoordinatorError} INVALID_ARGUMENT that names each field
 */
export function checkMessage({ channel, to, subject, text, html, from, fromName, replyTo }: Message): void {
  const violations: { field: string; description: string }[] = [];
  const refuse = (field: string, description: string): number => violations.push({ field, description });

  if (channel === 'email' ? !isEmail(to) : !phonePattern.test(to)) {
    refuse('to', channel === 'email' ? 'must be an e-mail address' : 'must be a phone number in E.164 format');
  }
  if (text === '') refuse('text', 'must not be empty');
  if (text.length > maxTextLength[channel]) {
    refuse('text', `must have at most ${maxTextLength[channel]} characters, has ${text.length}`);
  }
  if (html !== undefined && html.length > maxHtmlLength) {
    refuse('html', `must have at most ${maxHtmlLength} characters, has ${html.length}`);
  }
  for (const [field, value] of Object.entries({ from, replyTo })) {
    if (value !== undefined && !isEmail(value)) refuse(field, 'must be an e-mail address');
  }
  for (const [field, value] of Object.entries({ subject, fromName })) {
    if (value !== undefined && (value.length > maxHeaderLength || unfitForHeaders.test(value))) {
      refuse(field, `must be one line of at most ${maxHeaderLength} characters, without control characters`);
    }
  }
  if (violations.length > 0) throw invalidFields(violations);
}
