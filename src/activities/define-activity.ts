import type { VoteSelection } from '../domain/activity/events.js';
import type { AddressFormat, Curve, MnemonicLanguage } from '../domain/key-formats.js';
import type { OrganizationEvent, OrganizationView } from '../domain/organization/organization.js';
import type { KeyAddress } from '../domain/organization/private-keys.js';
import type { PolicyEnvironment } from '../domain/policy/namespaces.js';
import type { PolicyType, PolicyValue } from '../domain/policy/types.js';

/** What `decide` may look at besides the intent. Everything here is recorded or folded, so that replay decides alike. */
export interface DecideContext {
  readonly organization: OrganizationView;
  readonly activityId: string;
  /** The user who submitted the activity. */
  readonly submitterId: string;
  /** Recorded time of the decision, milliseconds since the epoch. */
  readonly now: number;
  /** A new id, derived from the activity's: deciding again gives the same ids in the same order. */
  readonly newId: () => string;
  /** What policies of this build may talk about. */
  readonly policyEnvironment: PolicyEnvironment;
}

/** What `prepare` may look at besides the intent. */
export interface PrepareContext {
  /** As it is now; it may have changed by the time of `decide`. */
  readonly organization: OrganizationView;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** A new id, derived from the submitted bytes: preparing again, after a crash too, gives the same ids in the same order. */
  readonly newId: () => string;
}

interface ActivityOutcome<Result> {
  readonly events: readonly OrganizationEvent[];
  readonly result: Result;
}

/** An older wire version of a verb: its own intent and keys, lifted to the newest intent before anything is decided. */
interface OlderVersion<Intent extends object> {
  readonly type: string;
  readonly intent: new () => object;
  /** Both default to the names that the type implies (specification, section 9). */
  readonly intentKey?: string;
  readonly resultKey?: string;
  /** @throws {CoordinatorError} when this version cannot be expressed in the newest */
  lift(intent: object): Intent;
}

interface Described<Type extends string> {
  /** The newest type; its name gives the path and the intent and result keys unless said otherwise. */
  readonly type: Type;
  readonly intentKey?: string;
  readonly resultKey?: string;
  /** One sentence for the reference. */
  readonly summary: string;
}

/** One verb of the Activity API, in one value. Listing it in `index.ts` registers it. */
export interface ActivityDefinition<
  Type extends string,
  Intent extends object,
  Result extends object,
  Prepared = undefined,
> extends Described<Type> {
  readonly kind: 'activity';
  readonly intent: new () => Intent;
  readonly result: new () => Result;
  readonly olderVersions?: readonly OlderVersion<Intent>[];
  /** Who may do it: policies that speak of this pair, or only the root quorum (client protocol 9.4). */
  readonly policy: { readonly resource: string; readonly action: string } | 'root-quorum-only';
  /** What policies may read as `activity.params.<name>`: its type, and how to get it from the intent. */
  readonly params?: Readonly<
    Record<string, { readonly type: PolicyType; from(intent: Intent): PolicyValue | undefined }>
  >;
  /**
   * What policies may read as `wallet`, `private_key`, `eth` and their like (client protocol 9.3), by namespace.
   * @throws {CoordinatorError} when the intent names what is not there, or holds a transaction that cannot be read
   */
  resources?(intent: Intent, organization: OrganizationView): Readonly<Record<string, PolicyValue>>;
  /** The user whose own credentials this manages; users may manage their own unless a policy speaks to it. */
  ownCredentialsOf?(intent: Intent): string;
  /** A credential of the parent organization may submit this for a sub-organization (client protocol 1.4). */
  readonly fromParent?: true;
  /** Only X-Stamp is taken, no passkey (specification 4.3.3, 4.3.17). */
  readonly apiKeyOnly?: true;
  /**
   * What can be refused before there is anything: asked when it is submitted, so that nobody votes on what cannot be
   * done, before `prepare`, so that nothing is made in vain, and again before `decide`. Pure.
   * @throws {CoordinatorError} to refuse
   */
  check?(intent: Intent, organization: OrganizationView): void;
  /**
   * The only step that may touch the world. Runs once the activity is allowed; kept over retries of the append. The
   * organization may have changed by the time of `decide`, which checks again.
   */
  prepare?(intent: Intent, ports: PreparePorts, context: PrepareContext): Promise<Prepared>;
  /**
   * What happens, and what is answered. Pure.
   * @throws {CoordinatorError} to refuse; see `refuse…` of the noun files for the common ones
   */
  decide(intent: Intent, context: DecideContext, prepared: Prepared): ActivityOutcome<Result>;
}

/** An account as asked for. */
export interface AccountToDerive {
  readonly curve: Curve;
  readonly path: string;
  readonly addressFormat: AddressFormat;
}

/** What an account came to; `path` in its one spelling, `publicKey` lower-case hex. */
export interface DerivedAccount extends AccountToDerive {
  readonly address: string;
  readonly publicKey: string;
}

/** Where a sealed secret lies. */
export interface SecretPlace {
  readonly organizationId: string;
  readonly vaultId: string;
}

/** A wallet that has been sealed and is not recorded yet. */
export interface NewWallet {
  readonly vaultId: string;
  readonly accounts: readonly DerivedAccount[];
}

/** A private key that has been sealed and is not recorded yet. */
export interface NewPrivateKey {
  readonly vaultId: string;
  readonly publicKey: string;
  readonly addresses: readonly KeyAddress[];
}

/** A signature as the API answers it: r and s 64 hex characters, v `00` or `01`. */
export interface RawSignature {
  readonly r: string;
  readonly s: string;
  readonly v: string;
}

/** The port to key material (see `keyring/keyring.ts`). Secrets go in and stay in; what comes out is public, or sealed. */
export interface KeyringPort {
  createWallet(input: {
    readonly organizationId: string;
    /** Words: 12, 15, 18, 21 or 24. */
    readonly mnemonicLength: number;
    readonly accounts: readonly AccountToDerive[];
  }): Promise<NewWallet>;
  /** Derives accounts of a wallet; with `keep` their keys are sealed too, so that signing needs no derivation. */
  deriveAccounts(
    wallet: SecretPlace,
    accounts: readonly AccountToDerive[],
    keep: boolean,
  ): Promise<readonly DerivedAccount[]>;
  createPrivateKey(input: {
    readonly organizationId: string;
    readonly curve: Curve;
    readonly addressFormats: readonly AddressFormat[];
  }): Promise<NewPrivateKey>;
  /** A mnemonic, sealed and signed to the target key (client protocol 7.3). */
  exportWallet(wallet: SecretPlace, targetPublicKey: string, language: MnemonicLanguage): Promise<string>;
  /** 32 bytes of a key, sealed and signed to the target key. `secret` names it in its vault. */
  exportKey(key: SecretPlace & { readonly secret: string }, targetPublicKey: string): Promise<string>;
  /** A target key for one import, and the signed bundle that tells it to the user's client (client protocol 7.4). */
  startImport(input: {
    readonly organizationId: string;
    readonly userId: string;
  }): Promise<{ readonly vaultId: string; readonly targetPublicKey: string; readonly importBundle: string }>;
  importWallet(pending: SecretPlace, encryptedBundle: string, accounts: readonly AccountToDerive[]): Promise<NewWallet>;
  importPrivateKey(
    pending: SecretPlace,
    encryptedBundle: string,
    key: { readonly curve: Curve; readonly addressFormats: readonly AddressFormat[] },
  ): Promise<NewPrivateKey>;
  /** Signs each payload, in order: digests for ECDSA and Schnorr, whole messages for Ed25519. */
  sign(
    key: SecretPlace & {
      readonly secret: string;
      readonly curve: Curve;
      readonly addressFormat: AddressFormat | undefined;
    },
    payloads: readonly Uint8Array[],
  ): Promise<readonly RawSignature[]>;
}

/** Ports that `prepare` may use. */
export interface PreparePorts {
  readonly keyring: KeyringPort;
  /** Verifies a WebAuthn registration; see `stamps/webauthn.ts`. */
  readonly verifyRegistration: (input: {
    challenge: string;
    attestation: {
      credentialId: string;
      clientDataJson: string;
      attestationObject: string;
      transports: readonly string[];
    };
  }) => Promise<VerifiedRegistration>;
}

/** What a verified WebAuthn registration says of the passkey. */
export interface VerifiedRegistration {
  readonly credentialId: string;
  /** COSE key, base64url. */
  readonly publicKey: string;
  readonly aaguid: string;
  readonly attestationType: string;
  readonly rpIdHash: string;
  readonly signCount: number;
  readonly transports: readonly string[];
}

/** A verb that is a word on another activity; it has no life of its own. */
export interface VoteDefinition<Type extends string> extends Described<Type> {
  readonly kind: 'vote';
  readonly intent: new () => { fingerprint: string };
  readonly selection: VoteSelection;
}

/** Any definition, as the driver sees it once its own types no longer matter. */
export type AnyActivity = ActivityDefinition<string, object, object, unknown>;
export type AnyVote = VoteDefinition<string>;
export type AnyDefinition = AnyActivity | AnyVote;

/** Declares a verb; infers what `prepare` hands to `decide`. */
export function defineActivity<
  const Type extends string,
  Intent extends object,
  Result extends object,
  Prepared = undefined,
>(
  definition: Omit<ActivityDefinition<Type, Intent, Result, Prepared>, 'kind'>,
): ActivityDefinition<Type, Intent, Result, Prepared> {
  return { kind: 'activity', ...definition };
}

/** Declares a vote. */
export function defineVote<const Type extends string>(
  definition: Omit<VoteDefinition<Type>, 'kind'>,
): VoteDefinition<Type> {
  return { kind: 'vote', ...definition };
}
