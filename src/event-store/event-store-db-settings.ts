/** What the adapter itself needs to know of a connection string; the client reads the rest. */
export interface ConnectionSettings {
  readonly credentials: { readonly username: string; readonly password: string } | undefined;
  readonly tls: boolean;
}

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
 * Reads `esdb://[user:password@]host[:port][,…][?options]` or `esdb+discover://…` and refuses what the client would
 * print, whole and with the password, to the console: options it does not know.
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
    throw new TypeError(`\`nodePreference=${preference}\` may read what is outdated: use \`leader\`, or leave it out`);
  }
  return { credentials: readCredentials(credentials), tls: options.get('tls') !== 'false' };
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
    // The error of the decoder has the text in it.
  }
  throw new TypeError('the credentials in the connection string are not `user:password`: percent-encode both');
}
