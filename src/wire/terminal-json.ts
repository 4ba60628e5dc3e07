/**
 * JSON, on one line unless `indent` is given; a position of the store may exceed 2^53. Characters that a terminal may act on
 * are escapes: the value is the same.
 */
export function asJson(value: unknown, indent?: number): string {
  const plain = (_key: string, member: unknown) => (typeof member === 'bigint' ? String(member) : member);
  const text = `${JSON.stringify(value, plain, indent)}`;
  return text.replace(/[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu, (found) =>
    Array.from({ length: found.length }, (_, at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
      '',
    ),
  );
}
