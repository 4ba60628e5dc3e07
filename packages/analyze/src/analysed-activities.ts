import { type Registry, readsResources, stampsOf, submittersOf } from 'countersign/internal';
/** An activity, as far as who may do it depends on it. */
export interface AnalysedActivity {
  readonly type: string;
  readonly kind: string;
  /** None of an activity that only the root quorum decides on. */
  readonly resource?: string;
  readonly action?: string;
  readonly isRootOnly: boolean;
  /** Conditions can read wallets, keys or transactions of it. */
  readonly hasResources: boolean;
  /** The names of `activity.params` that it exposes. */
  readonly params: readonly string[];
  /** Whether it may manage the submitter's own credentials; `session`: everybody may do it for themselves. */
  readonly own: 'never' | 'maybe' | 'session';
  /** It never waits for votes: its submitter must be allowed alone. */
  readonly isAtOnce: boolean;
  /** Whatever policies say: a user, a member of the root quorum, or somebody who is invited and thus in none. */
  readonly submitter: 'a-user' | 'a-root-user' | 'invited';
  /** Whether it may be submitted with a passkey; votes always may. */
  readonly takesPasskeys: boolean;
}

/** Every activity of a build. */
export function analysedActivities({ versions }: Registry): readonly AnalysedActivity[] {
  return Array.from(versions.values()).flatMap(({ type, kind, definition }): AnalysedActivity[] => {
    if (definition.kind !== 'activity') return [];
    const { policy, params = {} } = definition;
    const { needs, parents, is } = submittersOf(definition);
    return [
      {
        type,
        kind,
        ...(policy === 'root-quorum-only' ? {} : { resource: policy.resource, action: policy.action }),
        isRootOnly: policy === 'root-quorum-only',
        hasResources: readsResources(definition),
        params: Object.keys(params),
        own: needs === 'no-denial' ? 'session' : definition.ownCredentialsOf ? 'maybe' : 'never',
        // As a decision has it (decide/submit.ts): where it would wait, nobody could vote, or get its result.
        isAtOnce: parents === 'only' || definition.reveal !== undefined,
        submitter: is,
        takesPasskeys: stampsOf(definition).includes('webauthn'),
      },
    ];
  });
}
