import type { OrganizationView } from '../../domain/organization/organization.js';
import type { Vote } from '../../domain/activity/events.js';
import { rulesNumber } from '../../domain/activity/rules.js';
import type {
  ClausePartShape,
  ClauseProofShape,
  FactChangeShape,
  PartProofShape,
  ProofAnswer,
  SetByShape,
  ValueSourceShape,
} from '../../read-models/explanations.js';
import type { Change } from './changes.js';
import type { Flips } from './flips.js';
import type { EventPlace, Origins } from './origins.js';
import type { PolicyTold, Proof } from './proof.js';
import { mostVotes } from './proof-size-limit.js';
import { onOneLine } from './shown-value.js';
import type { Source } from './sources.js';
import type { ClauseExplanation } from './clause-explanation.js';
import type { PartExplanation } from './part-explanation.js';

/** An organization, and which event set what in it; its id only for a parent. */
interface Known {
  readonly organization: OrganizationView;
  readonly origins: Origins;
  readonly organizationId?: string;
}

/** What is needed to tell where values come from. */
export interface ProofTask {
  /** The organization of the activity. */
  readonly own: Known;
  /** Whose users and policies decide: the same, or its parent. */
  readonly home: Known;
  /** The event that recorded the request, if it is recorded. */
  readonly request: EventPlace | undefined;
  /** Approvals, in vote order, with the events that recorded them. */
  readonly votes: readonly (Pick<Vote, 'userId'> & { readonly place: EventPlace | undefined })[];
  readonly revision: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** A proof for its readers: with the event that set each value, and with names. */
export function explainProof(proof: Proof, { flips, isCut }: Flips, of: ProofTask): Required<ProofAnswer>['proof'] {
  return new ProofTelling(of).told(proof, flips, isCut);
}

class ProofTelling {
  constructor(private readonly of: ProofTask) {}

  told(proof: Proof, flips: Flips['flips'], areFlipsCut: boolean): Required<ProofAnswer>['proof'] {
    const { outcome, by, rootQuorum, parts, waitsForMember, isOutOfReach, isRootQuorumOnly, isCut } = proof;
    const { home, revision, at } = this.of;
    const quorumSetBy = this.setBy(home, home.origins.ofRootQuorum());
    return {
      outcome,
      decidedBy: by,
      text: this.sentence(proof),
      revision: String(revision),
      rules: rulesNumber,
      decidedAt: new Date(at).toISOString(),
      ...(home.organizationId === undefined ? {} : { authorityId: home.organizationId }),
      ...(waitsForMember === undefined ? {} : { waitsForMember }),
      ...(isOutOfReach ? { isOutOfReach } : {}),
      isRootQuorumOnly,
      rootQuorum: { ...rootQuorum, ...(quorumSetBy ? { setBy: quorumSetBy } : {}) },
      parts: { texts: parts.map((part) => JSON.stringify(this.part(part))), hasMore: false },
      flips: flips.map(({ outcome: flipped, changes }) => ({
        outcome: flipped,
        changes: changes.map((change) => this.change(change)),
      })),
      ...(isCut ? { isCut } : {}),
      ...(areFlipsCut ? { flipsAreCut: true } : {}),
    };
  }

  private part({ policies, ...part }: Proof['parts'][number]): PartProofShape {
    return { ...part, policies: policies.map((policy) => this.policy(policy)) };
  }

  private policy({ clauses, ...policy }: PolicyTold) {
    const { home } = this.of;
    const setBy = this.setBy(home, home.origins.of('policy', policy.policyId, 'effect'));
    const told = clauses.map((clause) => this.clause(policy.policyId, clause));
    const { doubt, ...rest } = policy;
    return { ...rest, ...(doubt === undefined ? {} : { doubt }), ...(setBy ? { setBy } : {}), clauses: told };
  }

  private clause(policyId: string, { tree, ...clause }: ClauseExplanation): ClauseProofShape {
    const { home } = this.of;
    const setBy = this.setBy(home, home.origins.ofClause(policyId, clause.clause));
    return { ...clause, ...(setBy ? { setBy } : {}), parts: tree ? [...this.lines(tree, 0)] : [] };
  }

  private *lines({ parts = [], source, ...part }: PartExplanation, depth: number): Generator<ClausePartShape> {
    const from = source ? this.from(source) : [];
    yield { depth, ...part, ...(from.length > 0 ? { from } : {}) };
    for (const inner of parts) yield* this.lines(inner, depth + 1);
  }

  private from(source: Source): readonly ValueSourceShape[] {
    const { own, home, request, votes } = this.of;
    switch (source.of) {
      case 'time':
        return [{ of: 'time' }];
      case 'request': {
        const setBy = this.setBy(own, request);
        return [{ of: 'request', ...(setBy ? { setBy } : {}) }];
      }
      case 'approvals':
        return votes.slice(0, mostVotes).map(({ userId, place }) => {
          const setBy = this.setBy(own, place);
          return { of: 'vote', id: userId, ...this.named(userId), ...(setBy ? { setBy } : {}) };
        });
      default: {
        const { of, id, field } = source;
        const known = of === 'user' || of === 'credential' ? home : own;
        const setBy = this.setBy(known, known.origins.of(of, id, field));
        return [{ of, id, ...this.named(id), ...(setBy ? { setBy } : {}) }];
      }
    }
  }

  private setBy({ organizationId }: Known, place: EventPlace | undefined): SetByShape | undefined {
    if (!place) return undefined;
    const { type, revision, eventId } = place;
    return { type, revision: String(revision), eventId, ...(organizationId === undefined ? {} : { organizationId }) };
  }

  private change(change: Change): FactChangeShape {
    return { ...change, text: this.words(change) };
  }

  private words(change: Change): string {
    switch (change.kind) {
      case 'vote':
        return `${this.nameOf(change.userId)} approves`;
      case 'asked-by':
        return `${this.nameOf(change.userId)} asks for it`;
      case 'tag-added':
        return `${this.nameOf(change.userId)} has tag ${this.nameOf(change.tagId)}`;
      case 'tag-removed':
        return `${this.nameOf(change.userId)} does not have tag ${this.nameOf(change.tagId)}`;
      case 'policy-gone':
        return `policy ${this.nameOf(change.policyId)} is deleted`;
      case 'clause-gone':
        return `policy ${this.nameOf(change.policyId)} has no ${change.clause}`;
      case 'root-quorum-member':
        return `${this.nameOf(change.userId)} is in the root quorum`;
    }
  }

  private sentence({ outcome, by, waitsForMember, isOutOfReach, parts }: Proof): string {
    const worst = parts.filter((part) => part.outcome === outcome);
    const deciding = worst.flatMap(({ policies }) => policies.filter(({ isDeciding }) => isDeciding));
    const names = [...new Set(deciding.map(({ policyId }) => this.nameOf(policyId)))].slice(0, 3).join(', ');
    if (waitsForMember !== undefined) {
      return `Policies allow it, but it changes how ${this.nameOf(waitsForMember)}, a member of the root quorum, logs in.`;
    }
    if (isOutOfReach) return 'It needs votes, and nobody could cast one.';
    switch (outcome) {
      case 'allow':
        if (by === 'root-quorum') return 'The root quorum approved it.';
        return by === 'policy' ? `Allowed by ${names}.` : 'Allowed: users may manage their own credentials.';
      case 'deny-explicit':
        return `Denied by ${names}.`;
      case 'deny-implicit':
        return 'Denied: no policy allows it.';
      case 'consensus-needed':
        if (worst.some(({ decidedBy }) => decidedBy === 'denials')) {
          return `Denied by ${names}; the root quorum may still approve it.`;
        }
        return names === '' ? 'It waits for the root quorum.' : `It waits for votes: ${names}.`;
    }
  }

  private named(id: string): { readonly name?: string } {
    const name = this.knownName(id);
    return name === undefined ? {} : { name: onOneLine(name, 60) };
  }

  private nameOf(id: string): string {
    const name = this.knownName(id);
    return name === undefined ? `\`${onOneLine(id)}\`` : `“${onOneLine(name, 60)}”`;
  }

  private knownName(id: string): string | undefined {
    const { users, policies, userTags } = this.of.home.organization;
    const { wallets, privateKeys } = this.of.own.organization;
    return (
      users.get(id)?.userName ??
      policies.get(id)?.policyName ??
      userTags.get(id)?.tagName ??
      wallets.get(id)?.walletName ??
      privateKeys.get(id)?.privateKeyName
    );
  }
}
