import { lstat, readdir, readFile, stat, statfs } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isNativeError } from 'node:util/types';
import { readConfig, type Config } from '../config/config.js';
import { environment } from '../config/environment.js';
import { eventsFile, openEventStore, openForReading, warnOfLimit } from '../ledger/stores/open-event-store.js';
import { readKekRecord } from '../vault/kek-record.js';
import { closeToOthers, openToOthers, placeOf, readKeys } from '../vault/kek-source.js';
import { LocalKeyEncryption } from '../vault/key-encryption.js';
import type { Outcome } from './command.js';
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

const ok = (about: string, found: string): Finding => ({ about, level: 'ok', found });
const warning = (about: string, found: string, toDo: string): Finding => ({ about, level: 'warning', found, toDo });
const problem = (about: string, found: string, toDo: string): Finding => ({ about, level: 'problem', found, toDo });

const reasonOf = (error: unknown): string => (isNativeError(error) ? error.message : String(error));

/** Checks an installation for what goes wrong in practice. Changes nothing. */
export async function examine(terminal: Terminal, options: StoreOptions): Promise<Outcome> {
  const findings: Finding[] = [versionFinding(process.versions.node), ...(await signing())];
  try {
    const from = environment(terminal.env);
    const config = readConfig(options.dataDir ? { ...from, DATA_DIR: terminal.path(options.dataDir) } : from);
    const looks = [folder, key, store, clock, server, proxySecret, mail, disk];
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

/** The version that package.json requires. */
export function versionFinding(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return ok('Node.js', version);
  return problem('Node.js', `${version} is too old`, 'install Node.js 20.19 or newer');
}

/** Which libraries sign, where there is a choice. */
async function signing(): Promise<Finding[]> {
  const { curveLibraries } = await import('../keyring/make-curves-ready.js');
  return curveLibraries().map(({ curve, library, passedOver }) =>
    ok(curve, [`signs with ${library}`, ...passedOver].join('; ')),
  );
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
        : ok(about, `one key in ${place}`),
    ];
  } catch (error) {
    return [problem(about, reasonOf(error), 'put the right key there')];
  }
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

/** The store was written with this machine's clock, or one like it. */
async function clock({ dataDir }: Config): Promise<Finding[]> {
  const written = await stat(eventsFile(dataDir)).catch(() => undefined);
  const ahead = (written?.mtimeMs ?? 0) - Date.now();
  if (ahead < 60_000) return [ok('clock', new Date().toISOString())];
  const found = `the store was written ${Math.round(ahead / 60_000)} minutes from now`;
  return [problem('clock', found, 'set the clock by NTP: requests are valid for one hour only')];
}

/** Asks again while it catches up: something recorded a moment ago is not a problem. */
async function readiness(url: string): Promise<{ readonly response: Response; readonly text: string }> {
  const begun = performance.now();
  for (;;) {
    const response = await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(patienceMs) });
    const text = await response.text();
    if (response.ok || !text.includes('"catching-up"') || performance.now() - begun > patienceMs)
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
        ? ok(about, `${url} is ready`)
        : problem(about, `${url} is not ready: ${said.slice(0, 200)}`, 'see its log'),
      ...(skew > 120_000 ? [problem('clock', `the clock of ${url} differs`, 'set both clocks by NTP')] : []),
    ];
  } catch {
    const toDo = app === 'proxy' ? 'start it, or correct API_URL' : 'start it with countersign start';
    const level = app === 'proxy' ? problem : warning;
    return [level(about, `${url} does not respond`, toDo)];
  }
}

async function proxySecret({ proxySecret: given, proxySecretFile: file }: Config): Promise<Finding[]> {
  const about = 'proxy secret';
  if (given !== undefined) return [ok(about, 'in PROXY_SECRET')];
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

async function disk({ dataDir }: Config): Promise<Finding[]> {
  const about = 'disk';
  const space = await statfs(dataDir).catch(() => undefined);
  if (!space) return [];
  const free = (space.bavail * space.bsize) / mebibyte;
  const words = `${Math.floor(free).toLocaleString('en')} MiB are free`;
  if (free >= 1_024) return [ok(about, words)];
  return [(free < 128 ? problem : warning)(about, words, 'make room: nothing is recorded when the disk is full')];
}
