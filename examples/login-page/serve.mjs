/**
 * Bundles the page and serves it, and prints the messages of the outbox, where the codes are while nothing sends mail.
 *
 *   node examples/login-page/serve.mjs [port]     3000 unless given; 0 for a free one
 */
import { existsSync } from 'node:fs';
import { open, readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setInterval } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { readArguments } from '../../scripts/arguments.mjs';

if (existsSync('.env')) process.loadEnvFile('.env');
const dataDir = process.env.DATA_DIR || './data';
const here = fileURLToPath(new URL('.', import.meta.url));
const { port } = readArguments({ values: { port: '3000' } });
if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) end(`\`${port}\` is no port: it must be from 0 to 65535`);

/** What the page may know of `root.json`. The private key in it stays where it is. */
async function pageConfig() {
  const file = join(dataDir, 'root.json');
  const text = await readFile(file, 'utf8').catch(() => {
    throw new Error(`${file} is not there: start the server first (npm start), with the same DATA_DIR`);
  });
  const { apiUrl, authProxyUrl, authProxyConfigId, organizationId } = JSON.parse(text);
  if (!apiUrl || !authProxyUrl || !authProxyConfigId) {
    throw new Error(`${file} names no auth proxy: start the server with APP=all, or set AUTH_PROXY_URL`);
  }
  return { apiBaseUrl: apiUrl, authProxyUrl, authProxyConfigId, organizationId };
}

async function bundled() {
  const { outputFiles } = await build({
    entryPoints: [join(here, 'app.js')],
    bundle: true,
    format: 'esm',
    target: 'es2022',
    minify: true,
    write: false,
    logLevel: 'warning',
    define: { global: 'globalThis', 'process.env.NODE_ENV': '"production"' },
  });
  return outputFiles[0].contents;
}

await pageConfig().catch((error) => end(error.message));
const script = await bundled();
const file = (name) => () => readFile(join(here, name));
const files = new Map([
  ['/', ['text/html; charset=utf-8', file('index.html')]],
  ['/style.css', ['text/css; charset=utf-8', file('style.css')]],
  ['/icon.svg', ['image/svg+xml', file('icon.svg')]],
  ['/app.js', ['text/javascript; charset=utf-8', () => script]],
  ['/config.json', ['application/json', async () => JSON.stringify(await pageConfig())]],
]);

const server = createServer(async (request, response) => {
  const [type, contents] = files.get(request.url.split('?')[0]) ?? [];
  try {
    if (!contents) return response.writeHead(404).end();
    // Read each time: the server may have been started again on another port.
    const { apiBaseUrl, authProxyUrl } = await pageConfig();
    const policy = [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self'",
      `connect-src 'self' ${[...new Set([apiBaseUrl, authProxyUrl])].join(' ')}`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join('; ');
    response
      .writeHead(200, {
        'content-type': type,
        'content-security-policy': policy,
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
      })
      .end(await contents());
  } catch (error) {
    response.writeHead(500, { 'content-type': 'text/plain; charset=utf-8' }).end(`${error.message}\n`);
  }
});

server.once('error', ({ code, message }) =>
  end(code === 'EADDRINUSE' ? `port ${port} is in use: npm run example -- 0 takes a free one` : message),
);
// Passkeys need a host name: browsers make none for an address such as 127.0.0.1.
server.listen(Number(port), 'localhost', () => {
  console.log(`The example is at http://localhost:${server.address().port}`);
  console.log(`Codes are printed here as long as ${join(dataDir, 'outbox.jsonl')} gets them.`);
});

await printOutbox(join(dataDir, 'outbox.jsonl'));

/** Prints what is added to the outbox from now on. Never over HTTP: a code is as good as the login. */
async function printOutbox(outbox) {
  const sizeNow = async () => (await stat(outbox).catch(() => ({ size: 0 }))).size;
  let position = await sizeNow();
  for await (const _ of setInterval(300)) {
    const size = await sizeNow();
    if (size < position) position = 0;
    if (size === position) continue;
    // Whoever moves the outbox away between two looks gets a new one.
    const handle = await open(outbox).catch(() => undefined);
    if (!handle) continue;
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(size - position), 0, size - position, position);
    await handle.close();
    // What comes after the last line break is not whole yet.
    const whole = buffer.subarray(0, buffer.subarray(0, bytesRead).lastIndexOf('\n') + 1);
    position += whole.length;
    for (const line of whole.toString().split('\n').filter(Boolean)) {
      const { to, text } = JSON.parse(line);
      console.log(`\nTo ${to}:\n${text}`);
    }
  }
}

function end(problem) {
  console.error(problem);
  process.exit(1);
}
