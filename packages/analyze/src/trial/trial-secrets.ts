import { sealMessage, sealTextBundle } from 'countersign/internal';
/** A key of an account at an on-ramp, sealed to a P-256 key in hex as a client does (docs/protocol.md, secrets of clients). */
export const sealedProviderKey = (secret: string, targetPublicKey: string): Promise<string> =>
  sealTextBundle(targetPublicKey, Buffer.from(secret));

/** Anything, sealed to the key in a bundle of the coordinator as a client does. */
export async function sealedToBundle(bundle: string, secret: Uint8Array): Promise<string> {
  const { data } = JSON.parse(bundle) as { readonly data: string };
  const { targetPublic } = JSON.parse(Buffer.from(data, 'hex').toString()) as { readonly targetPublic: string };
  return JSON.stringify(await sealMessage(targetPublic, secret));
}
