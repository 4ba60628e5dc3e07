import { generateKeyPairSync, randomBytes, sign, webcrypto } from 'node:crypto';
import type { InstallationKeys } from '../keyring/installation-keys.js';
import { encodeAttestationDocument } from './attestation-document.js';
import { registers, type Attestor } from './attestor.js';
import type { BootLog } from './boot-log.js';
import { issueLeaf, issueRoot } from './certificates.js';
import { signCoseSign1 } from './cose-sign1.js';

interface SoftwareAttestorPorts {
  readonly keys: InstallationKeys;
  readonly log: BootLog;
  readonly clock: { now(): number };
}

const statement =
  'Software attestor: this document is signed by the coordinator itself. It shows which code and settings the process claims to have started with; no hardware vouches for that.';

const p256 = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const p384 = { name: 'ECDSA', namedCurve: 'P-384' } as const;

/**
 * Documents in the format of an enclave, signed by ourselves: a root key that is sealed in the vault, and below it a
 * P-384 key for each boot, which is forgotten once it has signed.
 */
export async function openSoftwareAttestor({ keys, log, clock }: SoftwareAttestorPorts): Promise<Attestor> {
  const publicKey = await rootPublicKey(keys);
  const root = await log.root(() =>
    withRootKey(keys, (privateKey) => issueRoot({ publicKey, privateKey }, randomBytes(16))),
  );
  return {
    kind: 'software',
    statement,
    root,
    async attest({ publicKey: ephemeralKey, userData, measurements }) {
      const leaf = generateKeyPairSync('ec', { namedCurve: 'P-384' });
      const spki = leaf.publicKey.export({ format: 'der', type: 'spki' });
      const leafKey = await webcrypto.subtle.importKey('spki', spki, p384, true, ['verify']);
      const certificate = await withRootKey(keys, (privateKey) =>
        issueLeaf({ certificate: root, privateKey }, leafKey, { now: clock.now(), serial: randomBytes(16) }),
      );
      const document = encodeAttestationDocument({
        moduleId: 'countersign-software-attestor',
        timestamp: clock.now(),
        pcrs: new Map([
          [registers.code, measurements.code],
          [registers.dependencies, measurements.dependencies],
          [registers.configuration, measurements.configuration],
        ]),
        certificate,
        cabundle: [root],
        publicKey: ephemeralKey,
        userData,
      });
      return signCoseSign1('ES384', document, (toBeSigned) =>
        sign('sha384', toBeSigned, { key: leaf.privateKey, dsaEncoding: 'ieee-p1363' }),
      );
    },
  };
}

function rootPublicKey(keys: InstallationKeys): Promise<webcrypto.CryptoKey> {
  const point = Buffer.from(keys.publicKey('attestation-root', 'uncompressed'), 'hex');
  return webcrypto.subtle.importKey('raw', point, p256, true, ['verify']);
}

/** Opens the root key while `use` runs. */
function withRootKey<Result>(
  keys: InstallationKeys,
  use: (privateKey: webcrypto.CryptoKey) => Promise<Result>,
): Promise<Result> {
  const point = Buffer.from(keys.publicKey('attestation-root', 'uncompressed'), 'hex');
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString('base64url'));
  return keys.use('attestation-root', async (key) => {
    const jwk = { kty: 'EC', crv: 'P-256', x: x!, y: y!, d: key.toString('base64url') };
    return use(await webcrypto.subtle.importKey('jwk', jwk, p256, false, ['sign']));
  });
}
