import { generateKeyPairSync, randomBytes, randomUUID, sign, webcrypto } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { readConfig } from '../../src/config/config.js';
import { appProofScheme } from '../../src/domain/activity/app-proof.js';
import { bootStream, type BootFacts } from '../../src/domain/boots.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { encodeAttestationDocument } from '../../src/proofs/attestation-document.js';
import { BootLog } from '../../src/proofs/boot-log.js';
import { recordBoot } from '../../src/proofs/boot.js';
import { issueLeaf, issueRoot } from '../../src/proofs/certificates.js';
import { signCoseSign1 } from '../../src/proofs/cose-sign1.js';
import { EphemeralKey } from '../../src/proofs/ephemeral-key.js';
import { eventsOf } from '../vault/world.js';
import { TypingUser } from './typed.js';

/** Clears the line above and hides the rest; the second form begins with one character, which JSON leaves as it is. */
const takeover = '\x1b[1A\x1b[2K\u009b1A\u202e';
const shown = '\\u{1b}[1A\\u{1b}[2K\\u{9b}1A\\u{202e}';

let user: TypingUser;

beforeEach(async () => {
  user = await TypingUser.sitDown();
});

afterEach(() => user.leaves());

/** A boot that says what its maker likes, below a root that the user trusts. */
async function bootOf(key: EphemeralKey) {
  const now = Date.now();
  const keys = await webcrypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
  const issuing = { now, serial: randomBytes(16) };
  const root = await issueRoot(keys, issuing.serial);
  const leaf = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const spki = leaf.publicKey.export({ format: 'der', type: 'spki' });
  const leafKey = await webcrypto.subtle.importKey('spki', spki, { name: 'ECDSA', namedCurve: 'P-384' }, true, [
    'verify',
  ]);
  const certificate = await issueLeaf({ certificate: root, privateKey: keys.privateKey }, leafKey, issuing);
  const store = new InMemoryEventStore();
  await recordBoot(readConfig({}), key, {
    attestor: {
      kind: 'software',
      statement: `statement ${takeover}`,
      root,
      attest({ publicKey, userData, measurements: { code, dependencies, configuration } }) {
        const document = encodeAttestationDocument({
          moduleId: `module ${takeover}`,
          timestamp: now,
          pcrs: new Map([
            [0, code],
            [1, dependencies],
            [2, configuration],
          ]),
          certificate,
          cabundle: [root],
          publicKey,
          userData,
        });
        const key = { key: leaf.privateKey, dsaEncoding: 'ieee-p1363' } as const;
        return Promise.resolve(signCoseSign1('ES384', document, (data) => sign('sha384', data, key)));
      },
    },
    log: new BootLog({ store, clock: { now: () => now }, newId: () => randomUUID() }),
  });
  const [booted] = await eventsOf(store, bootStream);
  const { ephemeralPublicKey, attestationDocument, manifest, manifestEnvelope, manifestVersion } = booted!
    .data as BootFacts;
  const proof = {
    ephemeralPublicKeyHex: ephemeralPublicKey,
    awsAttestationDocB64: attestationDocument,
    qosManifestB64: manifest,
    qosManifestEnvelopeB64: manifestEnvelope,
    qosManifestVersion: manifestVersion,
  };
  const pem = `-----BEGIN CERTIFICATE-----\n${Buffer.from(root).toString('base64')}\n-----END CERTIFICATE-----\n`;
  await writeFile(user.path('root.pem'), pem);
  await writeFile(user.path('boot.json'), JSON.stringify(proof));
  return now;
}

test('what a proof says cannot control the terminal, whether it is valid or refused', async () => {
  const key = EphemeralKey.make({ bytes: (count) => randomBytes(count) });
  const now = await bootOf(key);
  const proofPayload = JSON.stringify({ type: `a fact ${takeover}`, timestampMs: String(now) });
  const app = { scheme: appProofScheme, publicKey: key.publicKey, proofPayload, signature: key.sign(proofPayload) };
  await writeFile(user.path('app.json'), JSON.stringify(app));
  const words = ['proof', 'verify', '--boot-proof', 'boot.json', '--root', 'root.pem', '--app-proof', 'app.json'];
  const { code, out, error } = await user.types(words);
  expect({ code, error }).toEqual({ code: 0, error: '' });
  expect(out).toContain(`The boot proof is valid: module ${shown}, `);
  expect(out).toContain(`\n  statement ${shown}\n`);
  expect(out).toMatch(/\nAn app proof is valid: \{"type":"a fact \\u001b\[1A\\u001b\[2K\\u\{9b\}1A\\u\{202e\}"/);

  await writeFile(user.path('app.json'), JSON.stringify({ ...app, scheme: `\n${takeover}` }));
  expect(await user.types(words)).toEqual({
    code: 1,
    out: '',
    error: `refused: app proof: its scheme is \`\\u{a}${shown}\`\n`,
  });
});
