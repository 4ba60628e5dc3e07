import { activities } from '../../src/activities/index.js';
import { callerOf, checkMaySubmit } from '../../src/decide/caller.js';
import { submitQuestion } from '../../src/decide/authorization-request.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { homesOf, submittersOf } from '../../src/decide/submitters.js';
import { CoordinatorError } from '../../src/domain/errors.js';
import { authProxyEnabled } from '../../src/domain/organization/auth-proxy.js';
import {
  emptyOrganization,
  evolve,
  type Organization,
  type OrganizationEvent,
} from '../../src/domain/organization/organization.js';
import { anApiKey, anOrganization, aUser, publicKeyOf } from '../activities/facts.js';
import { id } from '../activities/given.js';

const created = Date.UTC(2026, 0, 1);
const [ann, bob, proxy] = [id(1), id(2), id(3)];
const registry = buildRegistry(activities);

function organization(organizationId: string, ...facts: readonly OrganizationEvent[]): Organization {
  const one = emptyOrganization();
  for (const fact of [anOrganization({ organizationId }), ...facts]) evolve(one, fact, created);
  return one;
}

const child = organization(id(700), aUser(ann), anApiKey(ann, 10));
const parent = organization(
  id(800),
  aUser(bob),
  anApiKey(bob, 20),
  ...authProxyEnabled({
    configId: id(810),
    userId: proxy,
    policyId: id(811),
    apiKeyId: id(812),
    vaultId: id(813),
    publicKey: publicKeyOf(30),
  }),
);
const keys = { ann: publicKeyOf(10), bob: publicKeyOf(20), proxy: publicKeyOf(30), nobody: publicKeyOf(99) };

let message: string | undefined;

/** Who submits, or the category of the refusal. */
function submitted(type: string, by: keyof typeof keys, where: Organization): string {
  const scheme = 'SIGNATURE_SCHEME_TK_API_P256' as const;
  const stamp = { kind: 'api-key', scheme, publicKey: keys[by], signature: '' } as const;
  const asked = { stamp, version: registry.versions.get(type)!, organizationId: where.organizationId };
  const above = where === child ? parent : undefined;
  try {
    const caller = callerOf(asked, where, above, created);
    checkMaySubmit(asked, caller, where, above);
    return caller.user.userId;
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    message = error.message;
    return error.category ?? error.code;
  }
}

describe('who may submit', () => {
  const inChild = (type: string) =>
    (['ann', 'bob', 'proxy', 'nobody'] as const).map((by) => submitted(type, by, child));
  const inParent = (type: string) => (['bob', 'proxy'] as const).map((by) => submitted(type, by, parent));
  const notHere = 'ORGANIZATION_MISMATCH';
  const refused = 'REQUEST_NOT_AUTHORIZED';
  const unknown = 'PUBLIC_KEY_NOT_FOUND';

  test.each([
    ['ACTIVITY_TYPE_CREATE_POLICY_V3', [ann, notHere, notHere, unknown], [bob, proxy]],
    ['ACTIVITY_TYPE_DELETE_SUB_ORGANIZATION', [ann, notHere, notHere, unknown], [bob, proxy]],
    ['ACTIVITY_TYPE_OAUTH_LOGIN', [ann, bob, proxy, unknown], [bob, refused]],
    ['ACTIVITY_TYPE_STAMP_LOGIN', [ann, notHere, notHere, unknown], [bob, refused]],
    ['ACTIVITY_TYPE_RELEASE_CONTACT', [unknown, bob, refused, unknown], [refused, refused]],
    ['ACTIVITY_TYPE_ACCEPT_INVITATION', [unknown, unknown, unknown, unknown], [unknown, unknown]],
  ])('%s', (type, child, parent) => {
    expect({ child: inChild(type), parent: inParent(type) }).toEqual({ child, parent });
  });

  test('the auth proxy is told what it cannot do', () => {
    submitted('ACTIVITY_TYPE_RELEASE_CONTACT', 'proxy', child);
    expect(message).toContain('and not through its auth proxy');
    submitted('ACTIVITY_TYPE_OAUTH_LOGIN', 'proxy', parent);
    expect(message).toContain('must name one of its sub-organizations');
  });

  test('a session is a user’s own; the auth proxy needs its policy for one', () => {
    const context = { registry, organization: parent, revision: 0, now: created };
    const credential = { id: id(900), type: 'CREDENTIAL_TYPE_API_KEY_P256', publicKey: keys.bob } as const;
    const voter = (userId: string) => ({ userId, authority: undefined, credential: { ...credential, userId } });
    const own = (type: string, userId: string) =>
      submitQuestion(context, { type, intent: {} }, { publicKey: keys.bob }, voter(userId)).questionOn({
        resources: undefined,
      }).ownCredentials;
    expect(own('ACTIVITY_TYPE_STAMP_LOGIN', bob)).toBe('session');
    expect(own('ACTIVITY_TYPE_ACCEPT_INVITATION', bob)).toBe('session');
    expect(own('ACTIVITY_TYPE_STAMP_LOGIN', proxy)).toBe(false);
    expect(own('ACTIVITY_TYPE_CREATE_POLICY_V3', bob)).toBe(false);
  });

  test('the credential of a verb for the parent’s members is looked up there only', () => {
    const homes = (type: string, above: Organization | undefined) =>
      homesOf(registry.versions.get(type)!.definition, child, above);
    expect(homes('ACTIVITY_TYPE_RELEASE_CONTACT', parent)).toEqual({ organization: parent, parent: undefined });
    expect(homes('ACTIVITY_TYPE_RELEASE_CONTACT', undefined).organization).toBe(child);
    expect(homes('ACTIVITY_TYPE_OAUTH_LOGIN', parent)).toEqual({ organization: child, parent, isParentsToo: true });
    expect(homes('ACTIVITY_TYPE_STAMP_LOGIN', parent)).toEqual({ organization: child, parent, isParentsToo: false });
  });

  test('the reference tells it of every verb that not every user submits', () => {
    const told = (type: string) => submittersOf(registry.versions.get(type)!.definition).about;
    expect(told('ACTIVITY_TYPE_CREATE_POLICY_V3')).toBeUndefined();
    expect(told('ACTIVITY_TYPE_DELETE_SUB_ORGANIZATION')).toMatch(/root quorum/);
    expect(told('ACTIVITY_TYPE_OAUTH_LOGIN')).toMatch(/parent organization/);
    expect(told('ACTIVITY_TYPE_STAMP_LOGIN')).toMatch(/id of its parent/);
    expect(told('ACTIVITY_TYPE_RELEASE_CONTACT')).toMatch(/members of the parent/);
    expect(told('ACTIVITY_TYPE_ACCEPT_INVITATION')).toMatch(/invitation/);
  });
});
