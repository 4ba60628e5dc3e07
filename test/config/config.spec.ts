import { BadSetting } from '../../src/config/bad-setting.js';
import { readConfig } from '../../src/config/config.js';
import { refuseMisspelled } from '../../src/config/environment.js';
import { settings } from '../../src/config/settings.js';
import { generateApiKeyPair } from '../../src/testing/index.js';

const { publicKey, privateKey } = generateApiKeyPair((count) => new Uint8Array(count).fill(7));

const gitea = {
  tokenUrl: 'http://127.0.0.1:3000/login/oauth/access_token',
  userUrl: 'http://127.0.0.1:3000/api/v1/user',
  userId: 'account.id',
  scopes: ['read:user'],
  clientAuthentication: 'post',
};

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
    headersTimeoutMs: 15_000,
    requestTimeoutMs: 30_000,
    dataDir: './data',
    minFreeDisk: 256 * 1024 * 1024,
    shutdownDelayMs: 0,
    buildCommit: undefined,
    eventStore: 'sqlite:',
    kek: undefined,
    kekFile: 'data/kek',
    app: 'all',
    apiUrl: undefined,
    proxySecret: undefined,
    proxySecretFile: undefined,
    authProxyUrl: undefined,
    limits: { organizations: {}, subOrganizations: {} },
    proxyLimits: {
      perAddress: 600,
      perConfiguration: 6000,
      codesPerAddress: 30,
      perContact: 10,
      signUpsPerAddress: 20,
    },
    proxyCaptcha: undefined,
    publicUrl: undefined,
    rootApiPublicKey: undefined,
    activityTimestamps: 'text',
    logLevel: 'info',
    rateLimits: { perAddress: undefined, perOrganization: undefined, perCredential: undefined },
    rateLimitKeys: 65_536,
    trustProxy: false,
    allowPrivateNetwork: false,
    voteNotices: false,
    passkeyOrigins: [],
    passkeyCounters: 'report',
    restored: false,
    oidcIssuers: [],
    socialLinkingIssuers: ['https://accounts.google.com'],
    oauth2Providers: {},
    sandboxUntil: undefined,
    smtp: undefined,
    mailFrom: undefined,
    sms: undefined,
  });
});

test('every setting is read', () => {
  const from = {
    HOST: '::',
    PORT: '0',
    DATA_DIR: '/var/lib/countersign',
    EVENT_STORE: 'memory:',
    KEK: `${'0a'.repeat(32)},${'0b'.repeat(32)}`,
    KEK_FILE: '/run/secrets/kek',
    PUBLIC_URL: 'https://api.example.com:8443',
    INVITATION_URL: 'https://app.example.com/join',
    APP: 'proxy',
    API_URL: 'http://coordinator:8080',
    PROXY_SECRET: 'p'.repeat(32),
    PROXY_SECRET_FILE: '/run/secrets/proxy',
    AUTH_PROXY_URL: 'https://auth.example.com',
    PROXY_RATE_LIMIT_PER_ADDRESS: '1',
    PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
    PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '40',
    PROXY_RATE_LIMIT_PER_CONTACT: '30',
    PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '50',
    PROXY_CAPTCHA_VERIFY_URL: 'https://captcha.example.com/siteverify',
    PROXY_CAPTCHA_SECRET: 'c-secret',
    PROXY_CAPTCHA_SITE_KEY: 'c-site',
    ACTIVITY_TIMESTAMPS: 'object',
    ROOT_API_PUBLIC_KEY: publicKey.toUpperCase(),
    LOG_LEVEL: 'silent',
    RATE_LIMIT_PER_ADDRESS: '1',
    RATE_LIMIT_PER_ORGANIZATION: '20',
    RATE_LIMIT_PER_CREDENTIAL: '9999999',
    RATE_LIMIT_MAX_KEYS: '16',
    TRUST_PROXY: 'true',
    SHUTDOWN_DELAY_SECONDS: '5',
    MIN_FREE_DISK: '2 GiB',
    BUILD_COMMIT: '0123abc',
    ALLOW_PRIVATE_NETWORK: 'true',
    VOTE_NOTICES: 'true',
    OIDC_ISSUERS: 'https://accounts.google.com, https://tenant.example.com/ http://127.0.0.1:9000/realm',
    SOCIAL_LINKING_ISSUERS: 'http://127.0.0.1:9000/realm',
    OAUTH2_PROVIDERS: JSON.stringify({ OAUTH2_PROVIDER_GITEA: gitea }),
    SMTP_URL: 'smtps://mailer%40example.com:p%40ss%2Fword@smtp.example.com',
    MAIL_FROM: 'Example <no-reply@example.com>, @example.org',
    SMS_WEBHOOK_URL: 'https://sms.example.com/send?key=secret',
    SANDBOX: '2028-02-29',
    PASSKEY_COUNTERS: 'strict',
    WEBAUTHN_ORIGINS: 'https://app.example.com, http://localhost:3000',
    RESTORED: 'true',
    HEADERS_TIMEOUT: '5',
    REQUEST_TIMEOUT: '60',
    ORGANIZATION_LIMITS: 'users=500, wallets=50',
    SUB_ORGANIZATION_LIMITS: 'users=5',
  };
  expect(Object.keys(from).sort()).toEqual(settings.map(([name]) => name).sort());
  expect(readConfig(from)).toEqual({
    host: '::',
    limits: { organizations: { users: 500, wallets: 50 }, subOrganizations: { users: 5 } },
    port: 0,
    headersTimeoutMs: 5_000,
    requestTimeoutMs: 60_000,
    dataDir: '/var/lib/countersign',
    eventStore: 'memory:',
    kek: `${'0a'.repeat(32)},${'0b'.repeat(32)}`,
    kekFile: '/run/secrets/kek',
    app: 'proxy',
    apiUrl: 'http://coordinator:8080',
    proxySecret: 'p'.repeat(32),
    proxySecretFile: '/run/secrets/proxy',
    authProxyUrl: 'https://auth.example.com',
    proxyLimits: {
      perAddress: 1,
      perConfiguration: undefined,
      codesPerAddress: 40,
      perContact: 30,
      signUpsPerAddress: 50,
    },
    proxyCaptcha: { verifyUrl: 'https://captcha.example.com/siteverify', secret: 'c-secret', siteKey: 'c-site' },
    publicUrl: 'https://api.example.com:8443',
    invitationUrl: 'https://app.example.com/join',
    rootApiPublicKey: publicKey,
    activityTimestamps: 'object',
    logLevel: 'silent',
    rateLimits: { perAddress: 1, perOrganization: 20, perCredential: 9_999_999 },
    rateLimitKeys: 16,
    trustProxy: true,
    shutdownDelayMs: 5_000,
    minFreeDisk: 2 * 1024 ** 3,
    buildCommit: '0123abc',
    allowPrivateNetwork: true,
    voteNotices: true,
    passkeyCounters: 'strict',
    passkeyOrigins: ['https://app.example.com', 'http://localhost:3000'],
    restored: true,
    oidcIssuers: ['https://accounts.google.com', 'https://tenant.example.com/', 'http://127.0.0.1:9000/realm'],
    socialLinkingIssuers: ['http://127.0.0.1:9000/realm'],
    oauth2Providers: { OAUTH2_PROVIDER_GITEA: gitea },
    smtp: {
      host: 'smtp.example.com',
      port: 465,
      secure: true,
      starttls: 'required',
      user: 'mailer@example.com',
      password: 'p@ss/word',
    },
    mailFrom: { name: 'Example', address: 'no-reply@example.com', domains: ['example.org'] },
    sms: { kind: 'webhook', url: 'https://sms.example.com/send?key=secret' },
    sandboxUntil: Date.UTC(2028, 2, 1),
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
  expect(Object.isFrozen(config.proxyLimits)).toBe(true);
  expect(Object.isFrozen(config.limits.organizations)).toBe(true);
  expect(Object.isFrozen(config.oidcIssuers)).toBe(true);
  expect(Object.isFrozen(config.oauth2Providers)).toBe(true);
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
  ['APP', 'coordinator'],
  ['API_URL', 'coordinator:8080'],
  ['API_URL', 'http://coordinator:8080/'],
  ['AUTH_PROXY_URL', 'auth.example.com'],
  ['PROXY_RATE_LIMIT_PER_ADDRESS', '-1'],
  ['PROXY_RATE_LIMIT_PER_CONFIGURATION', '1.5'],
  ['PROXY_RATE_LIMIT_CODES_PER_ADDRESS', '-30'],
  ['PROXY_RATE_LIMIT_PER_CONTACT', 'many'],
  ['PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS', '2.5'],
  ['PROXY_CAPTCHA_VERIFY_URL', 'captcha.example.com'],
  ['PROXY_CAPTCHA_VERIFY_URL', 'http://captcha.example.com'],
  ['WEBAUTHN_ORIGINS', 'https://app.example.com/'],
  ['RESTORED', 'yes'],
  ['ORGANIZATION_LIMITS', 'users'],
  ['ORGANIZATION_LIMITS', 'users=0'],
  ['ORGANIZATION_LIMITS', 'users=1001'],
  ['ORGANIZATION_LIMITS', 'users=5, users=6'],
  ['SUB_ORGANIZATION_LIMITS', 'people=5'],
  ['SUB_ORGANIZATION_LIMITS', 'nameCharacters=5'],
  ['LOG_LEVEL', 'INFO'],
  ['LOG_LEVEL', 'constructor'],
  ['RATE_LIMIT_PER_ADDRESS', '0'],
  ['RATE_LIMIT_PER_ORGANIZATION', '1.5'],
  ['RATE_LIMIT_PER_CREDENTIAL', '99999999'],
  ['RATE_LIMIT_MAX_KEYS', '15'],
  ['RATE_LIMIT_MAX_KEYS', 'all'],
  ['TRUST_PROXY', 'yes'],
  ['HEADERS_TIMEOUT', '0'],
  ['HEADERS_TIMEOUT', '31'],
  ['REQUEST_TIMEOUT', '1m'],
  ['REQUEST_TIMEOUT', '10000'],
  ['ALLOW_PRIVATE_NETWORK', '1'],
  ['VOTE_NOTICES', 'on'],
  ['OIDC_ISSUERS', 'accounts.google.com'],
  ['OIDC_ISSUERS', 'ftp://accounts.google.com'],
  ['OIDC_ISSUERS', 'http://127.0.0.1:9000'],
  ['SOCIAL_LINKING_ISSUERS', 'accounts.google.com'],
  ['SOCIAL_LINKING_ISSUERS', 'http://127.0.0.1:9000'],
  ['SANDBOX', 'true'],
  ['SANDBOX', '2026-02-30'],
  ['SANDBOX', '2026-1-1'],
  ['SANDBOX', '2026-12-31T00:00:00Z'],
  ['SANDBOX', '12026-12-31'],
])('%s=%s is told with its rule', (name, value) => {
  expect(badness(name, value)).toMatch(new RegExp(`^${name}=${value}: must be `));
});

describe('of an address that is refused, no user, password, path or query is shown', () => {
  test.each([
    ['EVENT_STORE', 'admin:changeit@host', '…@host'],
    ['EVENT_STORE', 'admin:changeit@one:2113,two:2113', '…'],
    ['EVENT_STORE', 'admin:changeit', '…'],
    ['EVENT_STORE', 'mongodb://admin:changeit@one', 'mongodb://…@one'],
    ['EVENT_STORE', 'esdb://admin:change it@one', 'esdb://…@one'],
    ['EVENT_STORE', 'esdb://admin:changeit @one,two', 'esdb://…'],
    ['EVENT_STORE', 'admin:changeit@host?next=esdb://host', '…@host?…'],
    ['PUBLIC_URL', 'http://u:changeit@h', 'http://…@h'],
    ['PUBLIC_URL', 'http://u:changeit@h:8080/path', 'http://…@h:8080/…'],
    ['PUBLIC_URL', 'http://u:changeit', 'http://…'],
    ['PUBLIC_URL', 'http://u:chan/changeit@h', 'http://…'],
    ['PUBLIC_URL', 'http://u:p@changeit@h', 'http://…'],
    ['PUBLIC_URL', 'http://u:p@changeit/word@h', 'http://…'],
    ['PUBLIC_URL', 'https://api.example.com/changeit', 'https://api.example.com/…'],
    ['PUBLIC_URL', 'https://api.example.com?key=changeit', 'https://api.example.com?…'],
    ['PUBLIC_URL', 'https://api.example.com?key=a@changeit', 'https://…'],
    ['PUBLIC_URL', 'https://changeit example.com', 'https://…'],
    ['PUBLIC_URL', 'https://', 'https://…'],
    ['API_URL', 'http://u:changeit@h', 'http://…@h'],
    ['API_URL', 'u:changeit@coordinator:8080', '…@coordinator:8080'],
    ['AUTH_PROXY_URL', 'https://u:changeit@auth.example.com', 'https://…@auth.example.com'],
    ['AUTH_PROXY_URL', 'Secret-changeit77', '…'],
    ['PROXY_CAPTCHA_VERIFY_URL', 'https://u:changeit@h/verify', 'https://…@h/…'],
    ['INVITATION_URL', 'https://u:changeit@h/join', 'https://…@h/…'],
    ['INVITATION_URL', 'app.example.com/changeit', 'app.example.com/…'],
    ['INVITATION_URL', 'https://app.example.com/join#changeit', 'https://app.example.com/…'],
    ['WEBAUTHN_ORIGINS', 'https://u:changeit@h', 'https://…@h'],
    ['OIDC_ISSUERS', 'https://u:changeit@h', 'https://…@h'],
    ['OIDC_ISSUERS', 'u:changeit@h', '…@h'],
    ['OIDC_ISSUERS', 'https://accounts.google.com?key=changeit', 'https://accounts.google.com?…'],
    ['OIDC_ISSUERS', 'https://accounts.google.com#changeit', 'https://accounts.google.com#…'],
    ['OIDC_ISSUERS', 'http://127.0.0.1:9000/changeit', 'http://127.0.0.1:9000/…'],
    ['SOCIAL_LINKING_ISSUERS', 'https://u:changeit@h', 'https://…@h'],
    ['SMTP_URL', 'u:changeit@host?next=smtp://h', '…'],
    ['SMS_WEBHOOK_URL', 'u:changeit@host?next=https://h', '…'],
    // Of another setting, pasted here by mistake.
    ['MAIL_FROM', 'smtp://u:changeit@h', 'smtp://…@h'],
    ['LOG_LEVEL', 'esdb://u:changeit@h', 'esdb://…@h'],
    ['PORT', 'esdb://u:changeit@h', 'esdb://…@h'],
    ['SANDBOX', 'esdb://u:changeit@h', 'esdb://…@h'],
  ])('%s=%s', (name, value, shown) => {
    const message = badness(name, value);
    expect(message.slice(0, message.indexOf(': must be'))).toBe(`${name}=${shown}`);
    expect(message).not.toContain('changeit');
  });
});

test('an auth proxy by itself needs an API and a secret, which is never shown', () => {
  const proxy = (more: Readonly<Record<string, string>>) => () => readConfig({ APP: 'proxy', ...more });
  expect(proxy({})).toThrow('API_URL=: is required when APP is proxy');
  expect(proxy({ API_URL: 'http://api:8080' })).toThrow(
    'PROXY_SECRET=: is required when APP is proxy, unless PROXY_SECRET_FILE',
  );
  expect(proxy({ API_URL: 'http://api:8080', PROXY_SECRET_FILE: '/run/secret' })).not.toThrow();
  const short = 'short-but-secret';
  expect(badness('PROXY_SECRET', short)).toBe(
    'PROXY_SECRET=…: must be 32 to 512 printable characters without spaces; it has 16',
  );
});

test('a captcha has an address and a secret, or neither', () => {
  const verifyUrl = { PROXY_CAPTCHA_VERIFY_URL: 'https://captcha.example.com/siteverify' };
  expect(() => readConfig(verifyUrl)).toThrow(
    'PROXY_CAPTCHA_SECRET=: is required when PROXY_CAPTCHA_VERIFY_URL is set',
  );
  expect(() => readConfig({ PROXY_CAPTCHA_SECRET: 'changeit' })).toThrow('PROXY_CAPTCHA_VERIFY_URL=: is required when');
  const { proxyCaptcha } = readConfig({ ...verifyUrl, PROXY_CAPTCHA_SECRET: 'changeit' });
  expect(proxyCaptcha).toEqual({
    verifyUrl: verifyUrl.PROXY_CAPTCHA_VERIFY_URL,
    secret: 'changeit',
    siteKey: undefined,
  });
  expect(Object.isFrozen(proxyCaptcha)).toBe(true);
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

describe('OAUTH2_PROVIDERS', () => {
  const safe = { tokenUrl: 'https://id.example.com/token', userUrl: 'https://id.example.com/me' };
  const read = (providers: unknown, more = {}) =>
    readConfig({ OAUTH2_PROVIDERS: JSON.stringify(providers), ...more }).oauth2Providers;

  it('needs two addresses, and has defaults for the rest', () => {
    expect(read({ OAUTH2_PROVIDER_ACME_2: safe })).toEqual({
      OAUTH2_PROVIDER_ACME_2: { ...safe, userId: 'id', scopes: [], clientAuthentication: 'basic' },
    });
  });

  it.each([
    ['no JSON', '{'],
    ['no object', '[]'],
    ['nothing', '{}'],
    ['another name', { ACME: safe }],
    ['a name in small letters', { OAUTH2_PROVIDER_acme: safe }],
    ['no profile', { OAUTH2_PROVIDER_ACME: null }],
    ['a text for a profile', { OAUTH2_PROVIDER_ACME: 'https://id.example.com/token' }],
    ['one address', { OAUTH2_PROVIDER_ACME: { tokenUrl: safe.tokenUrl } }],
    ['no address', { OAUTH2_PROVIDER_ACME: { ...safe, userUrl: 'id.example.com/me' } }],
    ['plain http', { OAUTH2_PROVIDER_ACME: { ...safe, tokenUrl: 'http://id.example.com/token' } }],
    ['another scheme', { OAUTH2_PROVIDER_ACME: { ...safe, tokenUrl: 'file:///etc/passwd' } }],
    ['an odd path', { OAUTH2_PROVIDER_ACME: { ...safe, userId: 'data..id' } }],
    ['odd scopes', { OAUTH2_PROVIDER_ACME: { ...safe, scopes: 'read' } }],
    ['an odd way to authenticate', { OAUTH2_PROVIDER_ACME: { ...safe, clientAuthentication: 'none' } }],
    ['a member that is none', { OAUTH2_PROVIDER_ACME: { ...safe, tokenURL: safe.tokenUrl } }],
  ])('is refused with %s', (_what, value) => {
    const message = badness('OAUTH2_PROVIDERS', typeof value === 'string' ? value : JSON.stringify(value));
    expect(message).toMatch(/^OAUTH2_PROVIDERS=…: (?:OAUTH2_PROVIDER_ACME must have|.*must be) /);
  });

  it('may be on a private network where that is allowed', () => {
    expect(() => read({ OAUTH2_PROVIDER_GITEA: gitea })).toThrow(BadSetting);
    expect(read({ OAUTH2_PROVIDER_GITEA: gitea }, { ALLOW_PRIVATE_NETWORK: 'true' })).toMatchObject({
      OAUTH2_PROVIDER_GITEA: gitea,
    });
  });
});

test('a connection string is taken as it is, and its password never shown', () => {
  const connection = 'esdb://admin:changeit@one:2113,two:2113?tls=false';
  expect(readConfig({ EVENT_STORE: connection }).eventStore).toBe(connection);
  const message = badness('EVENT_STORE', 'mongodb://admin:changeit@one');
  expect(message).toMatch(/^EVENT_STORE=mongodb:\/\/…@one: must be /);
  expect(message).not.toContain('changeit');
});

describe('SMTP_URL', () => {
  const read = (SMTP_URL: string) => readConfig({ SMTP_URL }).smtp;

  it('asks for encryption, but on this machine or where the operator does without', () => {
    expect(read('smtp://relay.example.com')).toEqual({
      host: 'relay.example.com',
      port: 587,
      secure: false,
      starttls: 'required',
      user: undefined,
      password: undefined,
    });
    expect(read('smtp://relay:1025?starttls=optional')).toMatchObject({ port: 1025, starttls: 'optional' });
    for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '[::1]']) {
      expect(read(`smtp://${host}:25`)).toMatchObject({ port: 25, starttls: 'optional' });
    }
    expect(read('smtp://127.0.0.1?starttls=required')).toMatchObject({ starttls: 'required' });
    for (const host of ['127.0.0.1.example.com', 'localhost.example.com', '10.0.0.1']) {
      expect(read(`smtp://${host}`)).toMatchObject({ host, starttls: 'required' });
    }
    expect(read('smtp://[2001:db8::25]')).toMatchObject({ host: '2001:db8::25', starttls: 'required' });
  });

  it.each([
    'smtp.example.com',
    'http://user:hunter2@smtp.example.com',
    'smtp://user:hunter2@',
    'smtp://user:hunter2@smtp example.com',
    'smtp://user:hunter2%zz@smtp.example.com',
    'smtp://user@smtp.example.com',
    'smtp://:hunter2@smtp.example.com',
    'smtp://user:hunter2@smtp.example.com/path',
    'smtp://user:hunter2@smtp.example.com:99999',
    'smtp://user:hunter2@smtp.example.com?tls.rejectUnauthorized=false',
    'smtp://user:hunter2@smtp.example.com?starttls=never',
    'smtps://user:hunter2@smtp.example.com?starttls=optional',
    'smtp://user:hunter2@one.example.com%2Ftwo',
  ])('%s is refused, and no password shown', (value) => {
    const message = badness('SMTP_URL', value);
    expect(message).toMatch(/^SMTP_URL=(?:\w+:\/\/)?…: must /);
    expect(message).not.toContain('hunter2');
  });
});

describe('MAIL_FROM', () => {
  it.each([
    ['no-reply@example.com', undefined, 'no-reply@example.com', []],
    ['<no-reply@example.com>', undefined, 'no-reply@example.com', []],
    ['Zoë & Söhne <mail@example.com>', 'Zoë & Söhne', 'mail@example.com', []],
    [
      '"Example, Inc." <a@example.com>, @Example.org,@mail.example.net',
      'Example, Inc.',
      'a@example.com',
      ['example.org', 'mail.example.net'],
    ],
    ['root@localhost', undefined, 'root@localhost', []],
  ])('is read: %s', (value, name, address, domains) => {
    expect(readConfig({ MAIL_FROM: value }).mailFrom).toEqual({ name, address, domains });
  });

  it.each([
    'Example',
    'a@',
    '@example.com',
    'A <a@example.com',
    'a@example.com, b@example.com',
    'A <a@b> <c@d>',
    'a b@c.d',
  ])('%s is refused', (value) =>
    expect(badness('MAIL_FROM', value)).toMatch(/^MAIL_FROM=.+: must be a sender such as /),
  );

  it('cannot begin another header', () => {
    expect(badness('MAIL_FROM', 'A\r\nBcc: x@example.com <a@example.com>')).toContain('must be a sender');
  });
});

describe('SMS_WEBHOOK_URL', () => {
  const read = (SMS_WEBHOOK_URL: string) => readConfig({ SMS_WEBHOOK_URL }).sms;
  const account = `AC${'0'.repeat(32)}`;

  it('names a webhook, or an account at what speaks like Twilio', () => {
    expect(read('http://127.0.0.1:9000/sms')).toEqual({ kind: 'webhook', url: 'http://127.0.0.1:9000/sms' });
    const twilio = { kind: 'twilio', host: 'api.twilio.com', accountSid: account, authToken: 'to/ken' };
    const url = (query: string) => `twilio://${account}:to%2Fken@api.twilio.com${query}`;
    expect(read(url('?from=+13214567890'))).toEqual({ ...twilio, sender: '+13214567890' });
    expect(read(url('?from=%2B13214567890'))).toEqual({ ...twilio, sender: '+13214567890' });
    expect(read(url('?from=Example'))).toEqual({ ...twilio, sender: 'Example' });
    expect(read(url(`?from=MG${'a'.repeat(32)}`))).toEqual({ ...twilio, sender: `MG${'a'.repeat(32)}` });
    expect(read(`twilio://${account}:t@localhost:8443?from=1234`)).toMatchObject({ host: 'localhost:8443' });
  });

  it.each([
    'sms.example.com',
    'ftp://user:hunter2@sms.example.com',
    'https://user:hunter2%zz@sms.example.com',
    `twilio://${account}@api.twilio.com?from=+13214567890`,
    `twilio://${account}:hunter2@api.twilio.com`,
    `twilio://${account}:hunter2@api.twilio.com?from=+0123`,
    `twilio://..%2Fother:hunter2@api.twilio.com?from=+13214567890`,
    `twilio://${account}:hunter2@?from=+13214567890`,
  ])('%s is refused, and no token shown', (value) => {
    const message = badness('SMS_WEBHOOK_URL', value);
    expect(message).toMatch(/^SMS_WEBHOOK_URL=(?:\w+:\/\/)?…: must /);
    expect(message).not.toContain('hunter2');
  });
});

describe('a name that is none of a setting', () => {
  it.each([
    ['RATE_LIMIT_PER_ADRESS', 'RATE_LIMIT_PER_ADDRESS'],
    ['RATE_LIMIT_PER_IP', 'RATE_LIMIT_PER_ADDRESS'],
    ['SMTP_HOST', 'SMTP_URL'],
    ['DATADIR', undefined],
    ['DATA_DIRS', 'DATA_DIR'],
    ['EVNET_STORE', 'EVENT_STORE'],
    ['PROXYSECRET', 'PROXY_SECRET'],
    ['ALLOW_PRIVATE_NETWROK', 'ALLOW_PRIVATE_NETWORK'],
    ['COUNTERSIGN_ANYTHING', 'ROOT_API_PUBLIC_KEY'],
  ])('%s is refused where it was surely meant: %s', (name, meant) => {
    const attempt = () => refuseMisspelled({ [name]: 'hunter2' });
    if (meant === undefined) attempt();
    else if (name.startsWith('COUNTERSIGN_')) expect(attempt).toThrow(`${name}=…: is not a setting; did you mean `);
    else expect(attempt).toThrow(`${name}=…: is not a setting; did you mean ${meant}?`);
  });

  it('is looked up without the prefix that other programs give their settings', () => {
    expect(() => refuseMisspelled({ COUNTERSIGN_PORT: '1' })).toThrow('is not a setting; did you mean PORT?');
  });

  it('is nobody’s business otherwise', () => {
    refuseMisspelled({
      ...{
        PATH: '/bin',
        HOME: '/root',
        HOSTNAME: 'a',
        PWD: '/',
        SHLVL: '1',
        LANG: 'C',
        TERM: 'x',
        MAIL: '/var/mail/a',
      },
      ...{
        HTTP_PROXY: 'x',
        NO_PROXY: 'x',
        NODE_OPTIONS: 'x',
        NODE_EXTRA_CA_CERTS: 'x',
        APP_URL: 'x',
        DATABASE_URL: 'x',
      },
      ...{ npm_config_cache: 'x', KUBERNETES_SERVICE_HOST: '10.0.0.1', SMTP_SERVICE_HOST: '10.0.0.2' },
      ...{ SMTP_PORT: 'tcp://10.0.0.2:25', SMTP_PORT_25_TCP_ADDR: '10.0.0.2', SMTP_SERVICE_PORT_MAIL: '25' },
    });
    refuseMisspelled(Object.fromEntries(settings.map(([name]) => [name, 'x'])));
  });

  it('is refused in a test whatever it is', () => {
    expect(() => refuseMisspelled({ HOSTNAME: 'a' }, { only: true })).toThrow('did you mean HOST?');
  });
});

test('a KEK that is none is refused without being shown', () => {
  for (const wrong of ['0a', 'g'.repeat(64), `${'0a'.repeat(32)},0b`]) {
    const message = badness('KEK', wrong);
    expect(message).toMatch(/^KEK=…: must be 64 hex characters, .*one has (2|64)$/);
  }
});
