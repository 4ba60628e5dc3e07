import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { settings } from '../../src/config/settings.js';
import { grpcNumbers } from '../../src/domain/errors.js';
import * as harness from '../../src/testing/index.js';
import { Installation, stop } from '../e2e/installation.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
/** A program without its first line, which refuses arguments. */
const shown = (file: string): string => read(file).replace(/^import '.*no-arguments\.mjs';\n/, '');

/** Every page that people read, by its path from the root. */
const pages = [
  ...readdirSync(root).filter((file) => file.endsWith('.md')),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => join('docs', file)),
  ...readdirSync(join(root, 'examples'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => join('examples', file)),
].sort();
const writtenPages = pages.filter((page) => !page.startsWith(join('docs', 'reference')));

/** All that a page sets in code: blocks and words. */
const codeOf = (page: string): string[] => [...read(page).matchAll(/```[^]*?```|`[^`\n]+`/g)].map(([code]) => code);

/** The anchors that headings of a page get. */
function anchorsOf(page: string): string[] {
  return [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );
}

test('there are pages to check', () => {
  expect(pages).toEqual(expect.arrayContaining(['README.md', 'SECURITY.md', 'docs/glossary.md', 'docs/adr/README.md']));
  expect(pages.length).toBeGreaterThan(25);
});

test.each(pages)('%s: every relative link leads somewhere', (page) => {
  const prose = read(page).replace(/```[^]*?```/g, '');
  const broken = [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link]) => link!)
    .filter((link) => !/^[a-z]+:/.test(link))
    .filter((link) => {
      const [path, anchor] = link.split('#') as [string, string?];
      const target = path === '' ? page : relative(root, join(root, dirname(page), path));
      if (target.startsWith('..') || !existsSync(join(root, target))) return true;
      return anchor !== undefined && !anchorsOf(target).includes(anchor);
    });
  expect(broken).toEqual([]);
});

test.each(pages)('%s: every npm script exists', (page) => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const named = codeOf(page).flatMap((code) => [
    ...[...code.matchAll(/npm run (?:--silent )?([\w:-]+)/g)].map(([, name]) => name!),
    ...[...code.matchAll(/npm (start|test)\b/g)].map(([, name]) => name!),
  ]);
  expect(named.filter((name) => !(name in scripts))).toEqual([]);
});

test.each(pages)('%s: every file of the repository that is named exists', (page) => {
  const named = codeOf(page)
    .filter((code) => !code.startsWith('```'))
    .flatMap((code) => [...code.matchAll(/^`((?:src|test|scripts|bench|docs)\/[\w./-]+)`$/g)].map(([, file]) => file!));
  // The how-to guides name files that their reader is to write.
  const toBeWritten = ['src/activities/tags/clear-user-tags.ts', 'test/activities/tags/clear-user-tags.decisions.ts'];
  expect(named.filter((file) => !existsSync(join(root, file)) && !toBeWritten.includes(file))).toEqual([]);
});

test.each(writtenPages)('%s: every setting that is named or set exists', (page) => {
  const known = new Set<string>([
    ...settings.map(([name]) => name),
    'NODE_OPTIONS',
    'LONG',
    'SERVER_PID',
    'LC_ALL',
    'CHROMIUM',
    'SQLITE_TMPDIR',
    // A constant of the code, and settings of which the changes say that they are gone.
    'STORE_FORMAT',
    ...(page === 'CHANGELOG.md' ? ['REQUIRE_DATA', 'CLOCK_WAS_AHEAD'] : []),
    ...(page === 'docs/how-to/published-examples.md'
      ? ['BASE_URL', 'API_PUBLIC_KEY', 'API_PRIVATE_KEY', 'USER_ID']
      : []),
    ...Object.keys(grpcNumbers),
  ]);
  // Names of the API, and of other programs.
  const vocabulary =
    /^(?:ACTIVITY_(?:TYPE|STATUS)|APP_PROOF|OUTCOME|EFFECT|VOTE|FEATURE_NAME|API_KEY|CREDENTIAL|CONSENSUS|CREATE|UPDATE|PUBLIC_KEY|REQUEST|RATE_LIMIT_EXCEEDED|EVENTSTORE|EVENT_STORE_URL|DEBUG|KURRENTDB|TRANSACTION_TYPE|PAYLOAD_ENCODING|HASH_FUNCTION|ADDRESS_FORMAT|CURVE|PATH_FORMAT|MNEMONIC_LANGUAGE|PRIVATE_KEY|WALLET|SIGN|SIGNATURE|NO_OP|NOT_APPLICABLE|SIGHASH|OTP|OAUTH|OAUTH2|USAGE_TYPE|SESSION_TYPE|AUTH|EMAIL|PHONE_NUMBER|WALLET_ACCOUNT_ADDRESS|OIDC|INVALID|ORGANIZATION|STAMP|DELETE|SUB_ORGANIZATION|MAX_OTP|ACTIVITY_UPDATES|WEBHOOK_ENDPOINT|ACCESS_TYPE|ACCEPT_INVITATION)(?:_|$)/;
  const named = codeOf(page).flatMap((code) =>
    [...code.matchAll(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\b[A-Z]{4,}(?==)/g)].map(([name]) => name),
  );
  expect([...new Set(named)].filter((name) => !known.has(name) && !vocabulary.test(name))).toEqual([]);
});

test('the reference has every setting, with its default and words', () => {
  const rows = [...read('docs/reference/settings.md').matchAll(/^\| `([A-Z0-9_]+)` \|(.*)\|(.*)\|$/gm)].map(
    ([, name, value, about]) => [name, value!.trim().replaceAll('`', ''), about!.trim()],
  );
  expect(rows).toEqual(settings.map((setting) => [...setting]));
});

test('the first example of the guide to the harness is the one that runs, and prints what it shows', async () => {
  const file = 'examples/two-approvals.mjs';
  const { stdout } = await promisify(execFile)(process.execPath, [join(root, file)], { cwd: root, timeout: 60_000 });
  expect(read('docs/how-to/test-with-the-harness.md')).toContain(
    `\`\`\`mjs\n${shown(file)}\`\`\`\n\n\`\`\`\n${stdout.replace(/ +$/gm, '')}\`\`\``,
  );
});

test('the first start prints what the README shows', async () => {
  const installation = await Installation.make();
  try {
    const server = await installation.start();
    await stop(server);
    const { organizationId } = await installation.root();
    const printed = server
      .stdout()
      .replaceAll(server.url, 'http://127.0.0.1:8080')
      .replaceAll(installation.dataDir, '…/data')
      .replace(organizationId!, `${organizationId!.slice(0, 8)}-…`);
    const banner = printed.slice(printed.indexOf('Countersign is up'));
    const [, shown] = /```\n(Countersign is up[^]*?)```/.exec(read('README.md'))!;
    expect(banner.replace(/[0-9a-f]{8}-…/, '01a21573-…')).toBe(shown);
  } finally {
    await installation.remove();
  }
});

test('what the pages import from the harness is there', () => {
  const imported = pages.flatMap((page) =>
    [...read(page).matchAll(/import \{([^}]+)\} from 'countersign\/testing'/g)].flatMap(([, names]) =>
      names!.split(',').map((name) => name.trim()),
    ),
  );
  expect(imported).toContain('startCoordinator');
  expect(imported.filter((name) => !(name in harness))).toEqual([]);
});

test('every decision is listed', () => {
  const files = readdirSync(join(root, 'docs/adr')).filter((file) => /^\d{4}-/.test(file));
  for (const file of files) expect(read('docs/adr/README.md')).toContain(`(${file})`);
});

describe('the guide to a first request', () => {
  test('shows the script', () => {
    expect(read('docs/how-to/send-a-request.md')).toContain(`\`\`\`js\n${shown('scripts/first-request.mjs')}\`\`\``);
  });

  test('runs against a server, and shows what was recorded', async () => {
    // The published client stamps with the real time.
    const coordinator = await harness.startCoordinator({ at: new Date() });
    const folder = await mkdtemp(join(tmpdir(), 'countersign-readme-'));
    try {
      await writeFile(join(folder, 'root.json'), JSON.stringify(coordinator.root));
      const { stdout } = await promisify(execFile)(process.execPath, [join(root, 'scripts/first-request.mjs')], {
        env: { ...process.env, DATA_DIR: folder },
        timeout: 25_000,
      });
      expect(stdout).toMatch(/^I am Root user\nACTIVITY_STATUS_COMPLETED /);
      expect(stdout).toMatch(/^\d+ ActivitySubmitted [^]+^\d+ UserTagCreated [^]+^\d+ ActivityCompleted /m);
    } finally {
      await rm(folder, { recursive: true, force: true });
      await coordinator.close();
    }
  });
});
