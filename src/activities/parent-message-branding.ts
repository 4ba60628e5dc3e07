import { presentMembers } from '../domain/organization/event.js';
import { speaksForParent, type MessageRequest } from '../domain/organization/message-senders.js';

/** The text and sender of a message, as a request or a configuration sets them. */
export interface MessageWords {
  /** The requester's name, as the recipient reads it. */
  readonly appName: string;
  readonly emailCustomization: {
    readonly logoUrl?: string;
    readonly magicLinkTemplate?: string;
    readonly templateVariables?: string;
  };
  readonly smsTemplate?: string;
  readonly sendFromEmailAddress?: string;
  readonly sendFromEmailSenderName?: string;
  readonly replyToEmailAddress?: string;
}

/** Shown to people whose parent organization is unknown: nothing in it leads to the product. */
const nameless = 'your account';

/**
 * The parent's own texts, if a user of a sub-organization requests a message: those of its auth proxy, or else its name
 * and our standard text (security rule R6). Undefined if the request may choose them.
 */
export function parentsWords(request: MessageRequest): MessageWords | undefined {
  if (speaksForParent(request)) return undefined;
  const { name = nameless, authProxy } = request.parent ?? {};
  const settings = authProxy?.settings;
  const { appName, logoUrl, magicLinkTemplate, templateVariables } = settings?.emailCustomizationParams ?? {};
  return {
    appName: appName || name,
    emailCustomization: presentMembers({ logoUrl, magicLinkTemplate, templateVariables }),
    ...presentMembers({
      smsTemplate: settings?.smsCustomizationParams?.['template'],
      sendFromEmailAddress: settings?.sendFromEmailAddress,
      sendFromEmailSenderName: settings?.sendFromEmailSenderName,
      replyToEmailAddress: settings?.replyToEmailAddress,
    }),
  };
}
