import { createHmac } from 'node:crypto';
import { invalidField } from '../domain/errors.js';
import type { Randomness } from '../ports/randomness.js';
import type { SecretVault } from '../vault/attempt-vault.js';
import { generatePrivateKey, parsePublicKey, publicKeyOf, uncompressPublicKey } from './curves.js';
import { bundleSigner, openImportedBundle, sealCredentialBundle, signBundle } from './hpke.js';
import type { InstallationKeys } from './installation-keys.js';

interface Ports {
  readonly vault: SecretVault;
  readonly keys: InstallationKeys;
  readonly randomness: Randomness;
  /** Creates the id of a new vault. */
  readonly newId: () => string;
  readonly clock: { now(): number };
  readonly sandboxUntil?: number | undefined;
}

interface Place {
  readonly organizationId: string;
  readonly vaultId: string;
}

/** Characters of one-time codes (BIP-173 omits those that are easily confused). */
const alphabets = { digits: '0123456789', bech32: 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L' } as const;

const targetSecret = 'target';

/** Contacts of nobody, and their six-digit code while the sandbox is on (docs/protocol.md, one-time codes). */
const sandbox = { contacts: ['user@example.com', '+19999999999'], code: '000000' } as const;

/**
 * The secrets of logins: one-time codes, their hashes, the keys they are sealed to, and API keys sealed to their
 * owners.
 */
export class LoginSecrets {
  constructor(private readonly ports: Ports) {}

  /** A code of that many characters, each equally likely except for contacts of the sandbox. */
  newCode(length: number, alphabet: keyof typeof alphabets, contact: string): string {
    if (this.isSandboxed(length, alphabet, contact)) return sandbox.code;
    const characters = alphabets[alphabet];
    // Bytes from here on would make some characters likelier than others.
    const limit = 256 - (256 % characters.length);
    let code = '';
    while (code.length < length) {
      for (const byte of this.ports.randomness.bytes(length - code.length)) {
        if (byte < limit) code += characters[byte % characters.length];
      }
    }
    return code;
  }

  /** HMAC-SHA-256 under a key of the installation, over the OTP's id and the code in upper case; hex. */
  hashCode(otpId: string, code: string): Promise<string> {
    return this.ports.keys.use('otp-code', (key) =>
      createHmac('sha256', key)
        .update(`${otpId}\0${typedCode(code)}`)
        .digest('hex'),
    );
  }

  /** A fresh P-256 API key, sealed to a target key (docs/protocol.md, credential bundles); compressed public key, hex. */
  async newApiKey(targetPublicKey: string): Promise<{ publicKey: string; credentialBundle: string }> {
    const { randomness } = this.ports;
    const key = generatePrivateKey('CURVE_P256', (count) => randomness.bytes(count));
    const seed = randomness.bytes(32);
    try {
      const credentialBundle = await sealCredentialBundle(targetPublicKey, key, seed);
      return { publicKey: publicKeyOf('CURVE_P256', key).toString('hex'), credentialBundle };
    } finally {
      key.fill(0);
      seed.fill(0);
    }
  }

  /** A target key for one OTP, sealed, and the signed bundle that gives it to the client (docs/protocol.md, code bundles). */
  async startOtpTarget(organizationId: string): Promise<{ vaultId: string; targetBundle: string }> {
    const { randomness, vault, keys, newId } = this.ports;
    const target = generatePrivateKey('CURVE_P256', (count) => randomness.bytes(count));
    try {
      const vaultId = newId();
      await vault.seal(vaultId, organizationId, [{ name: targetSecret, secret: target }]);
      const targetPublic = uncompressPublicKey('CURVE_P256', publicKeyOf('CURVE_P256', target)).toString('hex');
      const targetBundle = await keys.use('verification-token', (signer) =>
        signBundle({ targetPublic, organizationId }, bundleSigner(signer, randomness)),
      );
      return { vaultId, targetBundle };
    } finally {
      target.fill(0);
    }
  }

  /** The code and the client's key from what was sealed to an OTP's target. @throws {CoordinatorError} INVALID_ARGUMENT */
  async openOtpBundle(target: Place, encryptedOtpBundle: string): Promise<{ code: string; publicKey: string }> {
    const title = 'encryptedOtpBundle';
    const plaintext = await this.ports.vault.open({ ...target, name: targetSecret }, (key) =>
      openImportedBundle(key, encryptedOtpBundle, title),
    );
    try {
      const { otp_code: code, public_key: publicKey } = membersOf(plaintext);
      if (typeof code !== 'string' || typeof publicKey !== 'string') {
        throw invalidField(title, 'it must contain the strings `otp_code` and `public_key`');
      }
      const compressed = parsePublicKey('CURVE_P256', publicKey, `${title}.public_key`).toString('hex');
      return { code, publicKey: compressed };
    } finally {
      plaintext.fill(0);
    }
  }

  private isSandboxed(length: number, alphabet: keyof typeof alphabets, contact: string): boolean {
    const { sandboxUntil = 0, clock } = this.ports;
    const isOne = sandbox.contacts.some((one) => one === contact);
    return isOne && length === sandbox.code.length && alphabet === 'digits' && clock.now() < sandboxUntil;
  }
}

function membersOf(plaintext: Buffer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(plaintext.toString('utf8'));
    if (typeof value === 'object' && value !== null) return value as Readonly<Record<string, unknown>>;
  } catch {
    // The parser would quote what it could not read, which may contain a code.
  }
  throw invalidField('encryptedOtpBundle', 'the sealed content is not a JSON object');
}

/** A code as it was sent, however it was typed: with spaces, in full-width digits, in lower case. */
const typedCode = (code: string): string => code.normalize('NFKC').replace(/\s+/g, '').toUpperCase();
