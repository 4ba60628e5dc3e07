import { Inject, Injectable } from '@nestjs/common';
import type { Stamp } from '../stamps/stamp.js';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CONFIG } from '../config/config.token.js';
import type { Config } from '../config/config.js';
import { CoordinatorError } from '../domain/errors.js';
import { networksOf } from '../rate-limits/caller.js';
import { KeyedLimit } from '../rate-limits/keyed-limit.js';
import type { OnKnown } from '../coordinator/read-submit.js';
import type { SessionHeader } from '../stamps/session-header.js';

interface Limit {
  readonly perSecond: number;
  readonly limiter: KeyedLimit;
}

/** Requests per second for one address, one organization and one credential. Off unless configured. */
@Injectable()
export class RateLimits {
  private readonly address: Limit | undefined;
  private readonly organization: Limit | undefined;
  private readonly credential: Limit | undefined;

  constructor(@Inject(CONFIG) { rateLimits, rateLimitKeys: maxKeys }: Config) {
    this.address = limitOf(rateLimits.perAddress, 'from one address', maxKeys);
    this.organization = limitOf(rateLimits.perOrganization, 'for one organization', maxKeys);
    this.credential = limitOf(rateLimits.perCredential, 'with one credential', maxKeys);
  }

  private get isOn(): boolean {
    return Boolean(this.address ?? this.organization ?? this.credential);
  }

  /**
   * Counts one request for an address and a credential, and puts the tightest limit into the response headers
   * (`ratelimit-limit`, `ratelimit-remaining`). Returns what notes its organization and credential, and counts it for the organization, once,
   * as soon as it is known to be of a user who may be heard there: strangers must not use up what is the organization's. A passkey counts
   * then, too: until its signature is verified, whoever knows its id may have named it, and counts by network.
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED, now or then
   */
  check(request: FastifyRequest, reply: FastifyReply, by: Stamp | SessionHeader): OnKnown {
    const { caller, facts } = request;
    const note = (organizationId: string, credentialId: string): void => {
      facts.organizationId = organizationId;
      facts.credentialId = credentialId;
    };
    if (!this.isOn) return note;
    // All clients of an auth proxy share its key and organization, but one must not use up what others are entitled to.
    const through = caller.isThroughProxy ? ` ${caller.network}` : '';
    consume(this.address, networksOf(caller.network), reply);
    const isPasskey = by.kind === 'webauthn';
    consume(this.credential, isPasskey ? `${caller.network} ${by.credentialId}` : credentialIn(by) + through, reply);
    let isCounted = false;
    return (organizationId, credentialId) => {
      note(organizationId, credentialId);
      if (isCounted) return;
      isCounted = true;
      if (isPasskey) consume(this.credential, `passkey ${credentialId}${through}`, reply);
      consume(this.organization, organizationId + through, reply);
    };
  }
}

/** Identifies the credential of a request; the sender may have invented it. */
export function credentialIn(by: Stamp | SessionHeader): string {
  if (by.kind === 'session') return by.token;
  return by.kind === 'webauthn' ? by.credentialId : by.publicKey;
}

function limitOf(perSecond: number | undefined, what: string, maxKeys: number): Limit | undefined {
  if (perSecond === undefined) return undefined;
  const name = `${perSecond} requests a second ${what}`;
  return { perSecond, limiter: new KeyedLimit({ most: perSecond, windowMs: 1_000, name, maxKeys }) };
}

function consume(limit: Limit | undefined, keys: string | readonly string[], reply: FastifyReply): void {
  if (!limit) return;
  try {
    tell(reply, limit, limit.limiter.take(keys));
  } catch (refusal) {
    if (refusal instanceof CoordinatorError) tell(reply, limit, 0);
    throw refusal;
  }
}

function tell(reply: FastifyReply, { perSecond }: Limit, remaining: number): void {
  const known = reply.getHeader('ratelimit-remaining');
  if (known !== undefined && Number(known) <= remaining) return;
  void reply.header('ratelimit-limit', String(perSecond)).header('ratelimit-remaining', String(remaining));
}
