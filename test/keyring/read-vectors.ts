import { readFileSync } from 'node:fs';
import type { AddressFormat, Curve } from '../../src/domain/key-formats.js';
import type { SignatureScheme } from '../../src/keyring/signing.js';

/** The content of a JSON file below `test/vectors`. */
export function readVectors<Content>(path: string): Content {
  return JSON.parse(readText(path)) as Content;
}

/** The text of a file below `test/vectors`. */
export function readText(path: string): string {
  return readFileSync(new URL(`../vectors/${path}`, import.meta.url), 'utf8');
}

export const fromHex = (hex: string): Buffer => Buffer.from(hex.replace(/^0x/, ''), 'hex');

/** A key in `addresses/oracle.json`, with what the chains' own SDKs say about it. */
export interface OracleAccount {
  readonly curve: Curve;
  readonly seed?: string;
  readonly path?: string;
  readonly privateKey: string;
  readonly addresses: Partial<Record<AddressFormat, string>>;
  readonly digest: string;
  readonly signatures: Partial<Record<SignatureScheme, string>>;
}

export const oracle = readVectors<{ accounts: readonly OracleAccount[] }>('addresses/oracle.json').accounts;
