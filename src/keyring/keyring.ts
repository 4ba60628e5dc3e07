import { CoordinatorError, invalidField } from '../domain/errors.js';
import { accountSecret, privateKeySecret } from '../domain/organization/signing-keys.js';
import type { AddressFormat, Curve, MnemonicLanguage } from '../domain/key-formats.js';
import type { QueuePath } from '../fairness/fair-queue.js';
import { thisThread } from '../fairness/turns.js';
import type { Randomness } from '../ports/randomness.js';
import type { SecretVault } from '../vault/attempt-vault.js';
import type { NamedSecret, SecretRef } from '../vault/vault.js';
import { addressOf, checkAddressFormat } from './addresses.js';
import { checkPrivateKey, generatePrivateKey, publicKeyOf, uncompressPublicKey } from './curves.js';
import { canonicalPath, Derivation } from './derivation.js';
import { bundleSigner, makeImportBundle, openImportedBundle, sealExportBundle } from './hpke.js';
import type { InstallationKeys } from './installation-keys.js';
import { generateMnemonic, mnemonicToSeed, parseMnemonic, translateMnemonic } from './mnemonic.js';
import type { SigningThread } from './signing-thread.js';
import { payloadSigner, signsInJavaScript, type Signature } from './signing.js';

interface AccountToDerive {
  readonly curve: Curve;
  readonly path: string;
  readonly addressFormat: AddressFormat;
}

interface DerivedAccount extends AccountToDerive {
  readonly address: string;
  readonly publicKey: string;
}

interface Place {
  readonly organizationId: string;
  readonly vaultId: string;
}

interface KeyringPorts {
  readonly vault: SecretVault;
  readonly keys: InstallationKeys;
  readonly signingThread: SigningThread;
  readonly randomness: Randomness;
  /** Creates the id of a new vault. */
  readonly newId: () => string;
  /** Who takes turns for derivations and signatures; by default, one queue for all. */
  readonly path?: QueuePath;
}

/** Names of secrets in the vault of a wallet, and of a pending import. */
export const mnemonicSecret = 'mnemonic';
export const seedSecret = 'seed';
const targetSecret = 'target';
/** Payloads signed before others may have a turn: less than a millisecond. */
const payloadsATurn = 8;

/**
 * Key material in use: every secret is created here, sealed into the vault, and opened again only inside a method of
 * this class, for as long as it takes. What it returns is public, or sealed to a caller's target key.
 */
export class Keyring {
  constructor(private readonly ports: KeyringPorts) {}

  /**
   * A new wallet from fresh entropy (BIP-39), sealed, with its accounts derived and their keys sealed in the same
   * vault.
   */
  async createWallet({
    organizationId,
    mnemonicLength,
    accounts,
  }: {
    readonly organizationId: string;
    readonly mnemonicLength: number;
    readonly accounts: readonly AccountToDerive[];
  }): Promise<{ vaultId: string; accounts: DerivedAccount[] }> {
    const phrase = generateMnemonic(mnemonicLength, (length) => this.ports.randomness.bytes(length));
    return this.sealWallet(organizationId, phrase, accounts);
  }

  /** Accounts of a wallet; with `keep` their keys are sealed, so that signing needs no derivation. */
  async deriveAccounts(wallet: Place, accounts: readonly AccountToDerive[], keep: boolean): Promise<DerivedAccount[]> {
    const derived = await this.ports.vault.open({ ...wallet, name: seedSecret }, (seed) => this.derive(seed, accounts));
    try {
      if (keep) await this.ports.vault.seal(wallet.vaultId, wallet.organizationId, derived.secrets);
      return derived.accounts;
    } finally {
      wipe(derived.secrets);
    }
  }

  async createPrivateKey({
    organizationId,
    curve,
    addressFormats,
  }: {
    readonly organizationId: string;
    readonly curve: Curve;
    readonly addressFormats: readonly AddressFormat[];
  }) {
    const key = generatePrivateKey(curve, (count) => this.ports.randomness.bytes(count));
    return this.sealPrivateKey(organizationId, key, curve, addressFormats);
  }

  /**
   * The mnemonic, sealed to a target key (docs/protocol.md, export bundles): in its own words, or in those of a language, which
   * derive other keys elsewhere (BIP-39 computes the seed from the words).
   */
  async exportWallet(wallet: Place, targetPublicKey: string, language: MnemonicLanguage | undefined): Promise<string> {
    return this.ports.vault.open({ ...wallet, name: mnemonicSecret }, async (secret) => {
      const mnemonic = parseMnemonic(secret.toString('utf8'));
      const isOwn = language === undefined || language === mnemonic.language;
      const phrase = isOwn ? mnemonic.phrase : translateMnemonic(mnemonic, language);
      const plaintext = Buffer.from(phrase);
      try {
        return await this.sealExport(wallet.organizationId, targetPublicKey, plaintext);
      } finally {
        plaintext.fill(0);
      }
    });
  }

  /** The 32 bytes of a key, sealed to a target key (docs/protocol.md, export bundles). */
  async exportKey({ secret, ...place }: Place & { readonly secret: string }, targetPublicKey: string): Promise<string> {
    return this.ports.vault.open({ ...place, name: secret }, (key) =>
      this.sealExport(place.organizationId, targetPublicKey, key),
    );
  }

  /** A target key for one import of one user, sealed, and the signed bundle that contains it (docs/protocol.md, import bundles). */
  async startImport({ organizationId, userId }: { readonly organizationId: string; readonly userId: string }) {
    const { keys, randomness, newId, vault } = this.ports;
    const target = generatePrivateKey('CURVE_P256', (count) => randomness.bytes(count));
    try {
      const vaultId = newId();
      const targetPublicKey = uncompressPublicKey('CURVE_P256', publicKeyOf('CURVE_P256', target)).toString('hex');
      await vault.seal(vaultId, organizationId, [{ name: targetSecret, secret: target }]);
      const importBundle = await keys.use('signer', (signer) =>
        makeImportBundle({ targetPublicKey, organizationId, userId }, bundleSigner(signer, randomness)),
      );
      return { vaultId, targetPublicKey, importBundle };
    } finally {
      target.fill(0);
    }
  }

  /** A wallet from the mnemonic that a client has sealed to the target key of a pending import. */
  async importWallet(
    pending: Place,
    encryptedBundle: string,
    accounts: readonly AccountToDerive[],
  ): Promise<{ vaultId: string; accounts: DerivedAccount[] }> {
    return this.openImport(pending, encryptedBundle, (plaintext) => {
      const { phrase } = parseMnemonic(plaintext.toString('utf8'), 'encryptedBundle');
      return this.sealWallet(pending.organizationId, phrase, accounts);
    });
  }

  /** A private key from the 32 bytes that a client has sealed to the target key of a pending import. */
  async importPrivateKey(
    pending: Place,
    encryptedBundle: string,
    { curve, addressFormats }: { readonly curve: Curve; readonly addressFormats: readonly AddressFormat[] },
  ) {
    return this.openImport(pending, encryptedBundle, async (plaintext) => {
      // A Solana wallet file contains seed and public key; clients send either (docs/protocol.md, import bundles).
      const key = Buffer.from(
        curve === 'CURVE_ED25519' && plaintext.length === 64 ? plaintext.subarray(0, 32) : plaintext,
      );
      try {
        checkPrivateKey(curve, key, 'encryptedBundle');
        if (plaintext.length === 64 && !publicKeyOf(curve, key).equals(plaintext.subarray(32))) {
          throw invalidField('encryptedBundle', 'its public key does not match its private key');
        }
        return await this.sealPrivateKey(pending.organizationId, key, curve, addressFormats);
      } finally {
        key.fill(0);
      }
    });
  }

  /** Signs each payload in order; see `signPayload`. The key is open only during the call. */
  async sign(
    {
      organizationId,
      vaultId,
      secret,
      curve,
      addressFormat,
    }: Place & { readonly secret: string; readonly curve: Curve; readonly addressFormat: AddressFormat | undefined },
    payloads: readonly Uint8Array[],
  ): Promise<Signature[]> {
    const ref: SecretRef = { organizationId, vaultId, name: secret };
    return this.ports.vault.open(ref, async (privateKey) => {
      const key = { curve, addressFormat, privateKey };
      if (signsInJavaScript(key)) return this.ports.signingThread.signAll(key, payloads, this.path);
      const signer = payloadSigner(key);
      try {
        const signatures: Signature[] = [];
        for (let from = 0; from < payloads.length; from += payloadsATurn) {
          const turn = this.turn();
          if (turn) await turn;
          for (const payload of payloads.slice(from, from + payloadsATurn)) signatures.push(signer.sign(payload));
        }
        return signatures;
      } finally {
        signer.forget();
      }
    });
  }

  private async sealWallet(organizationId: string, phrase: string, accounts: readonly AccountToDerive[]) {
    const secrets: NamedSecret[] = [];
    try {
      const seed = await mnemonicToSeed(phrase);
      secrets.push({ name: mnemonicSecret, secret: Buffer.from(phrase) }, { name: seedSecret, secret: seed });
      const derived = await this.derive(seed, accounts);
      secrets.push(...derived.secrets);
      const vaultId = this.ports.newId();
      await this.ports.vault.seal(vaultId, organizationId, secrets);
      return { vaultId, accounts: derived.accounts };
    } finally {
      wipe(secrets);
    }
  }

  /** Seals the key, and wipes it. */
  private async sealPrivateKey(
    organizationId: string,
    key: Buffer,
    curve: Curve,
    addressFormats: readonly AddressFormat[],
  ) {
    try {
      const publicKey = publicKeyOf(curve, key);
      const addresses = addressFormats.map((format) => ({ format, address: addressOf(format, curve, publicKey) }));
      const vaultId = this.ports.newId();
      await this.ports.vault.seal(vaultId, organizationId, [{ name: privateKeySecret, secret: key }]);
      return { vaultId, publicKey: publicKey.toString('hex'), addresses };
    } finally {
      key.fill(0);
    }
  }

  private async sealExport(organizationId: string, targetPublicKey: string, plaintext: Uint8Array): Promise<string> {
    const { keys, randomness } = this.ports;
    const ephemeralSeed = randomness.bytes(32);
    try {
      return await keys.use('signer', (signer) =>
        sealExportBundle(
          { organizationId, targetPublicKey, plaintext, ephemeralSeed },
          bundleSigner(signer, randomness),
        ),
      );
    } finally {
      ephemeralSeed.fill(0);
    }
  }

  private async openImport<Result>(
    pending: Place,
    encryptedBundle: string,
    take: (plaintext: Buffer) => Promise<Result>,
  ): Promise<Result> {
    const plaintext = await this.ports.vault.open({ ...pending, name: targetSecret }, (target) =>
      openImportedBundle(target, encryptedBundle),
    );
    try {
      return await take(plaintext);
    } catch (error) {
      // What was decrypted is the caller's secret: no other error may contain any of it.
      if (error instanceof CoordinatorError) throw error;
      throw new Error('an imported secret could not be taken in');
    } finally {
      plaintext.fill(0);
    }
  }

  private get path(): QueuePath {
    return this.ports.path ?? ['keys'];
  }

  private turn(): Promise<void> | undefined {
    return thisThread.next(this.path);
  }

  /** Derives accounts from a seed, with their keys as secrets to be sealed. The caller wipes both. */
  private async derive(
    seed: Uint8Array,
    accounts: readonly AccountToDerive[],
  ): Promise<{ accounts: DerivedAccount[]; secrets: NamedSecret[] }> {
    const secrets = new Map<string, Uint8Array>();
    const derived: DerivedAccount[] = [];
    const derivation = new Derivation(seed);
    try {
      for (const { curve, path: requested, addressFormat } of accounts) {
        checkAddressFormat(addressFormat, curve);
        const path = canonicalPath(curve, requested);
        const turn = this.turn();
        if (turn) await turn;
        const name = accountSecret(curve, path);
        const key = secrets.get(name) ?? derivation.privateKey(curve, path);
        secrets.set(name, key);
        const publicKey = publicKeyOf(curve, key);
        const address = addressOf(addressFormat, curve, publicKey);
        derived.push({ curve, path, addressFormat, address, publicKey: publicKey.toString('hex') });
      }
    } catch (error) {
      for (const key of secrets.values()) key.fill(0);
      throw error;
    } finally {
      derivation.forget();
    }
    return { accounts: derived, secrets: [...secrets].map(([name, secret]) => ({ name, secret })) };
  }
}

function wipe(secrets: readonly NamedSecret[]): void {
  for (const { secret } of secrets) secret.fill(0);
}
