/** What precedes a personal message when it is hashed, so that it can never be a transaction (EIP-191, version 0x45). @param length in bytes */
export function personalMessagePrefix(length: number): string {
  return `\x19Ethereum Signed Message:\n${length}`;
}
