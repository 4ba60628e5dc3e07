/** A JSON value without the members of objects that are null, which means absent (docs/protocol.md, request bodies). */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  const kept: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const member = (value as Readonly<Record<string, unknown>>)[name];
    if (member !== null) kept[name] = withoutNulls(member);
  }
  return kept;
}
