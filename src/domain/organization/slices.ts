import type { Organization } from './organization.js';

/**
 * Every slice that is empty. Most organizations use few of them, and an empty map of its own takes 184 bytes: 25 of them were half of
 * a small organization. What all organizations share may never hold anything of one of them, so nothing can be set.
 */
export const nothing: ReadonlyMap<never, never> = Object.defineProperty(new Map<never, never>(), 'set', {
  value() {
    throw new TypeError('this map is shared by all organizations and stays empty: change a slice with `put`');
  },
});

type SliceName = {
  [Name in keyof Organization]: Organization[Name] extends ReadonlyMap<infer _Key, infer _Value> ? Name : never;
}[keyof Organization];

type KeyOf<Name extends SliceName> = Organization[Name] extends ReadonlyMap<infer Key, infer _Value> ? Key : never;
type ValueOf<Name extends SliceName> = Organization[Name] extends ReadonlyMap<infer _Key, infer Value> ? Value : never;

/** Puts a value into a slice of an accumulator. An empty map is replaced, whoever made it: a kept state may share it. */
export function put<Name extends SliceName>(
  organization: Organization,
  name: Name,
  key: KeyOf<Name>,
  value: ValueOf<Name>,
): void {
  const slices = organization as unknown as Record<Name, Map<KeyOf<Name>, ValueOf<Name>>>;
  if (slices[name].size === 0) slices[name] = new Map();
  slices[name].set(key, value);
}

/** Removes a value from a slice of an accumulator, if it is there. */
export function remove<Name extends SliceName>(organization: Organization, name: Name, key: KeyOf<Name>): void {
  const slices = organization as unknown as Record<Name, Map<KeyOf<Name>, ValueOf<Name>>>;
  if (slices[name].delete(key) && slices[name].size === 0) Reflect.set(organization, name, nothing);
}
