import { hash } from 'node:crypto';
import type { Config } from '../config/config.js';
import { manifestVersion, registers, type Attestor } from './attestor.js';
import type { BootLog } from './boot-log.js';
import { signCoseSign1 } from './cose-sign1.js';
import type { EphemeralKey } from './ephemeral-key.js';
import { measure, type Measured } from './measure.js';

interface BootPorts {
  readonly attestor: Attestor;
  readonly log: BootLog;
}

/** The name of a coordinator in its boot proofs. */
const app = 'countersign';

/**
 * Has the key of a boot attested, with everything that booted, and records that: from then on, its proofs can be
 * verified.
 */
export async function recordBoot(config: Config, key: EphemeralKey, { attestor, log }: BootPorts): Promise<void> {
  const measured = await measure(config);
  const manifest = manifestOf(attestor, measured);
  const document = await attestor.attest({
    publicKey: Buffer.from(key.publicKey, 'hex'),
    userData: hash('sha256', manifest, 'buffer'),
    measurements: measured,
  });
  const envelope = signCoseSign1('ES256', manifest, (toBeSigned) => key.signBytes(toBeSigned));
  await log.booted({
    ephemeralPublicKey: key.publicKey,
    attestationDocument: Buffer.from(document).toString('base64'),
    manifest: manifest.toString('base64'),
    manifestEnvelope: Buffer.from(envelope).toString('base64'),
    manifestVersion,
    deploymentLabel: `v${measured.release}`,
    app,
    owner: app,
  });
}

/**
 * A description of what booted: JSON. The same release with the same settings gives the same bytes, which can be
 * pinned.
 */
function manifestOf({ kind, statement }: Attestor, measured: Measured): Buffer {
  const { code, dependencies, configuration, files, dependenciesFile, settings, release } = measured;
  const hex = (measurement: Uint8Array) => Buffer.from(measurement).toString('hex');
  const manifest = {
    version: manifestVersion,
    app,
    release,
    runtime: { node: process.version, platform: process.platform, architecture: process.arch },
    attestor: { kind, statement },
    measurements: {
      [registers.code]: { of: 'code', sha384: hex(code), files },
      [registers.dependencies]: { of: 'dependencies', sha384: hex(dependencies), file: dependenciesFile },
      [registers.configuration]: { of: 'configuration', sha384: hex(configuration), settings },
    },
  };
  return Buffer.from(JSON.stringify(manifest));
}
