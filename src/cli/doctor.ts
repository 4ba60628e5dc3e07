import { lstat, readdir, readFile, stat, statfs } from 'node:fs/promises';
import { connect } from 'node:net';
import { join, relative, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isNativeError } from 'node:util/types';
import { readConfig, type Config } from '../config/config.js';
import { environment } from '../config/environment.js';
import { toleranceMs } from '../decide/decision-time.js';
import { bootStream } from '../domain/boots.js';
import { longestLeadMs } from '../domain/organization/clock-mends.js';
import type { EventReader, RecordedEvent } from '../ledger/event-store.js';
import { eventsFile, openEventStore, openForReading, warnOfLimit } from '../ledger/stores/open-event-store.js';
import { readKekRecord } from '../vault/kek-record.js';
import { closeToOthers, openToOthers, placeOf, readKeys } from '../vault/kek-source.js';
import { LocalKeyEncryption } from '../vault/key-encryption.js';
import type { Outcome } from './command.js';
import { damagedFiles } from './damaged-files.js';
import { exitCodes } from './exit-codes.js';
import { printable } from './layout.js';
import type { StoreOptions } from './stores.js';
import type { Terminal } from './terminal.js';

/** The result of one check; without a problem there is nothing to do. */
interface Finding {
  readonly about: string;
  readonly level: 'ok' | 'warning' | 'problem';
  readonly found: string;
  readonly toDo?: string;
}

const mebibyte = 1024 * 1024;
const patienceMs = 5_000;
const [minute, hour, day] = [60_000, 3_600_000, 86_400_000] as const;

const ok = (about: string, found: string): Finding => ({ about, level: 'ok', found });
const warning = (about: string, found: string, toDo: string): Finding => ({ about, level: 'warning', found, toDo });
const problem = (about: string, found: string, toDo: string): Finding => ({ about, level: 'problem', found, toDo });

const reasonOf = (error: unknown): string => (isNativeError(error) ? error.message : String(error));

/** Checks an installation for what goes wrong in practice. Changes nothing. */
export async function examine(terminal: Terminal, options: StoreOptions): Promise<Outcome> {
  const findings: Finding[] = [versionFinding(process.versions.node), await signing()];
  try {
    const from = environment(terminal.env);
    const config = readConfig(options.dataDir ? { ...from, DATA_DIR: terminal.path(options.dataDir) } : from);
    const looks = [folder, key, rootKey, store, files, clock, server, limits, proxySecret, mail, disk];
    for (const look of looks) findings.push(...(await look(config)));
  } catch (error) {
    findings.push(problem('settings', reasonOf(error), 'correct it; docs/reference/settings.md lists all settings'));
  }
  const isWell = findings.every(({ level }) => level !== 'problem');
  return {
    text: findings.map((finding) => shown(terminal, finding)).join(''),
    json: { isWell, findings },
    exitCode: isWell ? exitCodes.done : exitCodes.failed,
  };
}

function shown(terminal: Terminal, { about, level, found, toDo }: Finding): string {
  const colour = ({ ok: 'green', warning: 'yellow', problem: 'red' } as const)[level];
  const line = `${terminal.styled(colour, level.padEnd(8))} ${about}: ${printable(found)}\n`;
  return toDo === undefined ? line : `${line}         → ${printable(toDo)}\n`;
}

/** The day after which a line of Node.js gets no security fixes (https://github.com/nodejs/Release). */
const endsOfLife: Readonly<Record<number, string>> = {
  20: '2026-04-30',
  21: '2024-06-01',
  22: '2027-04-30',
  23: '2025-06-01',
  24: '2028-04-30',
  25: '2026-06-01',
};

/** The version that package.json requires, of a line that is maintained. */
export function versionFinding(version: string, now = Date.now()): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    return problem('Node.js', `${version} is too old`, 'install Node.js 20.19 or newer');
  }
  const end = endsOfLife[major];
  if (end === undefined || now < Date.parse(end)) return ok('Node.js', version);
  return warning(
    'Node.js',
    `${version} has had no security fixes since ${end}`,
    'install a maintained line, such as 24',
  );
}

/** Which library signs on secp256k1, the only curve for which there is a choice. */
async function signing(): Promise<Finding> {
  const { chosenSecp256k1 } = await import('../keyring/secp256k1.js');
  const { library, passedOver } = chosenSecp256k1();
  return ok('secp256k1', `signs with ${library.name}${passedOver === undefined ? '' : `; ${passedOver}`}`);
}

async function folder({ dataDir, eventStore }: Config): Promise<Finding[]> {
  const about = 'data folder';
  if (eventStore === 'memory:') return [warning(about, 'EVENT_STORE=memory: keeps nothing', 'use it for tests only')];
  const names = await readdir(dataDir).catch((error: unknown) => reasonOf(error));
  if (typeof names === 'string') {
    return [
      problem(about, names, `set DATA_DIR or --data-dir to the folder of the coordinator, as a user who may read it`),
    ];
  }
  const open: string[] = [];
  for (const name of ['.', ...names]) {
    const entry = await lstat(join(dataDir, name)).catch(() => undefined);
    const isOurs = name === '.' || (entry?.isFile() ?? false);
    if (entry && isOurs && (entry.mode & (name === '.' ? 0o027 : 0o077)) !== 0) open.push(join(dataDir, name));
  }
  if (open.length === 0) return [ok(about, `${dataDir}, for its owner only`)];
  return [problem(about, `others may read ${open.join(', ')}`, `run chmod go-rwx ${open.join(' ')}`)];
}

async function key(config: Config): Promise<Finding[]> {
  const about = 'key-encryption key';
  if (config.eventStore === 'memory:') return [];
  const place = placeOf(config);
  try {
    const keys = await readKeys(config);
    if (!keys) return [problem(about, `${place} is missing`, 'put the key back from its copy, or set KEK or KEK_FILE')];
    return [
      ...((await openToOthers(config)) === undefined
        ? []
        : [problem(about, `others may read ${place}`, closeToOthers(place))]),
      keys.length > 1
        ? warning(
            about,
            `${place} contains ${keys.length} keys: a rotation is unfinished`,
            'run countersign kek rotate again',
          )
        : isBesideData(config)
          ? warning(
              about,
              `${place} is in the data folder: whoever copies the folder has every wallet`,
              'move it to another disk or a secret of your platform, and set KEK_FILE',
            )
          : ok(about, `one key in ${place}`),
    ];
  } catch (error) {
    return [problem(about, reasonOf(error), 'put the right key there')];
  }
}

function isBesideData({ kek, kekFile, dataDir }: Config): boolean {
  return kek === undefined && !relative(resolve(dataDir), resolve(kekFile)).startsWith('..');
}

/** Whether the root user's private key is stored with the data. */
async function rootKey({ dataDir }: Config): Promise<Finding[]> {
  const about = 'root key';
  const file = join(dataDir, 'root.json');
  const text = await readFile(file, 'utf8').catch(() => '');
  if (!/"apiPrivateKey"\s*:/.test(text)) return text === '' ? [] : [ok(about, `its private part is not in ${file}`)];
  return [
    warning(
      about,
      `the private key of the root user is in ${file}`,
      'hand over to a quorum, delete the root user, and remove the file (docs/how-to/go-to-production.md)',
    ),
  ];
}

async function limits({ rateLimits, app }: Config): Promise<Finding[]> {
  const about = 'rate limits';
  if (app === 'proxy') return [];
  if (Object.values(rateLimits).some((limit) => limit !== undefined)) return [ok(about, 'are set')];
  return [warning(about, 'none is set', 'set RATE_LIMIT_PER_ADDRESS and RATE_LIMIT_PER_CREDENTIAL (docs/limits.md)')];
}

async function store(config: Config): Promise<Finding[]> {
  const about = 'event store';
  const { eventStore, dataDir } = config;
  if (eventStore === 'memory:') return [];
  const isFile = eventStore === 'sqlite:';
  const toDo = isFile
    ? `set DATA_DIR to the folder with events.db, or restore it from a backup`
    : 'make sure that the server is running, and that EVENT_STORE has the right address, user and password';
  try {
    if (isFile) await stat(eventsFile(dataDir));
    const opened = isFile ? await openForReading(eventStore, dataDir) : await openEventStore(eventStore, dataDir);
    try {
      const record = await readKekRecord(opened);
      const keys = await readKeys(config).catch(() => undefined);
      const ids = keys ? new LocalKeyEncryption(keys, { bytes: () => new Uint8Array() }).knownIds : undefined;
      const findings: Finding[] = [];
      if (record && ids && !ids.includes(record.kekId)) {
        const found = `is sealed under key-encryption key ${record.kekId}, but ${placeOf(config)} contains ${ids.join(', ')}`;
        findings.push(problem(about, found, 'put the right key there: the coordinator cannot start without it'));
      }
      if (!isFile) {
        await warnOfLimit(opened, (found) => findings.push(warning(about, found, 'raise the limit of the server')));
      }
      return findings.length > 0 ? findings : [ok(about, isFile ? eventsFile(dataDir) : 'answers')];
    } finally {
      await opened.close();
    }
  } catch (error) {
    return [problem(about, reasonOf(error), toDo)];
  }
}

/** Structures of SQLite, which nothing else looks at. */
function files({ dataDir, eventStore }: Config): Promise<Finding[]> {
  const damaged = eventStore === 'memory:' ? [] : damagedFiles(eventStore, dataDir);
  return Promise.resolve(
    damaged.map(({ file, problems, toDo }) =>
      problem('files', `${file} is damaged: ${problems.slice(0, 3).join('; ')}`, toDo),
    ),
  );
}

/** What was recorded last was recorded by a clock like this one. */
async function clock({ dataDir, eventStore }: Config): Promise<Finding[]> {
  const about = 'clock';
  // Why it cannot be read is a finding about the store.
  const recordedAt =
    eventStore === 'memory:' ? undefined : await lastRecordedAt(eventStore, dataDir).catch(() => undefined);
  const now = Date.now();
  const ahead = (recordedAt ?? 0) - now;
  if (ahead <= toleranceMs) return [ok(about, new Date(now).toISOString())];
  const found = `the last event is ${spanText(ahead)} ahead of ${new Date(now).toISOString()}`;
  if (ahead <= longestLeadMs) {
    return [warning(about, found, 'set the clock by NTP: until it has caught up, time continues from the last event')];
  }
  const toDo =
    'set the clock by NTP if it is wrong; if it was ahead when that was recorded, run countersign clock mend for each organization that ' +
    'the log of the coordinator names';
  return [problem(about, found, toDo)];
}

/** Recorded time of the last event, milliseconds since the epoch; of EventStoreDB, that of the last boot. */
async function lastRecordedAt(eventStore: string, dataDir: string): Promise<number | undefined> {
  if (eventStore !== 'sqlite:') {
    const opened = await openEventStore(eventStore, dataDir);
    try {
      return timeOf((await opened.last(bootStream, 1))[0]);
    } finally {
      await opened.close();
    }
  }
  const opened = await openForReading(eventStore, dataDir);
  try {
    const head = await opened.head();
    if (head === undefined) return undefined;
    return timeOf(await eventAfter(opened, head - 1n));
  } finally {
    await opened.close();
  }
}

async function eventAfter(store: EventReader, after: bigint): Promise<RecordedEvent | undefined> {
  let end = (): Promise<void> => Promise.resolve();
  try {
    return await new Promise((resolve, reject) => {
      const subscription = store.subscribe({ after, onEvents: ([first]) => resolve(first), onError: reject });
      end = () => subscription.close();
    });
  } finally {
    await end();
  }
}

function timeOf(event: RecordedEvent | undefined): number | undefined {
  return (event?.metadata as { readonly at?: number } | undefined)?.at;
}

function spanText(ms: number): string {
  const [size, unit] = ms >= 2 * day ? [day, 'days'] : ms >= 2 * hour ? [hour, 'hours'] : [minute, 'minutes'];
  return `${Math.ceil(ms / size)} ${unit}`;
}

/** Asks again while it catches up: something recorded a moment ago is not a problem. */
async function readiness(url: string): Promise<{ readonly response: Response; readonly text: string }> {
  const started = performance.now();
  for (;;) {
    const response = await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(patienceMs) });
    const text = await response.text();
    if (response.ok || !text.includes('"catching-up"') || performance.now() - started > patienceMs)
      return { response, text };
    await pause(200);
  }
}

async function server({ dataDir, apiUrl: ofProxy, app }: Config): Promise<Finding[]> {
  const about = 'coordinator';
  const text = await readFile(join(dataDir, 'root.json'), 'utf8').catch(() => '{}');
  let url = ofProxy;
  try {
    url ??= (JSON.parse(text) as { readonly apiUrl?: string }).apiUrl;
  } catch {
    return [problem(about, `${join(dataDir, 'root.json')} is not JSON`, 'repair it, or move it away')];
  }
  if (url === undefined) return [];
  try {
    const { response, text: said } = await readiness(url);
    const skew = Math.abs(Date.parse(response.headers.get('date') ?? '') - Date.now());
    return [
      response.ok
        ? said.includes('"degraded"')
          ? warning(about, `${url} is ready, and degraded: ${said.slice(0, 200)}`, 'see its log')
          : ok(about, `${url} is ready`)
        : problem(about, `${url} is not ready: ${said.slice(0, 200)}`, 'see its log'),
      ...(skew > 120_000 ? [problem('clock', `the clock of ${url} differs`, 'set both clocks by NTP')] : []),
    ];
  } catch {
    const toDo = app === 'proxy' ? 'start it, or correct API_URL' : 'start it with countersign start';
    const level = app === 'proxy' ? problem : warning;
    return [level(about, `${url} does not respond`, toDo)];
  }
}

async function proxySecret({ proxySecret: input, proxySecretFile: file }: Config): Promise<Finding[]> {
  const about = 'proxy secret';
  if (input !== undefined) return [ok(about, 'in PROXY_SECRET')];
  if (file === undefined) return [];
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) {
    return [
      problem(
        about,
        `${file} cannot be read`,
        'start the API first, which creates it, and share the file with the auth proxy',
      ),
    ];
  }
  if (!/^[\x21-\x7e]{32,512}$/.test(text.trim())) {
    return [
      problem(about, `${file} contains no secret`, 'put 32 to 512 printable characters there, the same for both'),
    ];
  }
  return [ok(about, `in ${file}`)];
}

async function mail({ smtp, restored }: Config): Promise<Finding[]> {
  const about = 'mail';
  if (restored) return [ok(about, 'RESTORED is true: nothing is sent')];
  if (smtp === undefined) {
    return [warning(about, 'is not sent, but written to outbox.jsonl', 'set SMTP_URL to send it')];
  }
  const { host, port } = smtp;
  const failure = await new Promise<string | undefined>((resolve) => {
    const socket = connect({ host, port, timeout: patienceMs });
    const end = (reason: string | undefined) => {
      socket.destroy();
      resolve(reason);
    };
    socket.once('connect', () => end(undefined));
    socket.once('timeout', () => end('no answer'));
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  });
  if (failure === undefined) return [ok(about, `${host}:${port} responds`)];
  return [
    problem(about, `${host}:${port} cannot be reached (${failure})`, 'correct SMTP_URL, or let this machine reach it'),
  ];
}

async function disk({ dataDir, minFreeDisk }: Config): Promise<Finding[]> {
  const about = 'disk';
  const space = await statfs(dataDir).catch(() => undefined);
  if (!space) return [];
  const free = (space.bavail * space.bsize) / mebibyte;
  const words = `${Math.floor(free).toLocaleString('en')} MiB are free`;
  if (free >= (4 * minFreeDisk) / mebibyte) return [ok(about, words)];
  const isFull = free < minFreeDisk / mebibyte;
  return [(isFull ? problem : warning)(about, words, 'make room: nothing is recorded when the disk is full')];
}
