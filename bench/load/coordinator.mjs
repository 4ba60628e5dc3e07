import { spawn } from 'node:child_process';
import { sign } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { apiKeyPairFromPrivate } from '../../dist/stamps/sign.js';
import { nodeFlags } from './flags.mjs';
import { freePort, ready } from './server.mjs';
import { privateKeyObject } from './stamped-renames.mjs';

/** Of the clock that Linux counts processor time with. */
const ticksPerSecond = 100;

/** A folder for the data of a benchmark, in BENCH_DIR if that is set. */
export function benchFolder() {
  return mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'countersign-bench-'));
}

/** More sub-organizations in a minute than an installation founds by itself: here, they are the load. */
const limits = { ORGANIZATION_LIMITS: 'subOrganizationsPerMinute=10000' };

/**
 * A coordinator as `npm start` starts it, in a process of its own. With PROFILE set to a folder, its processor profile is
 * written there.
 */
export class Coordinator {
  constructor(folder, port, child) {
    this.folder = folder;
    this.port = port;
    this.child = child;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** Resolves when it is ready. @param settings environment variables in addition to PORT and DATA_DIR */
  static async start(folder, settings = {}, minutes = 1) {
    const port = await freePort();
    const profile = process.env.PROFILE ? ['--cpu-prof', `--cpu-prof-dir=${process.env.PROFILE}`] : [];
    const flags = [...nodeFlags, ...profile];
    const child = spawn(process.execPath, [...flags, fileURLToPath(new URL('../../dist/main.js', import.meta.url))], {
      env: { ...process.env, PORT: String(port), DATA_DIR: folder, LOG_LEVEL: 'error', ...limits, ...settings },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const coordinator = new Coordinator(folder, port, child);
    try {
      await ready(child, coordinator.url, minutes);
    } catch (error) {
      await coordinator.kill();
      throw error;
    }
    return coordinator;
  }

  /** The root user with their key: what `stamped` takes. */
  get root() {
    const root = JSON.parse(readFileSync(join(this.folder, 'root.json'), 'utf8'));
    return { ...root, ...signer(apiKeyPairFromPrivate(root.apiPrivateKey)) };
  }

  /** Milliseconds of processor time that all its threads have used, or its main thread. */
  processorMs(ofMain = false) {
    const { pid } = this.child;
    const stat = readFileSync(ofMain ? `/proc/${pid}/task/${pid}/stat` : `/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1_000;
  }

  /** Memory of the process that is in use, in MiB. */
  residentMiB() {
    const [, kib] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.child.pid}/status`, 'latin1'));
    return Number(kib) / 1024;
  }

  async stop() {
    await this.end('SIGTERM');
  }

  async kill() {
    await this.end('SIGKILL');
  }

  async end(signal) {
    this.child.kill(signal);
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'exit');
  }

  async remove() {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A key pair as `stamped` signs with it. */
export function signer(pair) {
  return { publicKey: pair.publicKey, key: privateKeyObject(pair) };
}

let last = 0;

/** A stamped submit, or query if `type` is a path; bodies differ at least in their time. */
export function stamped({ organizationId, publicKey, key }, type, parameters) {
  last = Math.max(last + 1, Date.now());
  const isQuery = type.startsWith('/');
  const asked = isQuery ? parameters : { type, timestampMs: String(last), parameters };
  const body = JSON.stringify({ ...asked, organizationId });
  const signature = sign('sha256', Buffer.from(body), key).toString('hex');
  const stamp = JSON.stringify({ publicKey, scheme: 'SIGNATURE_SCHEME_TK_API_P256', signature });
  const kind = type
    .replace(/^ACTIVITY_TYPE_/, '')
    .replace(/_V\d+$/, '')
    .toLowerCase();
  const headers = { 'x-stamp': Buffer.from(stamp).toString('base64url'), 'x-organization-id': organizationId };
  return { path: isQuery ? type : `/public/v1/submit/${kind}`, body, headers };
}

/** The answer's body. @throws for every answer that is not 200 */
export async function post(url, { path, body, headers }) {
  const answer = await fetch(`${url}${path}`, { method: 'POST', body, headers });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text.slice(0, 600)}`);
  return JSON.parse(text);
}

/** The result of a submit, without its name. */
export async function submit(url, request) {
  return Object.values((await post(url, request)).activity.result)[0];
}

/** Does so many at once, in order; gives their results in order. */
export async function each(items, atOnce, work) {
  const results = [];
  let next = 0;
  const lane = async () => {
    while (next < items.length) {
      const at = next++;
      results[at] = await work(items[at], at);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return results;
}

/** Bytes of all files below a folder. */
export function bytesIn(folder) {
  if (!existsSync(folder)) return 0;
  const names = readdirSync(folder, { recursive: true }).map((name) => join(folder, name));
  return names.map((name) => statSync(name)).reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0);
}
