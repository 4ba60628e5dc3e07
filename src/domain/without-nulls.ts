/** A JSON value without the members of objects that are null, which means absent (client protocol 2.8). */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  const kept: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    if (member !== null) kept[name] = withoutNulls(member);
  }
  return kept;
}
