import { randomBytes } from 'node:crypto';
import { appendFile, chmod, cp, mkdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import Database from 'libsql';
import { versionFinding } from '../../src/cli/doctor.js';
import { Installation, stop } from '../e2e/installation.js';
import { EventStoreDouble } from '../ledger/stores/double/double.js';
import { TypingUser } from './typed.js';

let installation: Installation;
let user: TypingUser;

/** A real installation, which a coordinator has made and left; each test breaks a copy of it. */
beforeAll(async () => {
  installation = await Installation.make();
  await stop(await installation.start());
}, 120_000);

afterAll(() => installation.remove());

beforeEach(async () => {
  user = await TypingUser.sitDown();
  await cp(installation.dataDir, user.path('data'), { recursive: true });
  await chmod(user.path('data'), 0o700);
});

afterEach(() => user.leaves());

interface Finding {
  readonly about: string;
  readonly level: string;
  readonly found: string;
  readonly toDo?: string;
}

async function findings(env: Readonly<Record<string, string>> = {}): Promise<readonly Finding[]> {
  const { code, out, error } = await user.types(['doctor', '--data-dir', 'data', '--json'], { env });
  const answer = JSON.parse(out) as { readonly isWell: boolean; readonly findings: readonly Finding[] };
  expect({ error, code }).toEqual({ error: '', code: answer.isWell ? 0 : 1 });
  return answer.findings.filter(({ level }) => level !== 'ok');
}

const like = (pattern: RegExp) => expect.stringMatching(pattern) as string;

test('a healthy installation has no problems, and gets hints', async () => {
  const { code, out } = await user.types(['doctor', '--data-dir', 'data']);
  expect(out).toMatch(/^(?:ok {7}|warning {2})Node\.js: 2\d\./);
  expect(out).toMatch(/\nok {7}secp256k1: signs with (?:secp256k1 \(native\)\n|@noble)/);
  expect(out).toMatch(
    /\nok {7}data folder: \S+, for its owner only\nwarning {2}key-encryption key: \S+ is in the data folder[^\n]+\n {9}→ [^\n]+KEK_FILE\n/,
  );
  expect(out).toMatch(/\nwarning {2}coordinator: \S+ does not respond\n {9}→ start it with countersign start\n/);
  expect(out).toMatch(/\nwarning {2}mail: is not sent, but written to outbox\.jsonl\n {9}→ set SMTP_URL/);
  expect(out).toMatch(/\nwarning {2}root key: the private key of the root user is in \S+root\.json\n {9}→ hand over/);
  expect(out).toMatch(/\nwarning {2}rate limits: none is set\n {9}→ set RATE_LIMIT_PER_ADDRESS/);
  expect(code).toBe(0);
});

test('a key elsewhere, no root key in the folder, rate limits and a maintained Node.js need no hint', async () => {
  await cp(user.path('data', 'kek'), user.path('key'));
  await rm(user.path('data', 'kek'));
  const root = JSON.parse(await readFile(user.path('data', 'root.json'), 'utf8')) as Record<string, string>;
  delete root['apiPrivateKey'];
  await writeFile(user.path('data', 'root.json'), JSON.stringify(root));
  const hints = await findings({ KEK_FILE: user.path('key'), RATE_LIMIT_PER_ADDRESS: '20' });
  const about = hints.map((hint) => hint.about);
  for (const name of ['key-encryption key', 'root key', 'rate limits']) expect(about).not.toContain(name);
});

test.each([
  ['20.20.2', '2026-04-29', 'ok'],
  ['20.20.2', '2026-05-01', 'warning'],
  ['22.9.0', '2027-05-01', 'warning'],
  ['24.21.0', '2026-11-29', 'ok'],
  ['30.0.0', '2026-11-29', 'ok'],
  ['20.18.9', '2025-01-01', 'problem'],
])('Node.js %s on %s: %s', (version, day, level) => {
  expect(versionFinding(version, Date.parse(day))).toMatchObject({ about: 'Node.js', level });
});

function lastEventAt(at: number): void {
  const events = new Database(user.path('data', 'events.db'));
  const last = 'position = (SELECT max(position) FROM events)';
  events.exec(`UPDATE events SET metadata = json_set(metadata, '$.at', ${at}) WHERE ${last}`);
  events.close();
}

test('a clock that is a little behind what was recorded last is worth a warning', async () => {
  lastEventAt(Date.now() + 10 * 60 * 1000);
  expect(await findings()).toContainEqual({
    about: 'clock',
    level: 'warning',
    found: like(/^the last event is 10 minutes ahead of \S+Z$/),
    toDo: like(/NTP/),
  });
});

test.each<[string, () => Promise<Readonly<Record<string, string>> | void>, object]>([
  [
    'files that others may read',
    () => chmod(user.path('data', 'root.json'), 0o644),
    {
      about: 'data folder',
      found: like(/^others may read \S+root\.json$/),
      toDo: like(/^run chmod go-rwx \S+root\.json$/),
    },
  ],
  [
    'a key that others may read',
    () => chmod(user.path('data', 'kek'), 0o604),
    { about: 'key-encryption key', found: like(/^others may read \S+kek$/), toDo: like(/^run chmod 600/) },
  ],
  [
    'a key that is gone',
    () => rm(user.path('data', 'kek')),
    { about: 'key-encryption key', found: like(/is missing$/) },
  ],
  [
    'a key that is none',
    () => writeFile(user.path('data', 'kek'), 'none\n'),
    { about: 'key-encryption key', found: like(/must be 64 hex characters/) },
  ],
  [
    'a key of another store',
    () => writeFile(user.path('data', 'kek'), `${randomBytes(32).toString('hex')}\n`),
    { about: 'event store', found: like(/^is sealed under key-encryption key \w+, but \S+kek contains \w+$/) },
  ],
  ['a store that is gone', () => rm(user.path('data', 'events.db')), { about: 'event store', found: like(/ENOENT/) }],
  [
    'a store that is none',
    () => writeFile(user.path('data', 'events.db'), 'no database at all, but long enough to be read as one'),
    { about: 'event store', toDo: like(/restore it from a backup/) },
  ],
  [
    'a clock that is behind what was recorded last',
    async () => {
      lastEventAt(Date.now() + 3 * 24 * 60 * 60 * 1000);
      // As if it had been written long ago: the file says nothing about the clock.
      await utimes(user.path('data', 'events.db'), new Date(0), new Date(0));
    },
    { about: 'clock', found: like(/^the last event is 3 days ahead of \S+Z$/), toDo: like(/countersign clock mend/) },
  ],
  [
    'a proxy secret that nobody has made',
    async () => ({ PROXY_SECRET_FILE: user.path('secret') }),
    { about: 'proxy secret', found: like(/secret cannot be read$/), toDo: like(/start the API first/) },
  ],
  [
    'a proxy secret that is too short',
    async () => {
      await writeFile(user.path('secret'), 'short');
      return { PROXY_SECRET_FILE: user.path('secret') };
    },
    { about: 'proxy secret', found: like(/contains no secret$/) },
  ],
  [
    'a mail server that is not there',
    async () => ({ SMTP_URL: 'smtp://127.0.0.1:9' }),
    { about: 'mail', found: '127.0.0.1:9 cannot be reached (ECONNREFUSED)', toDo: like(/SMTP_URL/) },
  ],
  [
    'a setting that is misspelled',
    async () => ({ SMTP_ULR: 'smtp://127.0.0.1:9' }),
    { about: 'settings', found: like(/SMTP_ULR=…: is not a setting; did you mean SMTP_URL/) },
  ],
  [
    'root.json that is broken',
    () => writeFile(user.path('data', 'root.json'), '{', { mode: 0o600 }),
    { about: 'coordinator', found: like(/is not JSON$/) },
  ],
  [
    'a folder that is not there',
    () => rm(user.path('data'), { recursive: true }),
    { about: 'data folder', found: like(/ENOENT/), toDo: like(/set DATA_DIR/) },
  ],
])('%s is a problem, with what to do', async (_what, breakIt, finding) => {
  const env = await breakIt();
  expect(await findings(env ?? {})).toContainEqual(expect.objectContaining({ level: 'problem', ...finding }));
});

test('doctor reports an event store that accepts less in one append than requests may need', async () => {
  const double = await EventStoreDouble.start();
  double.maxAppendBytes = 1024 * 1024;
  try {
    expect(await findings({ EVENT_STORE: double.connectionString })).toContainEqual({
      about: 'event store',
      level: 'warning',
      found: like(/^the event store accepts 1048576 bytes in one append, .*EVENTSTORE_MAX_APPEND_SIZE/),
      toDo: 'raise the limit of the server',
    });
  } finally {
    await double.stop();
  }
});

test('doctor reports an interrupted rotation, without changing anything', async () => {
  await appendFile(user.path('data', 'kek'), `${randomBytes(32).toString('hex')}\n`);
  const before = await readFile(user.path('data', 'kek'), 'utf8');
  expect(await findings()).toContainEqual({
    about: 'key-encryption key',
    level: 'warning',
    found: like(/contains 2 keys: a rotation is unfinished$/),
    toDo: 'run countersign kek rotate again',
  });
  expect(await readFile(user.path('data', 'kek'), 'utf8')).toBe(before);
});

test('doctor reports a Node.js that is too old', async () => {
  await mkdir(user.path('empty'));
  expect(versionFinding('18.20.0')).toMatchObject({ level: 'problem', toDo: 'install Node.js 20.19 or newer' });
  expect([versionFinding('20.19.0', 0), versionFinding('24.1.0', 0)]).toMatchObject([{ level: 'ok' }, { level: 'ok' }]);
});
