import { Described, Uuid } from '../wire/fields.js';
import { defineQuery, OrganizationRequest } from './define-query.js';

// There is no second factor besides votes, and there are no session profiles: clients that ask get empty lists.

class GetMfaStatusRequest extends OrganizationRequest {
  @Uuid({ about: 'The activity.' })
  activityId!: string;

  @Uuid({ optional: true, about: 'Only of this user.' })
  userId?: string;
}

class GetMfaStatusResponse {
  @Described({ type: 'array', maxItems: 0, items: {} }, { about: 'Always empty.' })
  mfaStatuses!: readonly never[];
}

class GetMfaPoliciesRequest extends OrganizationRequest {
  @Uuid({ optional: true, about: 'Only of this user.' })
  userId?: string;
}

class GetMfaPoliciesResponse {
  @Described({ type: 'array', maxItems: 0, items: {} }, { about: 'Always empty.' })
  mfaPolicies!: readonly never[];
}

class GetSessionProfilesResponse {
  @Described({ type: 'array', maxItems: 0, items: {} }, { about: 'Always empty.' })
  sessionProfiles!: readonly never[];
}

export const getMfaStatus = defineQuery({
  path: 'get_mfa_status',
  summary: 'Second factors that an activity waits for: none, as this server has only votes.',
  request: GetMfaStatusRequest,
  response: GetMfaStatusResponse,
  answer: () => ({ mfaStatuses: [] }),
});

export const getMfaPolicies = defineQuery({
  path: 'get_mfa_policies',
  summary: 'Policies for second factors: none, as this server has only votes.',
  request: GetMfaPoliciesRequest,
  response: GetMfaPoliciesResponse,
  answer: () => ({ mfaPolicies: [] }),
});

export const getSessionProfiles = defineQuery({
  path: 'get_session_profiles',
  summary: 'Profiles of sessions: none, as every session is that of its user.',
  request: OrganizationRequest,
  response: GetSessionProfilesResponse,
  answer: () => ({ sessionProfiles: [] }),
});
