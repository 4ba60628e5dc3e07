import { updateOrganizationName } from '../../../src/activities/organization/update-organization-name.js';
import { anOrganization } from '../facts.js';
import { given, id } from '../given.js';

describe('update organization name', () => {
  it('renames the organization', () =>
    given(anOrganization())
      .when(updateOrganizationName, { organizationName: 'Acme Two' })
      .then([{ type: 'OrganizationRenamed', data: { name: 'Acme Two' } }], {
        organizationId: id(700),
        organizationName: 'Acme Two',
      }));

  it('refuses a name with control characters', () =>
    given(anOrganization())
      .when(updateOrganizationName, { organizationName: 'Acme\u0007' })
      .thenRefused('INVALID_ARGUMENT', /parameters\.organizationName: must be text without control characters/));
});
