#!/usr/bin/env node
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import type { AppProof } from '../domain/activity/app-proof.js';
import { ProofRefused, verifyAppProof, verifyBootProof, type BootProof, type VerifiedBoot } from '../proofs/verify.js';
import { BadUsage } from './bad-usage.js';
import { verify, verifyUsage, type Outcome } from './verify.js';

/** Commands that need no running coordinator; see docs/how-to/verify-proofs.md and verify-history.md. */

const usage = `countersign proof verify --boot-proof FILE --root FILE [--app-proof FILE]
                         [--pcr NUMBER=HEX …] [--manifest-sha256 HEX]

Verifies a boot proof, and app proofs by its key, without a network.

  --boot-proof        JSON: a boot proof, or the answer of get_boot_proof
  --root              PEM: the root certificate to trust, got from somebody you trust
  --app-proof         JSON: an app proof, a list of them, or the answer of list_app_proofs
  --pcr               what a register of the document must hold; may be given several times
  --manifest-sha256   what the SHA-256 of the manifest must be
`;

async function run([noun, ...rest]: readonly string[]): Promise<Outcome> {
  if (noun === 'verify') return verify(rest);
  if (noun === 'proof' && rest[0] === 'verify') return { text: await verifyProofs(rest.slice(1)), exitCode: 0 };
  throw new BadUsage(`${usage}\n${verifyUsage}`);
}

async function verifyProofs(rest: readonly string[]): Promise<string> {
  const { values } = argumentsOf(rest);
  const { 'boot-proof': bootFile, root: rootFile, 'app-proof': appFile, 'manifest-sha256': manifestSha256 } = values;
  if (bootFile === undefined || rootFile === undefined) throw new BadUsage(usage);
  const expected = {
    root: await readFile(rootFile, 'utf8'),
    pcrs: registersOf(values.pcr ?? []),
    ...(manifestSha256 === undefined ? {} : { manifestSha256 }),
  };
  const bootProof = unwrapped<BootProof>(await readJson(bootFile), 'bootProof');
  const boot = await verifyBootProof(bootProof, expected);
  const lines = [`The boot proof is good: ${described(boot)}`];
  if (appFile !== undefined) {
    const proofs = unwrapped<AppProof | AppProof[]>(await readJson(appFile), 'appProofs');
    for (const proof of Array.isArray(proofs) ? proofs : [proofs]) {
      const { app } = await verifyAppProof(proof, bootProof, expected);
      lines.push(`An app proof is good: ${JSON.stringify(app)}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

function argumentsOf(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        'boot-proof': { type: 'string' },
        root: { type: 'string' },
        'app-proof': { type: 'string' },
        pcr: { type: 'string', multiple: true },
        'manifest-sha256': { type: 'string' },
      },
    });
  } catch (cause) {
    throw new BadUsage(`${cause instanceof Error ? cause.message : String(cause)}\n\n${usage}`, { cause });
  }
}

function registersOf(given: readonly string[]): Readonly<Record<number, string>> {
  return Object.fromEntries(
    given.map((one) => {
      const [, register, value] = /^(\d{1,2})=([0-9a-f]{96})$/i.exec(one) ?? [];
      if (!register || !value) throw new BadUsage(`--pcr ${one}: must be a number, =, and 96 hex characters\n`);
      return [register, value];
    }),
  );
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch (cause) {
    throw new BadUsage(`${file} cannot be read as JSON: ${String(cause)}\n`, { cause });
  }
}

/** The proof itself, or what an answer has under a name. */
function unwrapped<Proof>(value: unknown, name: string): Proof {
  const isObject = typeof value === 'object' && value !== null;
  if (!isObject) throw new BadUsage(`a proof must be a JSON object, got ${JSON.stringify(value)}\n`);
  return (name in value ? (value as Readonly<Record<string, unknown>>)[name] : value) as Proof;
}

function described({ moduleId, timestamp, pcrs, manifest, manifestSha256 }: VerifiedBoot): string {
  const attestor = manifest?.['attestor'] as { readonly statement?: string } | undefined;
  return [
    `${moduleId}, ${new Date(timestamp).toISOString()}`,
    ...(attestor?.statement ? [`  ${attestor.statement}`] : []),
    `  manifest  ${manifestSha256}`,
    ...Object.entries(pcrs).map(([register, value]) => `  PCR${register.padEnd(6)} ${value}`),
  ].join('\n');
}

try {
  const { text, exitCode } = await run(process.argv.slice(2));
  process.stdout.write(text);
  process.exitCode = exitCode;
} catch (error) {
  const isUsage = error instanceof BadUsage;
  const message = error instanceof Error ? error.message : String(error);
  const isRefused = error instanceof ProofRefused;
  process.stderr.write(isUsage ? message : `${isRefused ? 'refused' : 'countersign'}: ${message}\n`);
  process.exitCode = isRefused ? 1 : 2;
}
