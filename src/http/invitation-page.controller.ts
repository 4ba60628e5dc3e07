import { Controller, Get, Param, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { CoordinatorError } from '../domain/errors.js';
import { invitationCss, invitationHtml, invitationScript } from './invitation-page.js';

/** Only content from this server, in no frame, and no referrer that would leak the link. */
const headers = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
    "frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
} as const;

const files: Readonly<Record<string, readonly [contentType: string, text: string]>> = {
  accept: ['text/html; charset=utf-8', invitationHtml],
  'accept.css': ['text/css; charset=utf-8', invitationCss],
  'accept.js': ['text/javascript; charset=utf-8', invitationScript],
};

/** The target of invitation links, unless INVITATION_URL says otherwise. */
@Controller('invitations')
export class InvitationPageController {
  @Get(':file')
  file(@Param('file') name: string, @Res({ passthrough: true }) reply: FastifyReply): string {
    const [contentType, text] = (Object.hasOwn(files, name) ? files[name] : undefined) ?? [];
    if (contentType === undefined || text === undefined) {
      throw new CoordinatorError('NOT_FOUND', 'page not found: accept invitations at /invitations/accept');
    }
    void reply.headers(headers).type(contentType);
    return text;
  }
}
