import { hash } from 'node:crypto';

/*
 * HMAC (RFC 2104) is two digests over these two blocks. `hash` takes a quarter of the time of `createHmac`, and its text of one
 * character a byte half of that of its Buffer.
 */
const [blockLength, innerPad, outerPad] = [64, 0x36, 0x5c];
/** K ⊕ ipad ‖ V ‖ 0 or 1 ‖ key ‖ digest: what every step of RFC 6979 hashes is this or its beginning. */
const inner = new Uint8Array(blockLength + 32 + 1 + 32 + 32);
const innerUpToValue = inner.subarray(0, blockLength + 32);
const innerUpToByte = inner.subarray(0, blockLength + 33);
const value = inner.subarray(blockLength, blockLength + 32);
const byteAt = blockLength + 32;
/** K ⊕ opad ‖ the inner digest. */
const outer = new Uint8Array(blockLength + 32);

/**
 * Nonces as RFC 6979, section 3.2, makes them with SHA-256 for an order of 256 bits, one after the other until `use`
 * returns something. `digest` is below the order, as the key is, both of 32 bytes. The nonce is wiped after `use`, which
 * must not ask for others. No bytes are left of the key; as text of a character a byte, K and V stay until they are collected.
 */
export function withNonce<Made>(
  privateKey: Uint8Array,
  digest: Uint8Array,
  use: (nonce: Uint8Array) => Made | undefined,
): Made {
  try {
    // Steps B and C.
    inner.fill(innerPad, 0, blockLength);
    outer.fill(outerPad, 0, blockLength);
    value.fill(1);
    inner[byteAt] = 0;
    inner.set(privateKey, byteAt + 1);
    inner.set(digest, byteAt + 33);
    // Steps D to G.
    setKey(mac(inner));
    put(mac(innerUpToValue), value);
    inner[byteAt] = 1;
    setKey(mac(inner));
    put(mac(innerUpToValue), value);
    // Step H.
    for (;;) {
      put(mac(innerUpToValue), value);
      const made = use(value);
      if (made !== undefined) return made;
      inner[byteAt] = 0;
      setKey(mac(innerUpToByte));
      put(mac(innerUpToValue), value);
    }
  } finally {
    inner.fill(0);
    outer.fill(0);
  }
}

/** HMAC under K of what follows it in `blocks`. */
function mac(blocks: Uint8Array): string {
  put(hash('sha256', blocks, 'binary'), outer, blockLength);
  return hash('sha256', outer, 'binary');
}

function setKey(key: string): void {
  for (let at = 0; at < 32; at++) {
    const byte = key.charCodeAt(at);
    inner[at] = byte ^ innerPad;
    outer[at] = byte ^ outerPad;
  }
}

function put(text: string, into: Uint8Array, from = 0): void {
  for (let at = 0; at < 32; at++) into[from + at] = text.charCodeAt(at);
}
