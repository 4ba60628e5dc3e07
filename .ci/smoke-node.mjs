/**
 * Starts the built product on the other versions of Node that it is for: submits a stamped activity on the embedded store, starts
 * it again, and reads the activity. `node .ci/smoke-node.mjs [version…]`, after `npm run build`. The binaries come from the
 * registry in use, by exact version, without install scripts, into node_modules/.cache. On Linux with x64 or arm64.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { StampingClient } from '../dist/client/stamping-client.js';
import { apiKeyPairFromPrivate } from '../dist/stamps/sign.js';

/** The last of them is that of the image. */
const versions = process.argv.length > 2 ? process.argv.slice(2) : ['22.23.3', '24.21.0'];
const root = fileURLToPath(new URL('..', import.meta.url));
/** How long a start, an answer or an end may take, in milliseconds. */
const patienceMs = 60_000;

if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch)) {
  console.error(`no binaries of Node for ${process.platform} ${process.arch} here: run this on Linux`);
  process.exit(1);
}

/** Path of the binary of that version, fetched when it is not there yet. */
function nodeOf(version) {
  const name = `node-linux-${process.arch}`;
  const folder = join(root, 'node_modules', '.cache', 'node', version);
  const binary = join(folder, 'node_modules', name, 'bin', 'node');
  const flags = ['--no-save', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  if (!existsSync(binary)) {
    execFileSync('npm', ['install', '--prefix', folder, ...flags, `${name}@${version}`], {
      stdio: 'inherit',
      timeout: 5 * patienceMs,
    });
  }
  const said = execFileSync(binary, ['--version'], { encoding: 'utf8' }).trim();
  if (said !== `v${version}`) throw new Error(`the binary of Node ${version} says that it is ${said}`);
  return binary;
}

const limited = () => AbortSignal.timeout(patienceMs);

/** Starts the product on that binary, hands over its URL, and ends it. */
async function whileUp(binary, folder, use) {
  const child = spawn(binary, [join(root, 'dist', 'main.js')], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, DATA_DIR: folder, PORT: '0', LOG_LEVEL: 'warn' },
  });
  const gone = once(child, 'exit', { signal: limited() });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said += text));
  try {
    const end = limited();
    let url;
    while (!(url = /API\s+(http:\S+)/.exec(said)?.[1])) {
      if (child.exitCode !== null || end.aborted) throw new Error(`it did not start:\n${said}`);
      await setTimeout(50);
    }
    await use(url);
  } finally {
    child.kill('SIGTERM');
    const [code] = await gone;
    if (code !== 0) throw new Error(`it ended with ${code}:\n${said}`);
  }
}

let last = 0;
const clock = { now: () => (last = Math.max(Date.now(), last + 1)) };

for (const version of versions) {
  const binary = nodeOf(version);
  const folder = mkdtempSync(join(tmpdir(), 'countersign-smoke-'));
  const client = (url) => {
    const { organizationId, apiPrivateKey } = JSON.parse(readFileSync(join(folder, 'root.json'), 'utf8'));
    return new StampingClient(url, organizationId, apiKeyPairFromPrivate(apiPrivateKey), clock);
  };
  try {
    let id;
    await whileUp(binary, folder, async (url) => {
      const activity = await client(url).submit('ACTIVITY_TYPE_CREATE_WALLET', {
        walletName: `Node ${version}`,
        accounts: [
          {
            curve: 'CURVE_SECP256K1',
            pathFormat: 'PATH_FORMAT_BIP32',
            path: "m/44'/60'/0'/0/0",
            addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
          },
        ],
      });
      if (activity.status !== 'ACTIVITY_STATUS_COMPLETED') throw new Error(`the activity is ${activity.status}`);
      id = activity.id;
    });
    await whileUp(binary, folder, async (url) => {
      const { activity } = await client(url).query('get_activity', { activityId: id });
      if (activity.status !== 'ACTIVITY_STATUS_COMPLETED') throw new Error(`after a restart it is ${activity.status}`);
      const { wallets } = await client(url).query('list_wallets');
      if (wallets.length !== 1) throw new Error(`after a restart there are ${wallets.length} wallets`);
    });
    console.log(`Node ${version}: started, submitted, started again, read`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
