import { constants } from 'node:crypto';
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { Client, type buildConnector } from 'undici';
import { GuardedFetchError } from './guarded-request.js';

/** Idle connections: in all, and of one user to one host. */
const mostIdle = 128;
const mostIdleOfOne = 8;
/** How long one is kept, in milliseconds: less than the five seconds after which many servers close it. */
const keptMs = 4_000;
/** Largest headers of a response, in bytes. */
export const maxHeaderBytes = 16_384;
/** Servers send two after a handshake. Each costs a derivation of keys, and none is used. */
const mostTickets = 3;
/**
 * Of TLS, what costs about the same whatever the peer chooses. No Diffie-Hellman over finite fields: the peer chooses the group, and one of
 * 10,000 bits takes a second. No second handshake on a connection.
 */
const boundedTls = {
  ciphers:
    'TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES',
  ecdhCurve: 'X25519:P-256:P-384',
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  ALPNProtocols: ['http/1.1'],
  // Set here so that no environment variable can turn it off.
  rejectUnauthorized: true,
} as const;

export const withoutBrackets = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, '$1');

/** Where a connection goes. */
export interface Target {
  readonly url: URL;
  /** The addresses of its host that were checked. */
  readonly addresses: readonly string[];
  /** PEM; the system's if absent. */
  readonly trustedCertificates: string | undefined;
}

/** A connection to a checked address of a host, for one request at a time. */
export class Connection {
  readonly client: Client;
  /** Requests that were sent on the open socket. */
  requests = 0;
  /** Bytes that the peer may still send, as they come from the network: with those of TLS, of headers, and of chunks. */
  private allowed = 0;
  private socket: Duplex | undefined;

  /** @param key what it may be used for once it is idle, if anything */
  constructor(
    private readonly target: Target,
    readonly key: string | undefined,
  ) {
    this.client = new Client(target.url.origin, {
      connect: (_options, done) => this.connect(done),
      maxHeaderSize: maxHeaderBytes,
      // One limit for the whole request replaces these.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: keptMs,
      keepAliveMaxTimeout: keptMs,
      keepAliveTimeoutThreshold: 1_000,
    });
  }

  /** Called before each request. */
  allow(bytes: number): void {
    this.allowed = bytes;
  }

  close(reason?: Error): void {
    this.socket?.destroy(reason);
    void this.client.destroy(reason ?? null);
  }

  private connect(done: buildConnector.Callback): void {
    const { url, addresses } = this.target;
    const isSecure = url.protocol === 'https:';
    const host = withoutBrackets(url.hostname);
    const port = Number(url.port || (isSecure ? 443 : 80));
    const raw = connectTcp({ host, port, lookup: onlyTo(addresses), autoSelectFamily: true, noDelay: true });
    const counted = new CountedSocket(raw, (bytes) => this.receive(bytes));
    const socket = isSecure ? this.secure(counted, host) : counted;
    this.socket = socket;
    this.requests = 0;
    raw.on('error', (error) => socket.destroy(error));
    socket.on('error', (error: Error) => done(error, null));
    // undici asks for a `Socket`, and uses what every `Duplex` has.
    (isSecure ? socket : raw).once(isSecure ? 'secureConnect' : 'connect', () => done(null, socket as Socket));
  }

  private secure(counted: Duplex, host: string): TLSSocket {
    const { trustedCertificates: ca } = this.target;
    const named = isIP(host) === 0 ? { servername: host } : {};
    const socket = connectTls({ ...boundedTls, ...named, socket: counted, host, ...(ca === undefined ? {} : { ca }) });
    let tickets = 0;
    return socket.on('session', () => {
      tickets += 1;
      if (tickets === mostTickets + 1) this.refuse(`more than ${mostTickets} TLS session tickets`);
    });
  }

  private receive(bytes: number): boolean {
    this.allowed -= bytes;
    if (this.allowed >= 0) return true;
    this.refuse('more bytes than its response may have');
    return false;
  }

  private refuse(what: string): void {
    this.socket?.destroy(new GuardedFetchError('size', `host \`${this.target.url.hostname}\` sent ${what}`));
  }
}

/**
 * A socket whose bytes are counted before TLS or the parser of HTTP reads them: neither tells of what it passes over. It is not a
 * `Socket`, from which TLS would read without JavaScript.
 */
class CountedSocket extends Duplex {
  constructor(
    private readonly raw: Socket,
    receive: (bytes: number) => boolean,
  ) {
    super();
    raw.on('data', (bytes) => {
      if (receive(bytes.length) && !this.push(bytes)) raw.pause();
    });
    raw.on('end', () => this.push(null));
    // After its end, what has been read may still be needed.
    raw.on('close', () => raw.readableEnded || this.destroy());
  }

  override _read(): void {
    this.raw.resume();
  }

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.raw.write(bytes, done);
  }

  override _writev(parts: readonly { readonly chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.raw.write(Buffer.concat(parts.map(({ chunk }) => chunk)), done);
  }

  override _final(done: () => void): void {
    this.raw.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.raw.destroy();
    done(error);
  }
}

/** A look-up that returns what was checked: asking the name server again could give another result. */
function onlyTo(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, options, done) => {
    if (options.all) done(null, all);
    else done(null, all[0]!.address, all[0]!.family);
  };
}

/** The connections of one client. */
export class Connections {
  private idle: readonly Connection[] = [];

  /** An idle connection for the key, or a new one. */
  take(target: Target, key: string | undefined): Connection {
    const connection = key === undefined ? undefined : this.idle.findLast((one) => one.key === key);
    if (!connection) return this.open(target, key);
    this.forget(connection);
    return connection;
  }

  open(target: Target, key: string | undefined): Connection {
    const connection = new Connection(target, key);
    connection.client.on('disconnect', () => this.forget(connection));
    return connection;
  }

  /** Keeps a connection whose response has ended, or closes it. */
  keep(connection: Connection): void {
    const { key } = connection;
    const same = this.idle.filter((one) => one.key === key);
    if (key === undefined || same.length === mostIdleOfOne || this.idle.length === mostIdle) connection.close();
    else this.idle = [...this.idle, connection];
  }

  private forget(connection: Connection): void {
    this.idle = this.idle.filter((one) => one !== connection);
  }
}
