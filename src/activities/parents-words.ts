import { presentMembers } from '../domain/organization/event.js';
import { speaksForParent, type MessageRequest } from '../domain/organization/message-senders.js';

/** What a message says and whose it is, as a request or a configuration has it. */
export interface MessageWords {
  /** Who asks, as the recipient reads it. */
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

/** Read by people whose parent organization is not known, which nothing of the product leads to. */
const nameless = 'your account';

/**
 * The parent's own words where a sub-organization's user asks for a message: those of its auth proxy, or else its name and
 * our standard text (security rule R6). Undefined where the request may choose them.
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
