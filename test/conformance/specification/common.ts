import { flag, map, object, optional, required, text, type Field } from './shape.js';

/** Section 4.2: members of every submit body beside `parameters`. */
export const submitEnvelope: readonly Field[] = [
  required('type', text()),
  required('timestampMs', text({ form: 'decimal' })),
  required('organizationId', text({ form: 'uuid' })),
  required('parameters', object()),
  optional('generateAppProofs', flag),
];

/** Section 2, the activity: members of `activity` in the answer of every submit. */
export const activity: readonly Field[] = [
  required('id', text()),
  required('organizationId', text()),
  required('status', text()),
  required('type', text()),
  required('intent', map),
  required('result', map),
  required('votes', { kind: 'list', of: map }),
  required('fingerprint', text()),
  required('canApprove', flag),
  required('canReject', flag),
  required('createdAt', text()),
  required('updatedAt', text()),
  // From the example response.
  required('timestampMs', text()),
];

/** Section 3. */
export const completed = 'ACTIVITY_STATUS_COMPLETED';

/** Section 5 and client protocol, section 3.2: HTTP status and google.rpc.Code of what the walk provokes. */
export const refusals = {
  invalid: { status: 400, code: 3 },
  unauthenticated: { status: 401, code: 16 },
  denied: { status: 403, code: 7 },
  missing: { status: 404, code: 5 },
} as const;

/** Client protocol, section 11: a submit is taken that is less than this old, in milliseconds. */
export const maxAgeMs = 3_600_000;
/** Client protocol, section 11: and at most so far ahead. */
export const maxAheadMs = 300_000;

/** Section 5. */
export const headers = {
  stamp: 'X-Stamp',
  passkeyStamp: 'X-Stamp-WebAuthn',
  config: 'X-Auth-Proxy-Config-Id',
} as const;

/** Section 8: paginationOptions.limit. */
export const pageLimit = { least: 1, most: 100, usual: 10 } as const;
