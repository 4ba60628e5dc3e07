import { BadSetting, readConfig, settings } from '../src/config.js';
import { generateApiKeyPair } from '../src/testing/index.js';

const { publicKey, privateKey } = generateApiKeyPair((count) => new Uint8Array(count).fill(7));

function badness(name: string, value: string): string {
  try {
    readConfig({ [name]: value });
  } catch (error) {
    if (error instanceof BadSetting) return error.message;
    throw error;
  }
  throw new Error(`${name}=${value} was taken`);
}

test('without a word the server listens on this machine and keeps events in ./data', () => {
  expect(readConfig({})).toEqual({
    host: '127.0.0.1',
    port: 8080,
    dataDir: './data',
    eventStore: 'sqlite:',
    publicUrl: undefined,
    rootApiPublicKey: undefined,
    logLevel: 'info',
    rateLimits: { perAddress: undefined, perOrganization: undefined, perCredential: undefined },
    trustProxy: false,
    allowPrivateNetwork: false,
    oidcIssuers: [],
  });
});

test('every setting is read', () => {
  const from = {
    HOST: '::',
    PORT: '0',
    DATA_DIR: '/var/lib/countersign',
    EVENT_STORE: 'memory:',
    PUBLIC_URL: 'https://api.example.com:8443',
    ROOT_API_PUBLIC_KEY: publicKey.toUpperCase(),
    LOG_LEVEL: 'silent',
    RATE_LIMIT_PER_ADDRESS: '1',
    RATE_LIMIT_PER_ORGANIZATION: '20',
    RATE_LIMIT_PER_CREDENTIAL: '9999999',
    TRUST_PROXY: 'true',
    ALLOW_PRIVATE_NETWORK: 'true',
    OIDC_ISSUERS: 'https://accounts.google.com, https://tenant.example.com/ http://127.0.0.1:9000/realm',
  };
  expect(Object.keys(from).sort()).toEqual(settings.map(([name]) => name).sort());
  expect(readConfig(from)).toEqual({
    host: '::',
    port: 0,
    dataDir: '/var/lib/countersign',
    eventStore: 'memory:',
    publicUrl: 'https://api.example.com:8443',
    rootApiPublicKey: publicKey,
    logLevel: 'silent',
    rateLimits: { perAddress: 1, perOrganization: 20, perCredential: 9_999_999 },
    trustProxy: true,
    allowPrivateNetwork: true,
    oidcIssuers: ['https://accounts.google.com', 'https://tenant.example.com/', 'http://127.0.0.1:9000/realm'],
  });
});

test('empty and white values are no values, and what is not ours is not looked at', () => {
  const empty = Object.fromEntries(settings.map(([name]) => [name, ' ']));
  expect(readConfig({ ...empty, NODE_ENV: 'production', PATH: '/bin' })).toEqual(readConfig({}));
  expect(readConfig({ PORT: ' 81 ' }).port).toBe(81);
});

test('nothing of it can be changed', () => {
  const config = readConfig({});
  expect(Object.isFrozen(config)).toBe(true);
  expect(Object.isFrozen(config.rateLimits)).toBe(true);
  expect(Object.isFrozen(config.oidcIssuers)).toBe(true);
});

test.each([
  ['PORT', '-1'],
  ['PORT', '65536'],
  ['PORT', '8080a'],
  ['PORT', '1e3'],
  ['PORT', '0x50'],
  ['EVENT_STORE', 'sqlite'],
  ['EVENT_STORE', 'postgres:'],
  ['PUBLIC_URL', 'api.example.com'],
  ['PUBLIC_URL', 'ftp://api.example.com'],
  ['PUBLIC_URL', 'https://api.example.com/path'],
  ['PUBLIC_URL', 'https://api.example.com?a=b'],
  ['PUBLIC_URL', 'https://api example.com'],
  ['PUBLIC_URL', 'https://'],
  ['LOG_LEVEL', 'INFO'],
  ['LOG_LEVEL', 'constructor'],
  ['RATE_LIMIT_PER_ADDRESS', '0'],
  ['RATE_LIMIT_PER_ORGANIZATION', '1.5'],
  ['RATE_LIMIT_PER_CREDENTIAL', '99999999'],
  ['TRUST_PROXY', 'yes'],
  ['ALLOW_PRIVATE_NETWORK', '1'],
  ['OIDC_ISSUERS', 'accounts.google.com'],
  ['OIDC_ISSUERS', 'https://'],
  ['OIDC_ISSUERS', 'https://accounts.google.com?a=b'],
  ['OIDC_ISSUERS', 'https://accounts.google.com#a'],
  ['OIDC_ISSUERS', 'ftp://accounts.google.com'],
  ['OIDC_ISSUERS', 'http://127.0.0.1:9000'],
])('%s=%s is told with its rule', (name, value) => {
  expect(badness(name, value)).toMatch(new RegExp(`^${name}=${value.replaceAll('?', '\\?')}: must be `));
});

test.each([
  ['a private key', privateKey],
  ['half a key', publicKey.slice(0, 40)],
  ['a point that is not on the curve', `02${'f'.repeat(64)}`],
  ['an uncompressed key', `04${publicKey.slice(2)}${'0'.repeat(64)}`],
  ['no hex', 'z'.repeat(66)],
])('%s as the root key is refused, and not shown', (_name, value) => {
  const message = badness('ROOT_API_PUBLIC_KEY', value);
  expect(message).toMatch(/^ROOT_API_PUBLIC_KEY=…: must be a compressed P-256 key, 66 hex characters; it has \d+$/);
  expect(message).not.toContain(value.slice(0, 8));
});

test('one bad issuer among good ones is the one that is named', () => {
  const message = badness('OIDC_ISSUERS', 'https://accounts.google.com, *.example.com');
  expect(message).toMatch(/^OIDC_ISSUERS=\*\.example\.com: must be issuers /);
});

test('an issuer with a password is refused, and the password not shown', () => {
  const message = badness('OIDC_ISSUERS', 'https://admin:changeit@issuer.example');
  expect(message).toMatch(/^OIDC_ISSUERS=https:\/\/…@issuer\.example: must be issuers /);
});

test('a connection string is taken as it is, and its password never shown', () => {
  const connection = 'esdb://admin:changeit@one:2113,two:2113?tls=false';
  expect(readConfig({ EVENT_STORE: connection }).eventStore).toBe(connection);
  const message = badness('EVENT_STORE', 'mongodb://admin:changeit@one');
  expect(message).toMatch(/^EVENT_STORE=mongodb:\/\/…: must be /);
  expect(message).not.toContain('changeit');
});
