import { Label, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class UpdateOrganizationNameIntent {
  @Label({ about: 'The new name of the organization.' })
  organizationName!: string;
}

class UpdateOrganizationNameResult {
  @Uuid()
  organizationId!: string;

  @Label()
  organizationName!: string;
}

/** Renames the organization. */
export const updateOrganizationName = defineActivity({
  type: 'ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME',
  summary: 'Renames the organization.',
  intent: UpdateOrganizationNameIntent,
  result: UpdateOrganizationNameResult,
  policy: 'root-quorum-only',

  decide({ organizationName }, { organization: { organizationId } }) {
    return {
      events: [{ type: 'OrganizationRenamed', data: { name: organizationName } }],
      result: { organizationId, organizationName },
    };
  },
});
