import { verify as verifyAsPublished, verifyAppProofSignature } from '@turnkey/crypto';
import { createHash, hash, KeyObject, randomUUID, sign, webcrypto } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { decode, encode } from 'cbor2';
import {
  decodeAttestationDocument,
  encodeAttestationDocument,
  type AttestationDocument,
} from '../../src/proofs/attestation-document.js';
import { readConfig } from '../../src/config/config.js';
import { canonicalJson } from '../../src/domain/canonical-json.js';
import { GENESIS_HASH, verifyChain } from '../../src/ledger/chain.js';
import { readEvent } from '../../src/ledger/read-event.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { BootLog } from '../../src/proofs/boot-log.js';
import { issueLeaf, issueRoot } from '../../src/proofs/certificates.js';
import { readCoseSign1, signCoseSign1 } from '../../src/proofs/cose-sign1.js';
import { measuredSettings } from '../../src/config/measured-settings.js';
import { ProofRefused, verifyAppProof, verifyBootProof, type BootProof } from '../../src/proofs/verify.js';
import { ManualClock } from '../../src/testing/deterministic.js';
import type { AppProof } from '../../src/domain/activity/app-proof.js';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { redecide } from '../../src/audit/verify/decide-again.js';
import { TypingUser } from '../cli/typed.js';
import { exchange, refusal, textLike } from './exchange.js';

/** As the query answers it. */
type Answered = Required<BootProof> & {
  readonly deploymentLabel: string;
  readonly enclaveApp: string;
  readonly owner: string;
  readonly createdAt: { readonly seconds: string; readonly nanos: string };
};

let coordinator: TestCoordinator;

beforeAll(async () => {
  coordinator = await startCoordinator();
});
afterAll(() => coordinator.close());

const rootOf = async ({ url }: TestCoordinator) =>
  (await exchange(`${url}/public/v1/discovery/attestation-root.pem`)).text;

const latest = async ({ client }: TestCoordinator) =>
  (await client.query<{ bootProof: Answered }>('get_latest_boot_proof', { appName: 'countersign' })).bootProof;

const ofKey = async ({ client }: TestCoordinator, ephemeralKey: string) =>
  (await client.query<{ bootProof: Answered }>('get_boot_proof', { ephemeralKey })).bootProof;

describe('boot proofs', () => {
  test('each boot has one, which verifies against the root of the installation, before and after others', async () => {
    const first = await latest(coordinator);
    expect(first).toEqual({
      ephemeralPublicKeyHex: textLike(/^04[0-9a-f]{128}04[0-9a-f]{128}$/),
      cloudAttestationDocB64: first.awsAttestationDocB64,
      awsAttestationDocB64: textLike(/^[A-Za-z0-9+/]+=*$/),
      qosManifestB64: textLike(/^[A-Za-z0-9+/]+=*$/),
      qosManifestEnvelopeB64: textLike(/^[A-Za-z0-9+/]+=*$/),
      deploymentLabel: textLike(/^v\d+\.\d+\.\d+$/),
      enclaveApp: 'countersign',
      owner: 'countersign',
      createdAt: { seconds: '1767225600', nanos: '0' },
      qosManifestVersion: 'countersign-1',
    });
    const root = await rootOf(coordinator);
    expect(root).toMatch(/^-----BEGIN CERTIFICATE-----\n/);
    const boot = await verifyBootProof(first, { root });
    expect(boot).toMatchObject({ moduleId: 'countersign-software-attestor', timestamp: coordinator.clock.now() });
    expect(boot.manifest).toMatchObject({ attestor: { kind: 'software' }, runtime: { node: process.version } });

    coordinator.clock.advance('1d');
    coordinator = await coordinator.restart();
    const second = await latest(coordinator);
    expect(second.ephemeralPublicKeyHex).not.toBe(first.ephemeralPublicKeyHex);
    expect(await ofKey(coordinator, first.ephemeralPublicKeyHex.toUpperCase())).toEqual(first);
    expect(await ofKey(coordinator, second.ephemeralPublicKeyHex)).toEqual(second);
    expect(await rootOf(coordinator)).toBe(root);
    const again = await verifyBootProof(second, { root, pcrs: boot.pcrs, manifestSha256: boot.manifestSha256 });
    expect(again.timestamp).toBe(coordinator.clock.now());
  });

  test('they are facts of a chained stream, with the root certificate before them', async () => {
    const events = await coordinator.events('installation-boots');
    expect(events.map(({ type }) => type)).toEqual(['AttestationRootIssued', 'CoordinatorBooted', 'CoordinatorBooted']);
  });

  test('a boot that never was is not found', async () => {
    const { ephemeralPublicKeyHex } = await latest(coordinator);
    const other = `${ephemeralPublicKeyHex.slice(0, -2)}00`;
    expect(await refusal(ofKey(coordinator, other))).toMatchObject({ status: 404, message: textLike(/no boot with/) });
    expect(await refusal(coordinator.client.query('get_latest_boot_proof', { appName: 'signer' }))).toMatchObject({
      status: 404,
      message: textLike(/no app `signer` has booted here/),
    });
    expect(await refusal(ofKey(coordinator, 'zz'))).toMatchObject({ status: 400 });
  });
});

test('what boots at the same moment comes to one root, and nothing of it is lost', async () => {
  const store = new InMemoryEventStore();
  const clock = new ManualClock(0);
  const logs = Array.from({ length: 5 }, () => new BootLog({ store, clock, newId: () => randomUUID() }));
  const roots = await Promise.all(logs.map((log, index) => log.root(() => Promise.resolve(new Uint8Array([index])))));
  expect(new Set(roots.map(String)).size).toBe(1);
  const facts = await latest(coordinator).then(({ ephemeralPublicKeyHex }) => ({
    ephemeralPublicKey: ephemeralPublicKeyHex,
    attestationDocument: '',
    manifest: '',
    manifestEnvelope: '',
    manifestVersion: '',
    deploymentLabel: '',
    owner: '',
  }));
  await Promise.all(logs.map((log, index) => log.booted({ ...facts, app: String(index) })));
  let hash = GENESIS_HASH;
  const apps: unknown[] = [];
  for await (const event of store.read('installation-boots')) {
    hash = verifyChain(hash, event);
    apps.push((event.data as { app?: string }).app);
  }
  expect(apps.toSorted()).toEqual(['0', '1', '2', '3', '4', undefined]);
});

test('settings are measured without anything secret in them, and each counts', () => {
  const given = {
    KEK: 'ab'.repeat(32),
    PROXY_SECRET: 'p'.repeat(40),
    EVENT_STORE: 'esdb://admin:hunter2@db.example.com:2113?tls=true',
    SMTP_URL: 'smtp://mailer:hunter3@mail.example.com:587',
    SMS_WEBHOOK_URL: 'twilio://SID:hunter4@api.twilio.com?from=+13214567890',
    OIDC_ISSUERS: 'https://accounts.example.com',
  };
  const { text, names } = measuredSettings(readConfig(given));
  expect(text).not.toMatch(/hunter|ppp|abab|mailer|SID|admin/);
  expect(text).toContain('mail.example.com');
  expect(Object.keys(JSON.parse(text) as object)).toEqual(names);
  const others = { ...given, OIDC_ISSUERS: '', EVENT_STORE: 'sqlite:', SMTP_URL: '', SMS_WEBHOOK_URL: '' };
  for (const [name, value] of Object.entries(others)) {
    if (value === given[name as keyof typeof given]) continue;
    expect(measuredSettings(readConfig({ ...given, [name]: value })).text).not.toBe(text);
  }
});

const base64 = (data: Uint8Array): string => Buffer.from(data).toString('base64');
const fromBase64 = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'base64'));

/** The proof with other bytes as its attestation document. */
const withDocument = (proof: Answered, document: Uint8Array): Answered => ({
  ...proof,
  awsAttestationDocB64: base64(document),
  cloudAttestationDocB64: base64(document),
});

/** The same message with one of its four parts changed. */
function withPart(message: Uint8Array, index: number, change: (part: Uint8Array) => unknown): Uint8Array {
  const parts = decode<unknown[]>(message);
  return encode(parts.map((part, at) => (at === index ? change(part as Uint8Array) : at === 1 ? new Map() : part)));
}

const flipped = (data: Uint8Array, at: number): Uint8Array =>
  data.map((byte, index) => (index === (at + data.length) % data.length ? byte ^ 1 : byte));

const documentIn = (proof: Answered): AttestationDocument =>
  decodeAttestationDocument(readCoseSign1(fromBase64(proof.awsAttestationDocB64)).payload);

/** What a boot proof is refused for. */
async function refused(proof: BootProof, expected: Parameters<typeof verifyBootProof>[1]): Promise<string> {
  try {
    await verifyBootProof(proof, expected);
  } catch (error) {
    if (error instanceof ProofRefused) return error.message;
    throw error;
  }
  throw new Error('the proof was taken');
}

/** Somebody else's certificates, with which documents can be signed about anything. */
class Forger {
  private constructor(
    private readonly rootKeys: webcrypto.CryptoKeyPair,
    readonly root: Uint8Array,
    readonly now: number,
  ) {}

  static async make(now: number): Promise<Forger> {
    const keys = await webcrypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
    return new Forger(keys, await issueRoot(keys, new Uint8Array(16)), now);
  }

  /** A leaf and its key; of the root unless another issuer is named. */
  async leaf({ now = this.now, issuer = { certificate: this.root, privateKey: this.rootKeys.privateKey } } = {}) {
    const keys = await webcrypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-384' }, true, ['sign', 'verify']);
    const certificate = await issueLeaf(issuer, keys.publicKey, { now, serial: new Uint8Array(16) });
    return { certificate, privateKey: keys.privateKey };
  }

  /** A proof as it was, but with a document of this forger's. */
  document(
    proof: Answered,
    { certificate, privateKey }: Awaited<ReturnType<Forger['leaf']>>,
    changes: Partial<AttestationDocument> = {},
  ): Answered {
    const payload = encodeAttestationDocument({
      ...documentIn(proof),
      certificate,
      cabundle: [this.root],
      ...changes,
    });
    const key = KeyObject.from(privateKey);
    const signed = signCoseSign1('ES384', payload, (data) => sign('sha384', data, { key, dsaEncoding: 'ieee-p1363' }));
    return withDocument(proof, signed);
  }
}

describe('the verifier refuses', () => {
  let proof: Answered;
  let root: string;
  let forger: Forger;

  beforeAll(async () => {
    proof = await latest(coordinator);
    root = await rootOf(coordinator);
    forger = await Forger.make(documentIn(proof).timestamp);
  });

  test('a document, a manifest or a key that was changed', async () => {
    const document = fromBase64(proof.awsAttestationDocB64);
    const manifest = fromBase64(proof.qosManifestB64);
    const envelope = fromBase64(proof.qosManifestEnvelopeB64);
    const changed = async (changes: Partial<Answered>) => refused({ ...proof, ...changes }, { root });

    for (const index of [2, 3]) {
      const forged = withPart(document, index, (part) => flipped(part, index === 2 ? 100 : -1));
      expect(await refused(withDocument(proof, forged), { root })).toMatch(/^attestation document: /);
    }
    const es256 = withPart(document, 0, () => encode(new Map([[1, -7]])));
    expect(await refused(withDocument(proof, es256), { root })).toMatch(/a signature of ES256 has 64 bytes/);
    const unnamed = withPart(document, 0, () => encode(new Map([[1, -8]])));
    expect(await refused(withDocument(proof, unnamed), { root })).toMatch(/must name ES256 or ES384/);
    expect(await changed({ cloudAttestationDocB64: base64(flipped(document, -1)) })).toMatch(
      /must be the same document/,
    );
    expect(await refused(withDocument(proof, document.subarray(0, 40)), { root })).toMatch(/it is not CBOR/);
    expect(await changed({ qosManifestB64: base64(flipped(manifest, 20)) })).toMatch(/^manifest: its SHA-256 is /);
    expect(await changed({ qosManifestB64: `${proof.qosManifestB64}\n` })).toBe('manifest: it is not base64');
    expect(await changed({ qosManifestEnvelopeB64: base64(withPart(envelope, 3, (part) => flipped(part, 0))) })).toBe(
      'manifest: its envelope is not signed by the ephemeral key',
    );
    expect(await changed({ qosManifestEnvelopeB64: base64(withPart(envelope, 2, (part) => flipped(part, 0))) })).toBe(
      'manifest: its envelope contains a different manifest',
    );
    const { ephemeralPublicKeyHex: key } = proof;
    expect(await changed({ ephemeralPublicKeyHex: `${key.slice(130)}${key.slice(0, 130)}` })).toMatch(
      /^ephemeral key: the boot proof has /,
    );
    expect(await changed({ ephemeralPublicKeyHex: key.slice(2) })).toMatch(/must be 260 hex characters/);
  });

  test('another root, another chain, and certificates that may not say this, or not then', async () => {
    const leaf = await forger.leaf();
    const forged = forger.document(proof, leaf);
    const own = { root: forger.root };
    // All is in order there but whose it is.
    await verifyBootProof(forged, own);
    expect(await refused(forged, { root })).toMatch(/^certificates: the document chains to a different root/);
    const { cabundle } = documentIn(proof);
    expect(await refused(forger.document(proof, leaf, { cabundle }), { root })).toMatch(/is not signed by /);

    const below = await forger.leaf({ issuer: leaf });
    const longer = forger.document(proof, below, { cabundle: [forger.root, leaf.certificate] });
    expect(await refused(longer, own)).toMatch(/may not issue certificates/);
    const early = await forger.leaf({ now: forger.now - 4 * 60 * 60 * 1000 });
    expect(await refused(forger.document(proof, early), own)).toMatch(
      /is valid from .* and the document was signed at/,
    );
    const asLeaf = forger.document(proof, { ...leaf, certificate: forger.root });
    expect(await refused(asLeaf, own)).toMatch(/is an issuer certificate/);
    const stolen = forger.document(proof, { ...leaf, certificate: (await forger.leaf()).certificate });
    expect(await refused(stolen, own)).toMatch(/its signature was not made with the key of its certificate/);
  });

  test('measurements other than the expected ones, and a manifest that says others than the document', async () => {
    const { pcrs } = await verifyBootProof(proof, { root });
    expect(Object.keys(pcrs)).toEqual(['0', '1', '2']);
    const other = createHash('sha384').update('other').digest();
    expect(await refused(proof, { root, pcrs: { ...pcrs, 2: other.toString('hex') } })).toMatch(
      /^measurements: PCR2 is /,
    );
    expect(await refused(proof, { root, pcrs: { 8: pcrs[0]! } })).toMatch(/^measurements: PCR8 is missing/);
    expect(await refused(proof, { root, manifestSha256: '00' })).toMatch(/^manifest: its SHA-256 is .*, expected 00$/);
    const lying = forger.document(proof, await forger.leaf(), {
      pcrs: new Map([...documentIn(proof).pcrs].map(([index, value]) => [index, index === 0 ? other : value])),
    });
    expect(await refused(lying, { root: forger.root })).toMatch(/^manifest: the measurement of code is /);
  });
});

describe('app proofs', () => {
  const proved = { generateAppProofs: true };
  const account = (index: number, rest: object = {}) => ({
    curve: 'CURVE_SECP256K1',
    pathFormat: 'PATH_FORMAT_BIP32',
    path: `m/44'/60'/0'/0/${index}`,
    addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
    ...rest,
  });
  const wallet = (walletName: string) => ({ walletName, accounts: [account(0), account(1)] });
  const createWallet = (walletName: string, options: object = proved) =>
    coordinator.client.submit('ACTIVITY_TYPE_CREATE_WALLET', wallet(walletName), options);

  const proofsOf = async (activityId: string) =>
    (await coordinator.client.query<{ appProofs: AppProof[] }>('list_app_proofs', { activityId })).appProofs;

  /** What a proof says, once its signature and its boot were verified. */
  async function shown(proof: AppProof): Promise<Readonly<Record<string, unknown>>> {
    verifyAppProofSignature(proof);
    const bootProof = await ofKey(coordinator, proof.publicKey);
    return (await verifyAppProof(proof, bootProof, { root: await rootOf(coordinator) })).app;
  }

  const derivations = async (proofs: readonly AppProof[] | undefined) =>
    (await Promise.all((proofs ?? []).map(shown))).flatMap(
      ({ addressDerivationProof }) => addressDerivationProof ?? [],
    );

  test('say what was allowed and what was derived, to our verifier and to the published one', async () => {
    const { id, appProofs = [], result } = await createWallet('Proved');
    const { walletId, addresses } = result['createWalletResult'] as { walletId: string; addresses: string[] };
    const said = await Promise.all(appProofs.map(shown));
    const { organizationId } = coordinator;
    const events = await coordinator.events();
    const at = events.findIndex(({ data }) => (data as { activityId?: string }).activityId === id);
    const { type, intent, decision, vote } = readEvent(events[at]!).data as Record<string, Record<string, unknown>>;
    const timestampMs = String(coordinator.clock.now());
    expect(said).toEqual([
      {
        type: 'APP_PROOF_TYPE_POLICY_OUTCOME',
        timestampMs,
        policyOutcomeProof: {
          organizationId,
          outcome: 'OUTCOME_ALLOW',
          decisionContextDigest: hash('sha256', canonicalJson({ activityId: id, type, intent, decision }), 'hex'),
          organizationDataDigest: (events[at - 1]!.metadata as { hash: string }).hash,
          parentOrganizationDataDigest: '',
          userRequestApprovals: [
            {
              scheme: 'SIGNATURE_SCHEME_TK_API_P256',
              publicKey: coordinator.client.key.publicKey,
              message: vote!['message'],
              signature: vote!['signature'],
            },
          ],
        },
      },
      ...addresses.map((address, index) => ({
        type: 'APP_PROOF_TYPE_ADDRESS_DERIVATION',
        timestampMs,
        addressDerivationProof: { organizationId, walletId, derivationPath: `m/44'/60'/0'/0/${index}`, address },
      })),
    ]);
    // All that the published client refuses is the root, which it has pinned.
    const published = verifyAsPublished(appProofs[0]!, await ofKey(coordinator, appProofs[0]!.publicKey));
    await expect(published).rejects.toThrow(/^Certificate chain verification failed: /);
    expect(await proofsOf(id)).toEqual(appProofs);
    expect(redecide(events, buildRegistry(activities)).length).toBeGreaterThan(0);
  });

  test('are the same after a restart, and for the same request again; whoever does not ask gets none', async () => {
    const body = coordinator.client.submitBody('ACTIVITY_TYPE_CREATE_WALLET', wallet('Again'), proved);
    const submit = async () => {
      const { body: answer } = await coordinator.client.post<{ activity: { id: string; appProofs: AppProof[] } }>(
        '/public/v1/submit/create_wallet',
        body,
      );
      return answer.activity;
    };
    const { id, appProofs } = await submit();
    coordinator = await coordinator.restart();
    expect(await proofsOf(id)).toEqual(appProofs);
    expect((await submit()).appProofs).toEqual(appProofs);
    const { activity } = await coordinator.client.query<{ activity: object }>('get_activity', { activityId: id });
    expect(activity).toMatchObject({ appProofs });
    await shown(appProofs[0]!);

    const plain = await createWallet('Plain', { generateAppProofs: false });
    expect(plain).not.toHaveProperty('appProofs');
    expect(await proofsOf(plain.id)).toEqual([]);
    const unknown = coordinator.client.query('list_app_proofs', { activityId: randomUUID() });
    expect(await refusal(unknown)).toMatchObject({ status: 404 });
  });

  test('of what was voted on are made by whoever ends it, with every approval that counted', async () => {
    const [ann, bob] = [await coordinator.createUser('Ann'), await coordinator.createUser('Bob')];
    await coordinator.createPolicy({
      policyName: 'Two make tags',
      condition: "activity.resource == 'USER' && activity.action == 'CREATE'",
      consensus: 'approvers.count() >= 2',
    });
    const tag = { userTagName: 'voted on', userIds: [] };
    const waiting = await ann.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', tag, proved);
    expect(waiting.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect(await proofsOf(waiting.id)).toEqual([]);
    const before = (await latest(coordinator)).ephemeralPublicKeyHex;
    coordinator = await coordinator.restart();
    const { appProofs = [] } = await coordinator.clientFor(bob.key).approve(waiting.fingerprint);
    expect(appProofs).toHaveLength(1);
    expect(appProofs[0]!.publicKey).not.toBe(before);
    expect(await shown(appProofs[0]!)).toMatchObject({
      policyOutcomeProof: {
        outcome: 'OUTCOME_ALLOW',
        userRequestApprovals: [{ publicKey: ann.key.publicKey }, { publicKey: bob.key.publicKey }],
      },
    });
    expect(await proofsOf(waiting.id)).toEqual(appProofs);
  });

  test('are there for addresses that no event of the organization has, and for private keys', async () => {
    const { result } = await createWallet('Unkept');
    const { walletId } = result['createWalletResult'] as { walletId: string };
    const { client, organizationId } = coordinator;
    const unkept = await client.submit(
      'ACTIVITY_TYPE_CREATE_WALLET_ACCOUNTS',
      { walletId, accounts: [account(7)], persist: false },
      proved,
    );
    const { addresses } = unkept.result['createWalletAccountsResult'] as { addresses: string[] };
    expect(await derivations(unkept.appProofs)).toEqual([
      { organizationId, walletId, derivationPath: "m/44'/60'/0'/0/7", address: addresses[0] },
    ]);

    const keys = await client.submit(
      'ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2',
      {
        privateKeys: [
          {
            privateKeyName: 'Proved key',
            curve: 'CURVE_SECP256K1',
            privateKeyTags: [],
            addressFormats: ['ADDRESS_FORMAT_ETHEREUM'],
          },
        ],
      },
      proved,
    );
    const made = keys.result['createPrivateKeysResultV2'] as {
      privateKeys: { privateKeyId: string; addresses: { address: string }[] }[];
    };
    const { privateKeyId, addresses: own } = made.privateKeys[0]!;
    expect(await derivations(keys.appProofs)).toEqual([{ organizationId, privateKeyId, address: own[0]!.address }]);

    const child = await client.submit(
      'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8',
      {
        subOrganizationName: 'Sub',
        rootUsers: [
          { userName: 'Eve', userEmail: 'eve@example.com', apiKeys: [], authenticators: [], oauthProviders: [] },
        ],
        rootQuorumThreshold: 1,
        wallet: wallet('First'),
      },
      proved,
    );
    const founded = child.result['createSubOrganizationResultV8'] as {
      subOrganizationId: string;
      wallet: { walletId: string; addresses: string[] };
    };
    expect(await derivations(child.appProofs)).toEqual(
      founded.wallet.addresses.map((address, index) => ({
        organizationId: founded.subOrganizationId,
        walletId: founded.wallet.walletId,
        derivationPath: `m/44'/60'/0'/0/${index}`,
        address,
      })),
    );
  });

  test('are verified by the command without a network, and refused with the reason', async () => {
    const { appProofs = [] } = await createWallet('Commanded');
    const bootProof = await ofKey(coordinator, appProofs[0]!.publicKey);
    const user = await TypingUser.sitDown();
    const file = async (name: string, content: string): Promise<string> => {
      await writeFile(user.path(name), content);
      return user.path(name);
    };
    const run = (...args: string[]) => user.types(['proof', 'verify', ...args]);
    try {
      const root = await file('root.pem', await rootOf(coordinator));
      const boot = await file('boot.json', JSON.stringify({ bootProof }));
      const app = await file('app.json', JSON.stringify({ appProofs }));
      const all = ['--root', root, '--boot-proof', boot, '--app-proof'];
      const good = await run(...all, app);
      expect(good).toMatchObject({ code: 0, error: '' });
      expect(good.out).toMatch(/^The boot proof is valid: [^]*Software attestor: [^]*PCR2/);
      expect(good.out.match(/An app proof is valid: /g)).toHaveLength(3);

      const payload = appProofs[0]!.proofPayload.replace('OUTCOME_ALLOW', 'OUTCOME_DENY');
      const forged = await file('forged.json', JSON.stringify({ ...appProofs[0], proofPayload: payload }));
      expect(await run(...all, forged)).toEqual({
        code: 1,
        out: '',
        error: 'refused: app proof: its signature does not match its payload\n',
      });
      const other = `0=${'00'.repeat(48)}`;
      expect(await run(...all, app, '--pcr', other)).toMatchObject({ code: 1, error: textLike(/PCR0 is /) });
      expect(await run('--boot-proof', boot)).toMatchObject({
        code: 2,
        error: textLike(/^error: required option '--root <file>' not specified/),
      });
      expect(await run(...all, app, '--pcr', 'zero')).toMatchObject({
        code: 2,
        error: textLike(/'--pcr <number=hex>' argument 'zero' is invalid/),
      });
    } finally {
      await user.leaves();
    }
  });

  test('that were changed, or are of another boot or another time, are refused', async () => {
    const { appProofs = [] } = await createWallet('Forged');
    const proof = appProofs[1]!;
    const root = await rootOf(coordinator);
    const bootProof = await ofKey(coordinator, proof.publicKey);
    const attempt = (changes: Partial<Record<keyof AppProof, string>>, boot: Answered = bootProof) =>
      verifyAppProof({ ...proof, ...changes } as AppProof, boot, { root });
    await expect(attempt({ proofPayload: proof.proofPayload.replace('0x', '0y') })).rejects.toThrow(
      'app proof: its signature does not match its payload',
    );
    await expect(attempt({ signature: `${proof.signature.slice(2)}00` })).rejects.toThrow(/does not match its payload/);
    await expect(attempt({ signature: proof.signature.slice(2) })).rejects.toThrow(/must be 128 hex characters/);
    await expect(attempt({ scheme: 'SIGNATURE_SCHEME_TK_API_P256' })).rejects.toThrow(/its scheme is/);
    const events = await coordinator.events('installation-boots');
    const { ephemeralPublicKey } = events[1]!.data as { ephemeralPublicKey: string };
    const other = await ofKey(coordinator, ephemeralPublicKey);
    await expect(attempt({}, other)).rejects.toThrow(/it was signed by the key of another boot/);
    const forger = await Forger.make(coordinator.clock.now() + 60 * 60 * 1000);
    const later = forger.document(bootProof, await forger.leaf(), { timestamp: forger.now });
    await expect(verifyAppProof(proof, later, { root: forger.root })).rejects.toThrow(/before the boot at/);
  });
});
