import { invalidField } from '../domain/errors.js';
import { layOut, type Block, type Mail } from './mail-layout.js';

/** A caller's customization of a mail, as checked by `readEmailCustomization`. */
interface MailDesign {
  /** Shown to the recipient as the requester. */
  readonly appName: string;
  /** https only. */
  readonly logoUrl?: string | undefined;
  /** A URL with `%s`, which is replaced by the code or the bundle. */
  readonly magicLinkTemplate?: string | undefined;
  /** `userName`, `introText`, `footerText`, `supportEmail` and `accentColor` are used; others are ignored. */
  readonly variables?: Readonly<Record<string, string>> | undefined;
}

/** The texts of an e-mail customization on the wire (docs/protocol.md, one-time codes). */
interface EmailCustomization {
  readonly logoUrl?: string | undefined;
  readonly magicLinkTemplate?: string | undefined;
  /** A JSON object of strings, as text. */
  readonly templateVariables?: string | undefined;
}

const maxUrl = 2_048;
const maxVariables = 50;
const maxVariablesText = 16 * 1024;
const maxSmsTemplate = 1_000;
const defaultAccent = '#1f4fd8';

/**
 * Checks a customization before anything is sent, and converts it for the mails below.
 * @throws {CoordinatorError} INVALID_ARGUMENT that names the field
 */
export function readEmailCustomization({ logoUrl, magicLinkTemplate, templateVariables }: EmailCustomization) {
  if (magicLinkTemplate) magicLink(magicLinkTemplate, 'example');
  return {
    logoUrl: logoUrl ? logoOf(logoUrl) : undefined,
    magicLinkTemplate: magicLinkTemplate || undefined,
    variables: templateVariables ? variablesOf(templateVariables) : undefined,
  };
}

/**
 * A one-time password.
 * @throws {CoordinatorError} INVALID_ARGUMENT for an invalid logo or link
 */
export function otpEmail(mail: MailDesign & { readonly code: string; readonly expiresInMinutes: number }): Mail {
  const { code, magicLinkTemplate, expiresInMinutes } = mail;
  const name = oneLine(mail.appName);
  return design(mail, {
    subject: `Your code for ${name}`,
    title: `Your code for ${name}`,
    preview: `It expires in ${minutes(expiresInMinutes)}.`,
    blocks: [
      ...opening(mail, `Enter this code to continue in ${name}.`),
      { kind: 'code', text: code },
      ...(magicLinkTemplate ? [link(`Continue in ${name}`, magicLink(magicLinkTemplate, code))] : []),
      note(`This code expires in ${minutes(expiresInMinutes)} and can be used once.`),
      note('Never share it; no one will ask you for it. If you did not request it, ignore this email.'),
    ],
  });
}

/**
 * A one-time password as a text message.
 * @param message.template a text with `{{.OtpCode}}` that replaces ours (docs/protocol.md, one-time codes)
 * @throws {CoordinatorError} INVALID_ARGUMENT for a template without this placeholder, or with others
 */
export function otpSms(message: {
  readonly code: string;
  readonly appName: string;
  readonly template?: string | undefined;
  readonly expiresInMinutes: number;
}): string {
  const { code, appName, template, expiresInMinutes } = message;
  if (template) return checkSmsTemplate(template).replace(smsPlace, () => code);
  return `${code} is your code for ${oneLine(appName)}. It expires in ${minutes(expiresInMinutes)}. Never share it.`;
}

/**
 * An encrypted API key: as a link into the application, or for copying if there is none.
 * @param mail.bundle can be decrypted only by the key that requested it (docs/protocol.md, credential bundles)
 * @throws {CoordinatorError} INVALID_ARGUMENT for an invalid logo or link
 */
export function authEmail(mail: MailDesign & { readonly bundle: string; readonly expiresInMinutes: number }): Mail {
  const { bundle, magicLinkTemplate, expiresInMinutes } = mail;
  const name = oneLine(mail.appName);
  return design(mail, {
    subject: `Sign in to ${name}`,
    title: `Sign in to ${name}`,
    preview: `It expires in ${minutes(expiresInMinutes)}.`,
    blocks: [
      ...(magicLinkTemplate
        ? [
            ...opening(mail, 'Open this link on the same device and in the same browser where you requested it.'),
            link(`Sign in to ${name}`, magicLink(magicLinkTemplate, bundle)),
          ]
        : [
            ...opening(mail, `Copy the whole text into ${name}, on the device where you requested it.`),
            { kind: 'bundle' as const, text: bundle },
          ]),
      note(`It expires in ${minutes(expiresInMinutes)}.`),
      note('If you did not request it, ignore this email. It is useless without your device.'),
    ],
  });
}

/**
 * An invitation into an organization.
 * @param mail.url where it is accepted
 * @throws {CoordinatorError} INVALID_ARGUMENT for an invalid logo or link
 */
export function invitationEmail(mail: {
  readonly organizationName: string;
  readonly senderName: string;
  readonly receiverName: string;
  readonly logoUrl?: string | undefined;
  readonly url?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number | undefined;
  /** For an invitation into a sub-organization, which chooses none of the text: the parent's display name. */
  readonly parentName?: string | undefined;
}): Mail {
  const { logoUrl, url, expiresAt, parentName } = mail;
  if (parentName !== undefined) return invitationOfParent({ ...mail, parentName });
  const organization = oneLine(mail.organizationName);
  const sender = oneLine(mail.senderName);
  return design(
    { appName: organization, logoUrl },
    {
      subject: `${sender} invites you to ${organization}`,
      title: `An invitation to ${organization}`,
      preview: `${sender} would like you to join.`,
      blocks: [
        paragraph(`Hello ${oneLine(mail.receiverName)},`),
        paragraph(`${sender} invites you to ${organization}.`),
        ...(url ? [link('Accept the invitation', safeUrl(url, 'url'))] : []),
        ...(expiresAt === undefined
          ? []
          : [note(`You can accept it once, until ${new Date(expiresAt).toUTCString()}.`)]),
        note('If you do not know the sender, ignore this email. Nothing happens unless you accept.'),
      ],
    },
  );
}

/** An invitation without any text chosen by the inviter: names may contain anything, including a link. */
function invitationOfParent(mail: {
  readonly parentName: string;
  readonly logoUrl?: string | undefined;
  readonly url?: string | undefined;
  readonly expiresAt?: number | undefined;
}): Mail {
  const { logoUrl, url, expiresAt } = mail;
  const parent = oneLine(mail.parentName);
  return design(
    { appName: parent, logoUrl },
    {
      subject: `An invitation to an account at ${parent}`,
      title: `An invitation to an account at ${parent}`,
      preview: `Somebody is sharing an account at ${parent} with you.`,
      blocks: [
        paragraph(`Somebody with an account at ${parent} invites you to share it.`),
        ...(url ? [link('Accept the invitation', safeUrl(url, 'url'))] : []),
        ...(expiresAt === undefined
          ? []
          : [note(`You can accept it once, until ${new Date(expiresAt).toUTCString()}.`)]),
        note('If you did not expect this, ignore this email. Nothing happens unless you accept.'),
      ],
    },
  );
}

/**
 * Tells someone that an activity is waiting for their vote. It grants nothing: a vote must be signed.
 * @param mail.url where the activity is shown
 * @throws {CoordinatorError} INVALID_ARGUMENT for an invalid logo or link
 */
export function consensusEmail(mail: {
  readonly organizationName: string;
  readonly activityType: string;
  readonly activityId: string;
  /** Omitted if anyone may have chosen it. */
  readonly submitterName?: string | undefined;
  /** What it would sign, decoded. */
  readonly wouldSign?: readonly { readonly name: string; readonly value: string }[] | undefined;
  readonly logoUrl?: string | undefined;
  readonly url?: string | undefined;
}): Mail {
  const organization = oneLine(mail.organizationName);
  const type = oneLine(mail.activityType);
  const { logoUrl, url, submitterName, wouldSign = [] } = mail;
  return design(
    { appName: organization, logoUrl },
    {
      subject: `Your vote is needed in ${organization}`,
      title: 'An activity is waiting for your vote',
      preview: submitterName === undefined ? `${type} was submitted.` : `${oneLine(submitterName)} submitted ${type}.`,
      blocks: [
        paragraph(
          `A policy of ${organization} requires more approvals. Review what the activity does before you approve it.`,
        ),
        {
          kind: 'facts',
          rows: [
            ['Activity', type],
            ...(submitterName === undefined ? [] : [['Submitted by', oneLine(submitterName)] as const]),
            ...wouldSign.map(({ name, value }) => [oneLine(name), oneLine(value, 400)] as const),
            ['Id', oneLine(mail.activityId)],
          ],
        },
        ...(url ? [link('Review the activity', safeUrl(url, 'url'))] : []),
      ],
    },
  );
}

/**
 * Checks a text message's template before anything is sent.
 * @throws {CoordinatorError} INVALID_ARGUMENT
 */
export function checkSmsTemplate(template: string): string {
  const refuse = (description: string) => invalidField('smsCustomization.template', description);
  if (template.length > maxSmsTemplate) {
    throw refuse(`must have at most ${maxSmsTemplate} characters, has ${template.length}`);
  }
  if (!smsPlace.test(template)) throw refuse('must contain {{.OtpCode}} in place of the code');
  const rest = template.replace(smsPlace, '');
  if (/\{\{|\}\}/.test(rest)) throw refuse('must contain exactly one {{.OtpCode}} and no other {{…}}');
  if (/[^\P{Cc}\n]/u.test(rest)) throw refuse('must not contain control characters other than line feeds');
  return template;
}

/** The published service accepts Go templates with this one field. */
const smsPlace = /\{\{\s*\.OtpCode\s*\}\}/;

const paragraph = (text: string): Block => ({ kind: 'paragraph', text });
const note = (text: string): Block => ({ kind: 'note', text });
const link = (label: string, url: string): Block => ({ kind: 'link', label, url });
const minutes = (count: number): string => (count === 1 ? 'one minute' : `${count} minutes`);

/**
 * Names and other short texts of callers: on one line, without characters that would reorder or hide the text around
 * it.
 */
function oneLine(text: string, max = 255): string {
  return (
    text
      .replace(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu, ' ')
      .trim()
      .slice(0, max)
      // Half a surrogate pair, if the cut went through a character.
      .replace(/\p{Cs}/gu, '')
  );
}

function opening({ variables }: MailDesign, standard: string): Block[] {
  const { userName, introText } = variables ?? {};
  return [
    ...(userName ? [paragraph(`Hello ${oneLine(userName)},`)] : []),
    paragraph(introText ? oneLine(introText, 1_000) : standard),
  ];
}

function design(
  { appName, logoUrl, variables }: MailDesign,
  content: { subject: string; title: string; preview: string; blocks: readonly Block[] },
): Mail {
  const { footerText, supportEmail, accentColor } = variables ?? {};
  const footer = [
    ...(footerText ? [oneLine(footerText, 1_000)] : []),
    ...(supportEmail ? [`Questions? ${oneLine(supportEmail)}`] : []),
    `Sent for ${oneLine(appName)}.`,
  ];
  return layOut({
    ...content,
    // The longest subject that a message may have.
    subject: oneLine(content.subject),
    appName: oneLine(appName),
    logoUrl: logoUrl ? logoOf(logoUrl) : undefined,
    accentColor: /^#[0-9a-f]{6}$/i.test(accentColor ?? '') ? accentColor! : defaultAccent,
    footer,
  });
}

function logoOf(text: string): string {
  const url = text.length <= maxUrl && URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '') {
    throw invalidField('emailCustomization.logoUrl', `must be an https URL of an image, got \`${shown(text)}\``);
  }
  return url.href;
}

/** Schemes with which a click does something other than open a page or an application. */
const forbiddenSchemes =
  /^(?:javascript|data|vbscript|file|filesystem|blob|about|view-source|jar|mailto|tel|sms|ftp|wss?|search|search-ms|ms-[a-z0-9-]+|chrome|resource)$/;

/** Inserts the value into the template, encoded so that it stays one part of the path, query or fragment. */
function magicLink(template: string, value: string): string {
  const field = 'emailCustomization.magicLinkTemplate';
  const fill = (part: string): string => template.replaceAll('%s', () => part);
  if (template.length > maxUrl) {
    throw invalidField(field, `must have at most ${maxUrl} characters, has ${template.length}`);
  }
  if (!template.includes('%s')) {
    throw invalidField(field, `must contain %s in place of the code or bundle, got \`${shown(template)}\``);
  }
  // A value in the host name would be sent to name servers, and a value in the scheme would choose the application.
  const [one, other] = ['a', 'b'].map((part) => siteOf(safeUrl(fill(part), field)));
  if (one !== other) throw invalidField(field, `must have %s after the host, got \`${shown(template)}\``);
  return safeUrl(fill(encodeURIComponent(value)), field, shown(template));
}

const siteOf = (url: string): string => /^[^/?#]*(?:\/\/[^/?#]*)?/.exec(url)?.[0] ?? '';

/** Checked by a parser, because browsers ignore tabs and letter case that a pattern would miss. */
function safeUrl(text: string, field: string, toShow = shown(text)): string {
  const url = URL.canParse(text) && !/[\s\p{Cc}]/u.test(text) ? new URL(text) : undefined;
  const scheme = url?.protocol.slice(0, -1) ?? '';
  const isWeb = scheme === 'http' || scheme === 'https';
  if (!url || forbiddenSchemes.test(scheme) || !(isWeb || /^[a-z][a-z0-9+.-]*:\/\//i.test(text))) {
    throw invalidField(field, `must be an http or https URL, or one of an application's own scheme, got \`${toShow}\``);
  }
  if (url.username !== '' || url.password !== '') {
    throw invalidField(field, `must not contain a user or password, got \`${toShow}\``);
  }
  return url.href;
}

function variablesOf(text: string): Readonly<Record<string, string>> {
  const refuse = (description: string) => invalidField('emailCustomization.templateVariables', description);
  if (text.length > maxVariablesText) {
    throw refuse(`must have at most ${maxVariablesText} characters, has ${text.length}`);
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw refuse('must be a JSON object of strings, as text; this is not JSON');
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw refuse('must be a JSON object of strings, as text');
  }
  const entries = Object.entries(parsed);
  if (entries.length > maxVariables) throw refuse(`must have at most ${maxVariables} members, has ${entries.length}`);
  const other = entries.find(([, value]) => typeof value !== 'string');
  if (other) throw refuse(`must contain only strings, but \`${shown(other[0])}\` is not a string`);
  return Object.fromEntries(entries as [string, string][]);
}

const shown = (text: string): string => (text.length > 64 ? `${text.slice(0, 64)}…` : text);
