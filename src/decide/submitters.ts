import type { AnyDefinition, StampKind, SubmittedBy } from '../activities/define-activity.js';
import type { OrganizationView } from '../domain/organization/organization.js';

/** The answers of a rule about who submits a verb. A rule that leaves one out does not compile. */
interface SubmitterRule {
  /** Whether users of the parent submit it in a sub-organization. */
  readonly parents: 'not' | 'too' | 'only';
  /** What the key of an auth proxy, which acts for strangers, may do with it. */
  readonly proxy: 'as-policies-say' | 'not-in-its-own-organization' | 'nothing';
  /** Whether somebody must allow it, or everybody may do it unless a policy denies it. */
  readonly needs: 'an-allow' | 'no-denial';
  /**
   * Whether the submitter is a user already, whom the verb refuses unless they are in the root quorum, or becomes one by it: then
   * the invitation's key stamps.
   */
  readonly is: 'a-user' | 'a-root-user' | 'invited';
  /** Whether the body names the organization, or may name the parent of the one where the credential lives. */
  readonly names: 'the-organization' | 'its-parent-too';
  /** For the reference; nothing if it goes without saying. */
  readonly about?: string;
}

const ordinary = {
  parents: 'not',
  proxy: 'as-policies-say',
  needs: 'an-allow',
  is: 'a-user',
  names: 'the-organization',
} as const satisfies SubmitterRule;

const rules: Readonly<Record<SubmittedBy, SubmitterRule>> = {
  user: ordinary,
  'root-user': { ...ordinary, is: 'a-root-user', about: 'Only a member of the root quorum may submit it.' },
  'user-or-parent': {
    ...ordinary,
    parents: 'too',
    proxy: 'not-in-its-own-organization',
    about: 'A credential of the parent organization may submit it.',
  },
  'user-who-logs-in': {
    ...ordinary,
    proxy: 'not-in-its-own-organization',
    needs: 'no-denial',
    names: 'its-parent-too',
    about: 'If the credential belongs to a sub-organization, the id of its parent also works.',
  },
  parent: {
    ...ordinary,
    parents: 'only',
    proxy: 'nothing',
    about: 'Only members of the parent submit it, in a sub-organization, and not through its auth proxy.',
  },
  invitee: {
    ...ordinary,
    needs: 'no-denial',
    is: 'invited',
    about: 'The key of an invitation submits it, for the user who is invited.',
  },
};

/** The rule about who submits a verb. Votes come from users themselves. */
export function submittersOf(definition: AnyDefinition): SubmitterRule {
  return rules[(definition.kind === 'activity' && definition.submittedBy) || 'user'];
}

const usualStamps: readonly StampKind[] = ['api-key', 'webauthn'];

/** The kinds of stamps that a verb takes. */
export function stampsOf(definition: AnyDefinition): readonly StampKind[] {
  return (definition.kind === 'activity' && definition.stamps) || usualStamps;
}

/** The organizations in which the credential of a stamp is looked up: the first that has it wins. */
export interface Homes {
  readonly organization: OrganizationView;
  readonly parent: OrganizationView | undefined;
  /** Whether users of the parent submit it in the organization, too. */
  readonly isParentsToo?: boolean;
}

/** For verbs that only the parent's members submit, the parent: users of a sub-organization may have registered any public key. */
export function homesOf(
  definition: AnyDefinition,
  organization: OrganizationView,
  parent: OrganizationView | undefined,
): Homes {
  const { parents } = submittersOf(definition);
  const isParents = parents === 'only' && parent !== undefined;
  if (isParents) return { organization: parent, parent: undefined };
  return { organization, parent, isParentsToo: parents === 'too' };
}
