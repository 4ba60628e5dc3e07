import { readFileSync } from 'node:fs';

export interface Host {
  readonly host: string;
  readonly port: number;
}

/** What the adapter itself needs to know about a connection string; the client reads the rest. */
export interface ConnectionSettings {
  readonly credentials: { readonly username: string; readonly password: string } | undefined;
  readonly tls: boolean;
  readonly hosts: readonly Host[];
  /** The string without its options, which contains the password. */
  readonly base: string;
  /** By the client's spelling. */
  readonly options: ReadonlyMap<string, string>;
  /** Files named in the string. */
  readonly files: { readonly [name in (typeof FILES)[number]]?: string };
}

const FILES = ['tlsCAFile', 'userCertFile', 'userKeyFile'] as const;
const DEFAULT_PORT = 2113;

/** Options of the client that the adapter leaves to the operator, in the client's spelling. */
const OPTIONS = [
  'connectionName',
  'defaultDeadline',
  'discoveryInterval',
  'gossipTimeout',
  'keepAliveInterval',
  'keepAliveTimeout',
  'maxDiscoverAttempts',
  'nodePreference',
  'tls',
  'tlsCAFile',
  'tlsVerifyCert',
  'userCertFile',
  'userKeyFile',
];

/**
 * Parses `esdb://[user:password@]host[:port][,…][?options]` or `esdb+discover://…`, and refuses unknown options, for
 * which the client would print the whole string to the console, including the password.
 * @throws {TypeError} saying what is wrong, without any part of the string that may be secret
 */
export function readConnectionString(text: string): ConnectionSettings {
  const [, credentials, hosts = '', query = ''] =
    /^esdb(?:\+discover)?:\/\/(?:([^@/?]*)@)?([^@/?]*)\/?(?:\?(.*))?$/.exec(text.trim()) ?? [];
  if (hosts === '') {
    throw new TypeError(
      'the connection string is not of the form `esdb://user:password@host:2113?tls=true`: percent-encode special characters of the password',
    );
  }
  const options = new Map(query === '' ? [] : query.split('&').map(readOption));
  if (options.get('tlsVerifyCert') === 'false') {
    throw new TypeError('`tlsVerifyCert=false` is not supported: name the certificate authority with `tlsCAFile`');
  }
  const preference = options.get('nodePreference') ?? 'leader';
  if (preference.toLowerCase() !== 'leader') {
    throw new TypeError(`\`nodePreference=${preference}\` may return outdated events: use \`leader\`, or leave it out`);
  }
  const files: { [name in (typeof FILES)[number]]?: string } = {};
  for (const name of FILES) {
    const file = options.get(name);
    if (file !== undefined) files[name] = file;
  }
  return {
    credentials: readCredentials(credentials),
    tls: options.get('tls') !== 'false',
    hosts: hosts.split(',').map(readHost),
    base: text.trim().replace(/\?.*$/, ''),
    options,
    files,
  };
}

/** How long a node may take to say who the leader is, in seconds: the client's default is five for each that hangs. */
const GOSSIP_TIMEOUT_S = '1';
const KEEP_ALIVE_TIMEOUT_MS = 10_000;

/**
 * What the client is given to connect. gRPC shares one TCP connection between all clients with the same options: a different
 * timeout of keep-alive pings for each generation is how a new client gets a connection of its own.
 */
export function clientString({ base, options }: ConnectionSettings, generation: number): string {
  const timeout = Number(options.get('keepAliveTimeout') ?? KEEP_ALIVE_TIMEOUT_MS);
  const all = new Map([
    ['gossipTimeout', GOSSIP_TIMEOUT_S],
    ...options,
    ...(timeout >= 0 ? [['keepAliveTimeout', String(timeout + (generation % 1_000))] as const] : []),
  ]);
  return `${base}?${[...all].map(([name, value]) => `${name}=${value}`).join('&')}`;
}

/** @throws {TypeError} naming the option whose file cannot be read, which the client's own error does not */
export function checkFiles({ files }: ConnectionSettings): void {
  for (const name of FILES) {
    const file = files[name];
    if (file === undefined) continue;
    try {
      readFileSync(file);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const problem = code === 'EISDIR' ? 'is a directory' : `cannot be read (${code})`;
      throw new TypeError(`the certificate file that \`${name}\` names, \`${file}\`, ${problem}: name a PEM file`, {
        cause: error,
      });
    }
  }
}

function readHost(text: string): Host {
  const [, host = '', port] = /^\[?([^\]]*?)\]?(?::([^:\]]*))?$/.exec(text.trim()) ?? [];
  if (port !== undefined && !/^\d{1,5}$/.test(port)) {
    throw new TypeError(`the connection string cannot be used: check hosts and ports, of which one is \`${port}\``);
  }
  return { host, port: port === undefined ? DEFAULT_PORT : Number(port) };
}

function readOption(option: string): [string, string] {
  const [key = '', value = ''] = option.split('=', 2);
  const flat = key.trim().toLowerCase().replace(/[_-]/g, '');
  const known = OPTIONS.find((name) => name.toLowerCase() === flat);
  if (known === undefined) {
    throw new TypeError(`the connection string has the unknown option \`${key}\`: use one of ${OPTIONS.join(', ')}`);
  }
  return [known, value.trim()];
}

function readCredentials(text: string | undefined): ConnectionSettings['credentials'] {
  if (text === undefined) return undefined;
  const [username = '', password = '', ...rest] = text.split(':');
  try {
    if (username !== '' && password !== '' && rest.length === 0) {
      return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
    }
  } catch {
    // The decoder's error contains the text.
  }
  throw new TypeError('the credentials in the connection string are not `user:password`: percent-encode both');
}

/**
 * Wire path of appends: `classic` is one call each; `batch` is one stream for all, with two to three times the
 * throughput.
 */
export type AppendMode = 'batch' | 'classic';

/**
 * The path that is wanted, or else the one that the settings allow, and what classic appends are given as credentials.
 * @throws {TypeError} if the settings do not allow the one that is wanted
 */
export function appendPath(
  settings: ConnectionSettings,
  wanted: AppendMode | undefined,
): { readonly mode: AppendMode; readonly classic: ConnectionSettings['credentials'] } {
  const { credentials, tls } = settings;
  // Without TLS the client sends no credentials, but it still behaves differently if it was given some.
  const classic = credentials ?? (tls ? undefined : { username: 'nobody', password: 'nothing' });
  const mode = wanted ?? (classic === undefined ? 'batch' : 'classic');
  if (mode === 'classic' && classic === undefined) {
    throw new TypeError('append mode `classic` over TLS needs `user:password` in the connection string');
  }
  return { mode, classic };
}
