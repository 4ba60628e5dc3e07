/** UUID of any version (RFC 9562, section 4), as callers may write it: in any letter case. */
export const uuidPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Ids are recorded in lower case, and hashed so. */
const recordedPattern = new RegExp(uuidPattern.source);

export const isUuid = (text: string): boolean => uuidPattern.test(text);

/** Whether it is an id as one is recorded. */
export const isRecordedId = (text: string): boolean => recordedPattern.test(text);
