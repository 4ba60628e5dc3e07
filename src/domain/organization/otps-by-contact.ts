import { contactKey } from '../contact-key.js';
import type { Otp } from './otps.js';

/** The ids of the codes of each contact, oldest first. */
interface ByContact {
  readonly ids: Map<string, Set<string>>;
  /** Of all contacts. */
  count: number;
}

/**
 * By the map of codes that they are about. Strangers can hold as many codes as a configuration lets in, tens of thousands, and each
 * code that somebody requests asks about those of one contact several times.
 */
const known = new WeakMap<ReadonlyMap<string, Otp>, ByContact>();

/** The codes of a contact, oldest first. */
export function otpsOfContact(otps: ReadonlyMap<string, Otp>, contact: string): Otp[] {
  if (otps.size === 0) return [];
  const ids = byContact(otps).ids.get(contactKey(contact)) ?? [];
  return Array.from(ids).flatMap((otpId) => otps.get(otpId) ?? []);
}

/** Keeps what is known up to date: called once the code has been put into the map. */
export function noteOtp(otps: ReadonlyMap<string, Otp>, otp: Otp): void {
  const index = known.get(otps);
  if (index) add(index, otp);
}

/** The same, once the code has been removed from the map. */
export function forgetOtp(otps: ReadonlyMap<string, Otp>, { otpId, contact }: Otp): void {
  const index = known.get(otps);
  const ids = index?.ids.get(contactKey(contact));
  if (!index || !ids?.delete(otpId)) return;
  index.count -= 1;
  if (ids.size === 0) index.ids.delete(contactKey(contact));
}

function byContact(otps: ReadonlyMap<string, Otp>): ByContact {
  const index = known.get(otps);
  // A map that something else has changed is gone through again.
  if (index?.count === otps.size) return index;
  const made: ByContact = { ids: new Map(), count: 0 };
  for (const otp of otps.values()) add(made, otp);
  known.set(otps, made);
  return made;
}

function add(index: ByContact, { otpId, contact }: Otp): void {
  const key = contactKey(contact);
  const ids = index.ids.get(key) ?? new Set();
  if (ids.has(otpId)) return;
  index.ids.set(key, ids.add(otpId));
  index.count += 1;
}
