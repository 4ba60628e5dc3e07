import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import type { ConnectionSettings, Host } from './settings.js';

/** The result of checking one host; one that does not respond may still come up. */
type Look = { readonly kind: 'fine' | 'away' } | { readonly kind: 'fault'; readonly reason: string };

/**
 * Checks the protocol of a connection string's hosts, by a TLS handshake with each. Resolves to what is wrong with the
 * string or the certificates, and will stay wrong until someone changes it; undefined if nothing is, or nobody
 * responds. The client reports such faults like a missing server, and with several hosts not at all.
 */
export async function findFault(settings: ConnectionSettings, patienceMs: number): Promise<string | undefined> {
  const looks = await Promise.all(settings.hosts.map((host) => look(host, settings, patienceMs)));
  if (looks.some(({ kind }) => kind === 'fine')) return undefined;
  for (const one of looks) if (one.kind === 'fault') return one.reason;
  return undefined;
}

function look({ host, port }: Host, { tls, files }: ConnectionSettings, patienceMs: number): Promise<Look> {
  const ca = tls && files.tlsCAFile !== undefined ? { ca: readFileSync(files.tlsCAFile) } : {};
  const at = `${host}:${port}`;
  return new Promise((resolve) => {
    // Nothing is sent through it: it only shows whether the client, which does verify, would continue.
    const socket = connect({
      host,
      port,
      ...ca,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ALPNProtocols: ['h2'],
      rejectUnauthorized: false,
    });
    const end = (seen: Look): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(seen);
    };
    const timer = setTimeout(() => end({ kind: 'away' }), patienceMs);
    socket.once('secureConnect', () => {
      if (!tls) {
        end({
          kind: 'fault',
          reason: `${at} uses TLS: remove \`tls=false\` from EVENT_STORE, and name its certificate authority with \`tlsCAFile\``,
        });
      } else if (socket.authorized) {
        end({ kind: 'fine' });
      } else {
        end({ kind: 'fault', reason: untrusted(at, String(socket.authorizationError), files.tlsCAFile) });
      }
    });
    socket.once('error', ({ code = '' }: NodeJS.ErrnoException) => {
      const isNoTls = code === 'EPROTO' || code.startsWith('ERR_SSL_');
      if (!isNoTls) end({ kind: 'away' });
      else if (!tls) end({ kind: 'fine' });
      else
        end({
          kind: 'fault',
          reason: `${at} does not use TLS: set \`tls=false\` in EVENT_STORE, or give the server a certificate`,
        });
    });
  });
}

function untrusted(at: string, problem: string, caFile: string | undefined): string {
  const remedy = /EXPIRED|NOT_YET_VALID/.test(problem)
    ? 'give the server a valid one, and check the clocks'
    : problem.includes('ALTNAME')
      ? 'EVENT_STORE must name the host exactly as the certificate does'
      : caFile === undefined
        ? 'name the file of its certificate authority with `tlsCAFile`'
        : `\`tlsCAFile\` names \`${caFile}\`, which must contain the authority that signed it`;
  return `the certificate of ${at} is not trusted (${problem}): ${remedy}`;
}
