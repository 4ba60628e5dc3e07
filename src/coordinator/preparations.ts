import type { AnyActivity } from '../activities/define-activity.js';
import { limitsToCheck, type Prepared } from '../decide/decision-context.js';
import { checkParentsTime, decisionTime } from '../decide/decision-time.js';
import { activityVersion, newestIntent } from '../decide/registry.js';
import { CoordinatorError } from '../domain/errors.js';
import { limitsSetFor } from '../domain/organization/limits.js';
import { openByFingerprint } from '../domain/organization/open-activities.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import { pathAmongAll } from '../fairness/fair-queue.js';
import type { Meter } from '../domain/steps.js';
import { uuidV7 } from '../ledger/ids.js';
import { Attempt } from './attempts.js';
import { readElsewhere } from './assemble-context.js';
import type { CoordinatorPorts } from './pending-request.js';
import type { SubmitRequest } from './read-submit.js';

/** Output of an attempt. */
export interface Made {
  readonly prepared: Prepared;
  readonly attempt: Attempt;
}

/** Runs `prepare`, the one step of a verb with side effects, and cleans up after attempts that have lost. */
export class Preparations {
  private readonly attempts = new Set<Attempt>();

  constructor(private readonly ports: CoordinatorPorts) {}

  /** Whether this process may still record something that names this vault. */
  isLive(vaultId: string): boolean {
    for (const { vaultIds } of this.attempts) if (vaultIds.includes(vaultId)) return true;
    return false;
  }

  /** Prepares a request that was allowed, and continues with the output; what is created stays live until then. */
  async run<Outcome>(
    request: SubmitRequest,
    submitterId: string,
    meter: Meter,
    next: (made: Made) => Promise<Outcome>,
  ): Promise<Outcome> {
    const { loader, clock, randomness } = this.ports;
    const { organizationId, fingerprint } = request;
    // Anything with side effects was allowed at the newest revision a moment ago.
    const { loaded } = await loader.held(organizationId);
    const { organization, revision, pending } = loaded;
    const vaultAttempt = {
      attemptId: uuidV7(clock, randomness),
      organizationId,
      fingerprint,
      // Events whose append is in progress may never be recorded.
      revision: revision - pending.length,
      at: clock.now(),
    };
    const path = pathAmongAll(request.from, organizationId, organization.parentOrganizationId);
    const attempt = new Attempt(vaultAttempt, submitterId, this.ports, path);
    this.attempts.add(attempt);
    try {
      const prepared = await this.prepare(request, organization, attempt, meter).catch(async (error: unknown) => {
        await this.lose(attempt);
        throw error;
      });
      return await next({ prepared, attempt });
    } finally {
      this.attempts.delete(attempt);
    }
  }

  /** Creations of attempts that will never be recorded are destroyed at once. */
  async lose(...attempts: readonly Attempt[]): Promise<void> {
    await Promise.all(attempts.flatMap((attempt) => attempt.end([])).map((vaultId) => this.ports.shred(vaultId)));
  }

  private async prepare(
    { version, intent }: SubmitRequest,
    organization: OrganizationView,
    attempt: Attempt,
    meter: Meter,
  ): Promise<Prepared> {
    const { registry, loader, prepare, clock, reading } = this.ports;
    let target = { definition: version.definition, intent };
    if (version.definition.kind === 'vote') {
      const open = openByFingerprint(organization, (intent as { fingerprint: string }).fingerprint);
      // If it was finished while it was being prepared, the decision says so.
      if (!open) return undefined;
      const voted = activityVersion(registry, open.type);
      target = { definition: voted.definition, intent: newestIntent(voted, open.intent) };
    }
    const definition = target.definition as AnyActivity;
    const parent = (await loader.parentOf(organization))?.organization;
    const { submitterId } = attempt;
    const set = limitsSetFor(organization, parent, this.ports.limits);
    const { limits, subOrganizationLimits } = limitsToCheck({ organization, limits: set });
    const context = {
      limits,
      subOrganizationLimits,
      organization,
      parent,
      submitterId,
      now: decisionTime(clock, organization, parent),
      checkParentsTime: () => parent && checkParentsTime(clock, parent),
      newId: () => attempt.newId(),
    };
    try {
      // Based on another organization than the decision was: it may have changed since.
      const toRead = reading ? definition.ahead?.(target.intent, organization, meter.reading) : undefined;
      if (toRead) await readElsewhere(this.ports, toRead, organization, meter);
      const ports = prepare(attempt);
      const value = definition.sign
        ? definition.sign(target.intent, ports.keyring, context)
        : definition.prepare?.(target.intent, ports, context);
      return { value: await value };
    } catch (error) {
      // The decision determines whether this refuses the request or fails an activity that was voted on.
      if (error instanceof CoordinatorError) return { refusal: error };
      throw error;
    }
  }
}
