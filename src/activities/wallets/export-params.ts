import { CoordinatorError } from '../../domain/errors.js';
import type { PolicyType } from '../../domain/policy/types.js';
import { parsePublicKey, uncompressPublicKey } from '../../keyring/curves.js';
import { Hex } from '../../wire/fields.js';

/** Declares the key that an export is sealed to. Only its holder can open the bundle (docs/protocol.md, export bundles). */
export function TargetPublicKey(): PropertyDecorator {
  return Hex({
    max: 130,
    about:
      'P-256 public key to which the bundle is sealed, hex, uncompressed or compressed. Generate a new one for each export.',
  });
}

/** @throws {CoordinatorError} INVALID_ARGUMENT unless it is a P-256 point */
export function checkTargetPublicKey(targetPublicKey: string): void {
  uncompressed(targetPublicKey);
}

/** The type of `activity.params.target_public_key`. */
export const targetPublicKeyType: PolicyType = { kind: 'string', hex: 'always' };

/** What policies see: the uncompressed form, in whichever form it was sent. */
export function targetPublicKeyValue(targetPublicKey: string): string {
  try {
    return uncompressed(targetPublicKey);
  } catch (error) {
    // The check, which runs later, refuses it.
    if (error instanceof CoordinatorError) return targetPublicKey;
    throw error;
  }
}

function uncompressed(targetPublicKey: string): string {
  const point = parsePublicKey('CURVE_P256', targetPublicKey, 'parameters.targetPublicKey');
  return uncompressPublicKey('CURVE_P256', point).toString('hex');
}
