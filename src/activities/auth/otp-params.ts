import { CoordinatorError, invalidField } from '../../domain/errors.js';
import { presentMembers } from '../../domain/organization/event.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { isContactOfUser, messageSender, type ContactKind } from '../../domain/organization/message-senders.js';
import {
  checkOtpSends,
  otpLengths,
  otpLifeSeconds,
  otpSent,
  type OtpEvent,
  type OtpType,
} from '../../domain/organization/otps.js';
import type { FeatureName } from '../../domain/organization/settings.js';
import { contactKey } from '../../domain/contact-key.js';
import { checkSmsTemplate, otpEmail, otpSms, readEmailCustomization } from '../../delivery/templates.js';
import { DecimalString, Email, Flag, isEmail, isPhone, Label, Nested, OneOf, Text, Whole } from '../../wire/fields.js';
import type { DecideContext, PrepareContext } from '../define-activity.js';
import type { RecordedActivity } from '../recorded-activity.js';
import { checkLoginFeature } from '../organization/organization-features.js';
import { parentsWords, type MessageWords } from '../parent-message-branding.js';
import type { OutgoingMessage } from '../../ports/delivery.js';
import type { PreparePorts } from '../../ports/prepare.js';

const otpTypes = ['OTP_TYPE_EMAIL', 'OTP_TYPE_SMS'] as const satisfies readonly OtpType[];

/** Customization of a mail; the requester's name is a separate field. */
export class EmailLooks {
  @Text({ optional: true, about: 'https URL of a logo, shown instead of the name.' })
  logoUrl?: string;

  @Text({ optional: true, about: 'URL of a button; `%s` is replaced by the code or the bundle.' })
  magicLinkTemplate?: string;

  @Text({ optional: true, max: 16_384, about: 'JSON object of strings, as text: variables for the e-mail.' })
  templateVariables?: string;

  @Text({ optional: true, about: 'Not used: this server keeps no templates.' })
  templateId?: string;
}

/** Customization of a mail in older versions, including the requester's name. */
export class OlderEmailLooks extends EmailLooks {
  @Text({
    optional: true,
    max: 255,
    about: "Name of the application, as the recipient sees it; default: the organization's name.",
  })
  appName?: string;
}

class SmsLooks {
  @Text({ optional: true, about: 'The full text message; must contain `{{.OtpCode}}` exactly once.' })
  template?: string;
}

/** The sender of a mail (specification, 4.3.3). */
export class MailSender {
  @Email({
    optional: true,
    removable: true,
    about: 'Sender address; used only if this server may send from its domain.',
  })
  sendFromEmailAddress?: string;

  @Text({ optional: true, max: 255, about: "Sender's name; default `Notifications`." })
  sendFromEmailSenderName?: string;

  @Email({ optional: true, removable: true, about: 'Reply-to address.' })
  replyToEmailAddress?: string;
}

/** Fields common to every version of a code to send. */
export class OtpRecipient extends MailSender {
  @OneOf(otpTypes, { about: 'Channel: e-mail or SMS.' })
  otpType!: OtpType;

  @Text({ min: 1, max: 254, about: 'The e-mail address, or phone number in E.164 format, to send it to.' })
  contact!: string;

  @Nested(() => SmsLooks, { optional: true, about: 'Appearance of the text message.' })
  smsCustomization?: SmsLooks;

  @Text({
    optional: true,
    max: 255,
    about: 'Identifier for rate limiting (three codes in three minutes); default: the contact.',
  })
  userIdentifier?: string;
}

/** A code to send, with the customization of its message. */
export class OtpLooks extends OtpRecipient {
  @Whole({ ...otpLengths, optional: true, about: `Length of the code; default ${otpLengths.usual}.` })
  otpLength?: number;

  @Flag({
    optional: true,
    about: 'True (default) for letters and digits of the bech32 alphabet, false for decimal digits only.',
  })
  alphanumeric?: boolean;
}

/** Lifetime of a code, in all but the oldest versions. */
const OtpSeconds = () =>
  DecimalString({
    optional: true,
    min: 1,
    max: otpLifeSeconds.max,
    about: `Lifetime of the code in seconds; default ${otpLifeSeconds.usual}.`,
  });

/** A code to send, in the newest versions. */
export class OtpParams extends OtpLooks {
  @Label({
    about:
      'Name of the application, as the recipient sees it. A sub-organization uses the wording of its parent instead.',
  })
  appName!: string;

  @Nested(() => EmailLooks, { optional: true, about: 'Appearance of the e-mail.' })
  emailCustomization?: EmailLooks;

  @OtpSeconds()
  expirationSeconds?: string;
}

/** A code to send, in the first version of init_otp. */
export class OlderOtpParams extends OtpLooks {
  @Nested(() => OlderEmailLooks, { optional: true, about: 'Appearance of the e-mail.' })
  emailCustomization?: OlderEmailLooks;

  @OtpSeconds()
  expirationSeconds?: string;
}

/** The requester's name, from where older versions have it. */
export function liftCustomization<Params extends { readonly emailCustomization?: OlderEmailLooks }>({
  emailCustomization,
  ...rest
}: Params): Omit<Params, 'emailCustomization'> & { appName: string; emailCustomization: EmailLooks } {
  const { appName = '', ...customization } = emailCustomization ?? {};
  return { ...rest, appName, emailCustomization: customization };
}

/** Refuses a login by a code of that kind if it is switched off. @throws {CoordinatorError} FAILED_PRECONDITION */
export function checkOtpLogin(organization: OrganizationView, otpType: OtpType): void {
  const feature: Readonly<Record<OtpType, FeatureName>> = {
    OTP_TYPE_EMAIL: 'FEATURE_NAME_OTP_EMAIL_AUTH',
    OTP_TYPE_SMS: 'FEATURE_NAME_SMS_AUTH',
  };
  checkLoginFeature(organization, feature[otpType]);
}

/** The kind of contact that codes of a type are sent to. */
export const contactKind = (otpType: OtpType): ContactKind => (otpType === 'OTP_TYPE_EMAIL' ? 'email' : 'phone-number');

/**
 * Refuses input from which no message could be built.
 * @throws {CoordinatorError} INVALID_ARGUMENT that names the field
 */
export function checkOtpParams({ otpType, contact, emailCustomization = {}, smsCustomization }: OtpParams): void {
  const isContact = otpType === 'OTP_TYPE_EMAIL' ? isEmail(contact) : isPhone(contact);
  if (!isContact) {
    const rule =
      otpType === 'OTP_TYPE_EMAIL' ? 'an e-mail address' : 'a phone number in E.164 format, such as +13214567890';
    throw invalidField('parameters.contact', `must be ${rule}, got \`${contact.slice(0, 64)}\``);
  }
  readEmailCustomization(emailCustomization);
  if (smsCustomization?.template) checkSmsTemplate(smsCustomization.template);
}

/**
 * Refuses a message of a sub-organization to anyone but its own users, because the sub-organization may belong to
 * anyone (security rule R6).
 * @throws {CoordinatorError} PERMISSION_DENIED
 */
export function checkOwnContact(organization: OrganizationView, kind: ContactKind, contact: string): void {
  if (organization.parentOrganizationId === undefined || isContactOfUser(organization, kind, contact)) return;
  throw new CoordinatorError(
    'PERMISSION_DENIED',
    `sub-organization \`${organization.organizationId}\` may send codes only to contacts of its own users, and none has ` +
      `\`${contact}\`: have the parent organization send the code, through its auth proxy or by one of its users`,
    { category: 'REQUEST_NOT_AUTHORIZED' },
  );
}

/** The members of a mail that name its sender. */
export function senderOf({
  sendFromEmailAddress,
  sendFromEmailSenderName,
  replyToEmailAddress,
}: Readonly<Partial<Record<keyof MailSender, string>>>) {
  return presentMembers({
    from: sendFromEmailAddress || undefined,
    fromName: sendFromEmailSenderName || undefined,
    replyTo: replyToEmailAddress || undefined,
  });
}

/** What is recorded of a code. */
export interface MadeOtp {
  readonly otpId: string;
  readonly codeHash: string;
  readonly vaultId?: string;
  readonly targetBundle?: string;
}

/** A code before it is recorded. The code itself is only in the message. */
export interface PreparedOtp extends MadeOtp {
  /** Undefined if nobody is to be reached: then nobody knows the code. */
  readonly message: OutgoingMessage | undefined;
}

/**
 * Creates a code, its message, and with `withTarget` a key to seal it to. Takes the same time whether or not it
 * `isDelivered`.
 * @throws {CoordinatorError} RESOURCE_EXHAUSTED for too many sends, or what delivery refuses
 */
export async function prepareOtp(
  params: OtpParams,
  { loginSecrets, delivery, contactLimits }: PreparePorts,
  context: PrepareContext,
  { isDelivered = true, withTarget = false }: { readonly isDelivered?: boolean; readonly withTarget?: boolean } = {},
): Promise<PreparedOtp> {
  const { organization, now, newId } = context;
  const { organizationId } = organization;
  const { otpLength = otpLengths.usual, alphanumeric = true, contact } = params;
  const sender = messageSender(context, contactKind(params.otpType), contact);
  checkOtpSends(organization, { userIdentifier: identifierOf(params), contact }, now, sender);
  // For every contact alike, or it would reveal who is reached.
  await contactLimits.count({ contact, sender, organizationId });
  const otpId = newId();
  const code = loginSecrets.newCode(otpLength, alphanumeric ? 'bech32' : 'digits', contact);
  const codeHash = await loginSecrets.hashCode(otpId, code);
  const message = {
    ...messageOf(params, parentsWords(context) ?? wordsOf(params), code, organization.name),
    otpId,
    expiresAt: now + lifeOf(params) * 1000,
  };
  // Refused before a code exists that nobody could get; and for every contact alike, or it would reveal who is reached.
  delivery.check(message);
  const target = withTarget ? await loginSecrets.startOtpTarget(organizationId) : {};
  return { otpId, codeHash, message: isDelivered ? message : undefined, ...target };
}

/** A code that was sent; its message is kept nowhere. */
export function recalledOtp(
  recorded: RecordedActivity<{ otpId: string; otpEncryptionTargetBundle?: string }>,
): MadeOtp {
  const { otpId, codeHash, vaultId } = recorded.first('OtpSent');
  return { otpId, codeHash, ...presentMembers({ vaultId, targetBundle: recorded.result.otpEncryptionTargetBundle }) };
}

/** Hash of the code that was guessed. A wrong guess has a different hash from the code's; which one does not matter. */
export function recalledGuess(otpId: string, recorded: RecordedActivity, { otps }: OrganizationView): string {
  const isWrong = recorded.all('OtpGuessFailed').length > 0;
  return isWrong ? '' : (otps.get(otpId)?.codeHash ?? '');
}

/** The events of sending a code. @throws {CoordinatorError} RESOURCE_EXHAUSTED for too many */
export function otpEvents(
  params: OtpParams,
  purpose: 'verify' | 'auth',
  context: Pick<DecideContext, 'organization' | 'submitterId' | 'now'>,
  { otpId, codeHash, vaultId }: MadeOtp,
): OtpEvent[] {
  const { otpType, contact } = params;
  const { organization, now } = context;
  const expiresAt = now + lifeOf(params) * 1000;
  const { submitterId: requestedBy } = context;
  const userIdentifier = identifierOf(params);
  const facts = { otpId, purpose, otpType, contact, codeHash, expiresAt, userIdentifier, requestedBy };
  const sender = messageSender(context, contactKind(otpType), contact);
  return otpSent(organization, { ...facts, ...presentMembers({ vaultId }) }, now, sender);
}

/** Sends a recorded code. @throws {CoordinatorError} if delivery accepts no more */
export function sendOtp({ message }: PreparedOtp, { delivery }: PreparePorts): void {
  if (message) delivery.enqueue(message);
}

const lifeOf = ({ expirationSeconds }: OtpParams): number => Number(expirationSeconds ?? otpLifeSeconds.usual);

const identifierOf = ({ userIdentifier, contact }: OtpParams): string => userIdentifier || contactKey(contact);

/** The texts in a request. */
function wordsOf(params: OtpParams): MessageWords {
  const { appName, emailCustomization = {}, smsCustomization, ...rest } = params;
  const { sendFromEmailAddress, sendFromEmailSenderName, replyToEmailAddress } = rest;
  const smsTemplate = smsCustomization?.template;
  return {
    appName,
    emailCustomization,
    ...presentMembers({ smsTemplate, sendFromEmailAddress, sendFromEmailSenderName, replyToEmailAddress }),
  };
}

function messageOf(params: OtpParams, words: MessageWords, code: string, organizationName: string): OutgoingMessage {
  const { otpType, contact: to } = params;
  const { emailCustomization, smsTemplate: template } = words;
  const appName = words.appName || organizationName;
  const expiresInMinutes = Math.ceil(lifeOf(params) / 60);
  if (otpType === 'OTP_TYPE_SMS') {
    return { channel: 'sms', to, text: otpSms({ code, appName, template, expiresInMinutes }) };
  }
  const mail = otpEmail({ appName, ...readEmailCustomization(emailCustomization), code, expiresInMinutes });
  return { channel: 'email', to, ...mail, ...senderOf(words) };
}
