import { CoordinatorError } from '../domain/errors.js';
import { timestamp } from '../domain/organization/timestamp.js';
import { Described, Hex, Nested, Text } from '../wire/fields.js';
import type { Rows } from './database.js';
import { defineQuery, OrganizationRequest } from './define-query.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { TimestampShape } from '../wire/shapes.js';

/** Every boot of the installation. The documents are public, so that anyone can verify them. */
export const bootProofsModel: ReadModel = {
  name: 'boot proofs',
  version: 1,
  tables: ['boot_proofs'],
  schema: `
    CREATE TABLE boot_proofs (
      ephemeral_key TEXT PRIMARY KEY, app TEXT NOT NULL, position INTEGER NOT NULL, doc TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX boot_proofs_by_time ON boot_proofs (app, position);`,

  project: eachEvent((rows, { position, at, event }) => {
    if (event.type !== 'CoordinatorBooted') return;
    const { ephemeralPublicKey, attestationDocument, manifest, manifestEnvelope, ...boot } = event.data;
    const doc: BootProofShape = {
      ephemeralPublicKeyHex: ephemeralPublicKey,
      cloudAttestationDocB64: attestationDocument,
      awsAttestationDocB64: attestationDocument,
      qosManifestB64: manifest,
      qosManifestEnvelopeB64: manifestEnvelope,
      deploymentLabel: boot.deploymentLabel,
      enclaveApp: boot.app,
      owner: boot.owner,
      createdAt: timestamp(at),
      qosManifestVersion: boot.manifestVersion,
    };
    rows.run(
      'INSERT OR REPLACE INTO boot_proofs VALUES (?, ?, ?, ?)',
      ephemeralPublicKey,
      boot.app,
      position,
      JSON.stringify(doc),
    );
  }),
};

class BootProofShape {
  @Text({ about: 'Encryption key and signing key of this boot: two uncompressed P-256 points, 130 bytes in hex.' })
  ephemeralPublicKeyHex!: string;

  @Described({ type: 'string' }, { about: 'COSE_Sign1 (ES384) of the attestation document, base64.' })
  cloudAttestationDocB64!: string;

  @Described({ type: 'string' }, { about: 'The same value, under the name that published clients read.' })
  awsAttestationDocB64!: string;

  @Described(
    { type: 'string' },
    { about: 'Manifest of the booted software: JSON, base64. The document contains its SHA-256 as user_data.' },
  )
  qosManifestB64!: string;

  @Described({ type: 'string' }, { about: 'COSE_Sign1 (ES256) of the manifest by the ephemeral key, base64.' })
  qosManifestEnvelopeB64!: string;

  @Text({ about: 'The release, such as v0.1.0.' })
  deploymentLabel!: string;

  @Text({ about: 'countersign' })
  enclaveApp!: string;

  @Text({ about: 'countersign' })
  owner!: string;

  @Nested(() => TimestampShape)
  createdAt!: TimestampShape;

  @Text({ about: 'Format of the manifest: countersign-1.' })
  qosManifestVersion!: string;
}

class BootProofResponse {
  @Nested(() => BootProofShape)
  bootProof!: BootProofShape;
}

class GetBootProofRequest extends OrganizationRequest {
  @Hex({ max: 260, about: 'Ephemeral public key of the boot: `publicKey` of an app proof.' })
  ephemeralKey!: string;
}

export const getBootProof = defineQuery({
  path: 'get_boot_proof',
  summary: 'The boot proof of a coordinator, by the key that signs its app proofs.',
  request: GetBootProofRequest,
  response: BootProofResponse,
  answer({ ephemeralKey }, { rows }) {
    const row = rows.get('SELECT doc FROM boot_proofs WHERE ephemeral_key = ?', ephemeralKey.toLowerCase());
    if (!row) {
      throw new CoordinatorError(
        'NOT_FOUND',
        `no boot with the ephemeral key \`${ephemeralKey}\`: send the publicKey of an app proof, 260 hex characters`,
      );
    }
    return { bootProof: documentIn(row) };
  },
});

class GetLatestBootProofRequest extends OrganizationRequest {
  @Text({ min: 1, max: 255, about: '`countersign`, the only app here.' })
  appName!: string;
}

export const getLatestBootProof = defineQuery({
  path: 'get_latest_boot_proof',
  summary: 'The proof of the latest boot of an app. If several coordinators share a store, the one that booted last.',
  request: GetLatestBootProofRequest,
  response: BootProofResponse,
  answer({ appName }, { rows }) {
    const row = rows.get('SELECT doc FROM boot_proofs WHERE app = ? ORDER BY position DESC LIMIT 1', appName);
    if (!row) {
      throw new CoordinatorError('NOT_FOUND', `no app \`${appName}\` has booted here: ask for \`countersign\``);
    }
    return { bootProof: documentIn(row) };
  },
});

function documentIn(row: NonNullable<ReturnType<Rows['get']>>): BootProofShape {
  return JSON.parse(String(row['doc'])) as BootProofShape;
}
