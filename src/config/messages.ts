import { BadSetting } from './bad-setting.js';
import type { SettingValues } from './setting-values.js';
import { decoded, hostPattern, loopbackPattern, schemeOf } from './urls.js';

/** Where e-mail goes (SMTP_URL). */
export interface SmtpServer {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte (smtps). */
  readonly secure: boolean;
  /** Without `secure`: whether the connection must become encrypted (RFC 3207) before anything is said. */
  readonly starttls: 'required' | 'optional';
  readonly user: string | undefined;
  readonly password: string | undefined;
}

/** The sender of e-mail (MAIL_FROM). */
export interface MailFrom {
  readonly name: string | undefined;
  readonly address: string;
  /** Additional domains in which callers may name senders; that of `address` is always one. */
  readonly domains: readonly string[];
}

/** Where text messages go (SMS_WEBHOOK_URL). `host` may have a port; `sender` is a number, a name or a service. */
export type SmsGateway =
  | { readonly kind: 'webhook'; readonly url: string }
  | {
      readonly kind: 'twilio';
      readonly host: string;
      readonly accountSid: string;
      readonly authToken: string;
      readonly sender: string;
    };

/** How e-mail and text messages are sent. */
export interface MessageSettings {
  /** Approvers are notified by mail that an activity is waiting for votes. */
  readonly voteNotices: boolean;
  /** Undefined: e-mail is written to the outbox. Contains a password. */
  readonly smtp: SmtpServer | undefined;
  /** Undefined: the SMTP server's default sender, and callers may name any other. */
  readonly mailFrom: MailFrom | undefined;
  /** Undefined: text messages are written to the outbox. Contains a token. */
  readonly sms: SmsGateway | undefined;
}

/** @throws {BadSetting} */
export function readMessages(input: SettingValues): MessageSettings {
  return {
    voteNotices: input.flag('VOTE_NOTICES'),
    smtp: input.read('SMTP_URL', smtpServerOf),
    mailFrom: input.read('MAIL_FROM', mailFromOf),
    sms: input.read('SMS_WEBHOOK_URL', smsGatewayOf),
  };
}

function smtpServerOf(value: string): SmtpServer {
  const rule = (text: string): BadSetting => new BadSetting('SMTP_URL', schemeOf(value), text);
  const example =
    'must be a URL such as smtp://user:password@smtp.example.com:587, with user and password percent-encoded';
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^smtps?:$/.test(url.protocol) || !hostPattern.test(url.hostname)) throw rule(example);
  if (!/^\/?$/.test(url.pathname) || url.hash !== '') throw rule('must not have a path or a fragment');
  const user = decoded(url.username);
  const password = decoded(url.password);
  if (user === undefined || password === undefined) throw rule(example);
  if ((user === '') !== (password === '')) throw rule('must have both a user and a password, or neither');

  const host = url.hostname.replace(/^\[|\]$/g, '');
  const secure = url.protocol === 'smtps:';
  const { starttls, ...others } = Object.fromEntries(url.searchParams);
  if (Object.keys(others).length > 0 || !/^(?:required|optional)?$/.test(starttls ?? '') || (secure && starttls)) {
    throw rule('must have no options but starttls=required or starttls=optional, for smtp only');
  }
  return {
    host,
    port: Number(url.port) || (secure ? 465 : 587),
    secure,
    starttls: starttls === 'optional' || (!starttls && loopbackPattern.test(host)) ? 'optional' : 'required',
    user: user || undefined,
    password: password || undefined,
  };
}

const mailFromPattern =
  /^(?:(?:"(?<quoted>[^"<>\p{Cc}]*)"|(?<name>[^"<>,@\p{Cc}]*))\s*<(?<named>[^<>]+)>|(?<bare>[^<>\s,]+))(?<domains>(?:\s*,\s*@[a-z0-9.-]+)*)$/iu;
const mailboxPattern = /^[^\s@\p{Cc}"(),:;<>[\]\\]{1,64}@[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/iu;

function mailFromOf(value: string): MailFrom {
  const { quoted, name, named, bare, domains } = mailFromPattern.exec(value)?.groups ?? {};
  const address = named ?? bare ?? '';
  if (!mailboxPattern.test(address)) {
    const rule =
      'must be a sender such as Example <no-reply@example.com>, optionally followed by domains such as , @example.org';
    throw new BadSetting('MAIL_FROM', value, rule);
  }
  return {
    name: (quoted ?? name)?.trim() || undefined,
    address,
    domains: Object.freeze((domains ?? '').toLowerCase().match(/[^\s,@]+/g) ?? []),
  };
}

function smsGatewayOf(value: string): SmsGateway {
  const rule = (text: string): BadSetting => new BadSetting('SMS_WEBHOOK_URL', schemeOf(value), text);
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url && /^https?:$/.test(url.protocol)) {
    if (decoded(url.username) === undefined || decoded(url.password) === undefined) {
      throw rule('must have its user and password percent-encoded');
    }
    return { kind: 'webhook', url: value };
  }
  const accountSid = decoded(url?.username ?? '');
  const authToken = decoded(url?.password ?? '');
  // A plus in a query means a space, but here it starts a phone number.
  const sender = new URLSearchParams(url?.search.replaceAll('+', '%2B')).get('from') ?? '';
  if (
    url?.protocol !== 'twilio:' ||
    !hostPattern.test(url.hostname) ||
    !/^\w{1,64}$/.test(accountSid ?? '') ||
    !authToken ||
    !/^(?:\+[1-9]\d{6,14}|[a-z0-9 ]{1,11}|MG[0-9a-f]{32})$/i.test(sender)
  ) {
    throw rule('must be https://… or twilio://ACCOUNT_SID:AUTH_TOKEN@api.twilio.com?from=+13214567890');
  }
  return { kind: 'twilio', host: url.host, accountSid: accountSid!, authToken, sender };
}
