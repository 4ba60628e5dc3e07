import { readFile } from 'node:fs/promises';
import { InvalidArgumentError } from 'commander';
import type { AppProof } from '../../domain/activity/app-proof.js';
import type { BootProof, VerifiedBoot } from '../../proofs/verify.js';
import { BadUsage } from '../bad-usage.js';
import type { CliCommand, Outcome } from '../command.js';
import { exitCodes } from '../exit-codes.js';
import { unreadable } from '../input-files.js';
import { printable } from '../layout.js';
import type { Terminal } from '../terminal.js';

interface ProofOptions {
  readonly bootProof: string;
  readonly root: string;
  readonly appProof?: string;
  readonly pcr: Readonly<Record<number, string>>;
  readonly manifestSha256?: string;
}

/** `countersign proof verify`; see docs/how-to/verify-proofs.md. */
export function mountProofVerify(parent: CliCommand): void {
  parent
    .command('verify')
    .summary('verify a boot proof and its app proofs')
    .description('Verifies a boot proof, and app proofs signed by its key, offline.')
    .requiredOption('--boot-proof <file>', 'JSON: a boot proof, or the response of get_boot_proof')
    .requiredOption('--root <file>', 'PEM: the root certificate to trust, from a source you trust')
    .option('--app-proof <file>', 'JSON: an app proof, a list of them, or the response of list_app_proofs')
    .option(
      '--pcr <number=hex>',
      'required value of a register in the document; can be repeated',
      (input: string, before: Readonly<Record<number, string>>) => ({ ...before, ...registerOf(input) }),
      {},
    )
    .option('--manifest-sha256 <hex>', 'required SHA-256 of the manifest')
    .example(
      'countersign proof verify --boot-proof boot.json --root root.pem --app-proof app.json',
      'Verify the responses of get_boot_proof and list_app_proofs',
    )
    .answers((options: ProofOptions) => verifyProofs(parent.terminal, options));
}

async function verifyProofs(terminal: Terminal, options: ProofOptions): Promise<Outcome> {
  const { ProofRefused, verifyAppProof, verifyBootProof } = await import('../../proofs/verify.js');
  const expected = {
    root: await readText(terminal.path(options.root)),
    pcrs: options.pcr,
    ...(options.manifestSha256 === undefined ? {} : { manifestSha256: options.manifestSha256 }),
  };
  const bootProof = unwrapped<BootProof>(await readJson(terminal.path(options.bootProof)), 'bootProof');
  const input =
    options.appProof === undefined
      ? []
      : unwrapped<AppProof | AppProof[]>(await readJson(terminal.path(options.appProof)), 'appProofs');
  try {
    const boot = await verifyBootProof(bootProof, expected);
    const apps: unknown[] = [];
    for (const proof of Array.isArray(input) ? input : [input]) {
      apps.push((await verifyAppProof(proof, bootProof, expected)).app);
    }
    const lines = [
      `The boot proof is valid: ${described(boot)}`,
      ...apps.map((app) => printable(`An app proof is valid: ${JSON.stringify(app)}`)),
    ];
    return { text: `${lines.join('\n')}\n`, json: { good: true, boot, apps } };
  } catch (error) {
    if (!(error instanceof ProofRefused)) throw error;
    terminal.error(`refused: ${printable(error.message)}\n`);
    return { text: '', json: { good: false, reason: error.message }, exitCode: exitCodes.failed };
  }
}

function registerOf(input: string): Readonly<Record<number, string>> {
  const [, register, value] = /^(\d{1,2})=([0-9a-f]{96})$/i.exec(input) ?? [];
  if (!register || !value) throw new InvalidArgumentError('It must be a number, =, and 96 hex characters.');
  return { [Number(register)]: value };
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw unreadable(file, cause);
  }
}

async function readJson(file: string): Promise<unknown> {
  const text = await readText(file);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new BadUsage(`${file} is not JSON: ${String(cause)}`, { cause });
  }
}

/** The proof itself, or the member of a response that holds it. */
function unwrapped<Proof>(value: unknown, name: string): Proof {
  const isObject = typeof value === 'object' && value !== null;
  if (!isObject) throw new BadUsage(`a proof must be a JSON object, got ${JSON.stringify(value)}`);
  return (name in value ? (value as Readonly<Record<string, unknown>>)[name] : value) as Proof;
}

function described({ moduleId, timestamp, pcrs, manifest, manifestSha256 }: VerifiedBoot): string {
  const attestor = manifest?.['attestor'] as { readonly statement?: string } | undefined;
  return [
    `${moduleId}, ${new Date(timestamp).toISOString()}`,
    ...(attestor?.statement ? [`  ${attestor.statement}`] : []),
    `  manifest  ${manifestSha256}`,
    ...Object.entries(pcrs).map(([register, value]) => `  PCR${register.padEnd(6)} ${value}`),
  ]
    .map(printable)
    .join('\n');
}
