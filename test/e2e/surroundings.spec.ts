import { Writable } from 'node:stream';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { endpoints } from '../../src/auth-proxy/endpoints.js';
import { stampBody, startCoordinator, submitPath, type TestCoordinator } from '../../src/testing/index.js';
import { anyText, exchange, refusal, textLike } from './exchange.js';
import { stampedPaths } from './routes.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';

let coordinator: TestCoordinator;

beforeAll(async () => {
  coordinator = await startCoordinator();
});

afterAll(() => coordinator.close());

const get = (path: string) => exchange(`${coordinator.url}${path}`);

describe('browsers', () => {
  const allowed = [
    'content-type',
    'accept',
    'x-stamp',
    'x-stamp-webauthn',
    'x-stamp-attested',
    'x-client-version',
    'x-session',
    'x-min-position',
    'x-auth-proxy-config-id',
    'x-captcha-token',
  ];

  test.each(['/public/v1/submit/create_users', '/public/v1/query/whoami'])('may ask first: %s', async (path) => {
    const { status, headers } = await exchange(`${coordinator.url}${path}`, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://app.example.com',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,x-stamp',
      },
    });
    expect(status).toBe(204);
    expect(headers.get('access-control-allow-origin')).toBe('*');
    expect(headers.get('access-control-allow-methods')?.split(/, ?/)).toEqual(expect.arrayContaining(['GET', 'POST']));
    const names = headers.get('access-control-allow-headers')!.toLowerCase().split(/, ?/);
    expect(names).toEqual(expect.arrayContaining(allowed));
    expect(headers.get('access-control-max-age')).toBe('7200');
    // Nothing here goes by cookies, so no origin may send them along.
    expect(headers.get('access-control-allow-credentials')).toBeNull();
  });

  test('may read answers and refusals of every kind, and the headers they need', async () => {
    const origin = { origin: 'https://app.example.com' };
    const body = JSON.stringify({ organizationId: coordinator.organizationId });
    const { headerName, headerValue } = stampBody(body, coordinator.client.key);
    const url = `${coordinator.url}/public/v1/query/whoami`;
    const answers = await Promise.all([
      exchange(url, { method: 'POST', body, headers: { ...origin, [headerName]: headerValue } }),
      exchange(url, { method: 'POST', body, headers: origin }),
      exchange(`${coordinator.url}/nowhere`, { headers: origin }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 404]);
    for (const { headers } of answers) {
      expect(headers.get('access-control-allow-origin')).toBe('*');
      expect(headers.get('access-control-expose-headers')?.toLowerCase()).toContain('x-position');
      expect(headers.get('access-control-expose-headers')?.toLowerCase()).toContain('retry-after');
    }
  });

  test('are told to be careful with every answer', async () => {
    for (const path of ['/docs', '/openapi.json', '/nowhere', '/health/live']) {
      const { headers } = await get(path);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('x-frame-options')).toBe('SAMEORIGIN');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin');
      expect(headers.get('x-powered-by')).toBeNull();
      expect(headers.get('server')).toBeNull();
      const policy = headers.get('content-security-policy')!;
      expect(policy).toContain("default-src 'self'");
      expect(policy).toContain("object-src 'none'");
      // It would turn http on a local network into https that nobody serves.
      expect(policy).not.toContain('upgrade-insecure-requests');
      expect(policy).not.toMatch(/script-src[^;]*unsafe/);
    }
  });
});

describe('operators', () => {
  test('ask whether it lives and whether it is ready', async () => {
    expect(await get('/health/live')).toMatchObject({ status: 200, body: { status: 'ok' } });
    expect(await get('/health/ready')).toMatchObject({
      status: 200,
      body: { status: 'ok', readModels: { failed: [] } },
    });
  });

  test('read metrics that change', async () => {
    const read = async () => {
      const { status, headers, text } = await get('/metrics');
      expect(status).toBe(200);
      expect(headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
      const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
      return new Map(
        lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
      );
    };
    const before = await read();
    const started = performance.now();
    const { client } = await coordinator.createUser('Nobody');
    await refusal(client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'tag' }));
    await client.query('whoami');
    const after = await read();
    const grown = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);

    const route = 'route="/public/v1/submit/:name"';
    expect(grown(`countersign_http_request_seconds_count{${route},status="200"}`)).toBe(1);
    expect(grown(`countersign_http_request_seconds_count{${route},status="403"}`)).toBe(1);
    expect(grown('countersign_decisions_total{outcome="allow",type="ACTIVITY_TYPE_CREATE_USERS_V4"}')).toBe(1);
    expect(grown('countersign_decisions_total{outcome="deny",type="ACTIVITY_TYPE_CREATE_USER_TAG"}')).toBe(1);
    expect(grown('countersign_append_seconds_count')).toBe(1);
    expect(grown('countersign_append_seconds_sum')).toBeGreaterThan(0);
    expect(grown('countersign_append_seconds_sum')).toBeLessThan((performance.now() - started) / 1000);
    expect(grown('countersign_append_requests_sum')).toBe(1);
    expect(grown('countersign_read_model_position{model="users"}')).toBeGreaterThan(0);
    for (const name of [
      'countersign_append_conflicts_total',
      'countersign_fold_seconds_count',
      'countersign_folded_events_total',
      'countersign_read_model_lag_positions',
      'process_cpu_seconds_total',
      'nodejs_eventloop_lag_seconds',
    ]) {
      expect([name, after.has(name)]).toEqual([name, true]);
    }
    // What a stranger writes into a path or a body must not become a series.
    for (let index = 0; index < 20; index++) {
      await exchange(`${coordinator.url}/public/v1/query/made-up-${index}`, { method: 'POST', body: '{}' });
      await exchange(`${coordinator.url}/made/up/${index}`);
    }
    expect([...(await read()).keys()].filter((name) => name.includes('made'))).toEqual([]);
  });
});

interface Document {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>;
    readonly securitySchemes: Readonly<Record<string, object>>;
  };
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly requestBody: { readonly content: { readonly 'application/json': { readonly schema: object } } };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content: object }>>;
}

describe('the reference', () => {
  let document: Document;

  beforeAll(async () => {
    const { status, headers, body } = await get('/openapi.json');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    document = body as Document;
  });

  test('is an OpenAPI 3.1 document with every path that is registered, and no other', () => {
    expect(document.openapi).toBe('3.1.0');
    expect(document.info).toMatchObject({ title: anyText, version: anyText });
    const registered = [...stampedPaths, ...endpoints.map(({ name }) => `/v1/${name}`)];
    expect(Object.keys(document.paths).sort()).toEqual(registered.sort());
    const ids = new Set<string>();
    for (const [path, item] of Object.entries(document.paths)) {
      expect(Object.keys(item)).toEqual(['post']);
      const { operationId, summary, requestBody, responses } = item['post']!;
      ids.add(operationId);
      expect([path, summary.length > 10]).toEqual([path, true]);
      expect(Object.keys(requestBody.content)).toEqual(['application/json']);
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(['200', '400', '401', '403', '404', '429', '503']));
      for (const response of Object.values(responses)) expect(response.description).not.toBe('');
    }
    expect(ids.size).toBe(registered.length);
    for (const requirement of document.security) {
      for (const name of Object.keys(requirement)) expect(document.components.securitySchemes).toHaveProperty(name);
    }
  });

  test('every reference in it leads somewhere', () => {
    const references = new Set<string>();
    const walk = (node: unknown): void => {
      if (typeof node !== 'object' || node === null) return;
      for (const [name, member] of Object.entries(node)) {
        if (name === '$ref') references.add(String(member));
        // What is ours to resolve must not be left in.
        expect(name).not.toBe('$shape');
        walk(member);
      }
    };
    walk(document);
    expect(references.size).toBeGreaterThan(40);
    for (const reference of references) {
      expect(reference).toMatch(/^#\/components\/schemas\/\w+$/);
      expect(document.components.schemas).toHaveProperty(reference.split('/').at(-1)!);
    }
  });

  test('every schema in it is one', () => {
    const ajv = new Ajv2020({ strict: true, validateFormats: false, allowUnionTypes: true });
    ajv.addSchema({ $id: 'document', components: document.components }, 'document');
    ajv.addKeyword('components');
    for (const name of Object.keys(document.components.schemas)) {
      expect(() => ajv.compile({ $ref: `document#/components/schemas/${name}` })).not.toThrow();
    }
  });

  test('names the address that the setting says', async () => {
    expect(document.servers).toEqual([{ url: '/' }]);
    const behindProxy = await startCoordinator({ settings: { PUBLIC_URL: 'https://api.example.com' } });
    try {
      const { body } = await exchange(`${behindProxy.url}/openapi.json`);
      expect((body as Document).servers).toEqual([{ url: 'https://api.example.com' }]);
    } finally {
      await behindProxy.close();
    }
  });

  test('the address of the server leads to the reference', async () => {
    const response = await fetch(coordinator.url, { redirect: 'manual' });
    expect([response.status, response.headers.get('location')]).toEqual([302, '/docs']);
  });

  test('its page and what the page needs come from here, and from nowhere else', async () => {
    const page = await get('/docs/api');
    expect(page.headers.get('content-type')).toMatch(/^text\/html/);
    const assets = [...page.text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, path]) => path!);
    expect(assets.length).toBeGreaterThanOrEqual(3);
    const types: Record<string, RegExp> = {
      js: /^text\/javascript/,
      css: /^text\/css/,
      svg: /^image\/svg/,
      '/docs': /^text\/html/,
    };
    for (const path of assets) {
      expect(path).toMatch(/^\/docs(?:\/|$)/);
      const { status, headers, text } = await get(path);
      expect(status).toBe(200);
      expect(headers.get('content-type')).toMatch(types[path.split('.').at(-1)!]!);
      expect(text.length).toBeGreaterThan(20);
    }
    expect(page.text).not.toMatch(/https?:/);
    expect((await get('/docs/swagger-ui.css')).text).not.toMatch(/url\(["']?(?:https?:)?\/\/|@import/);
    // The bundle would show a badge from a validator elsewhere, and send it the address of this document.
    const start = (await get('/docs/start.js')).text;
    expect(start).not.toMatch(/https?:/);
    expect(start).toMatch(/validatorUrl: null/);
    expect(start).toContain("url: '/openapi.json'");
  });

  test('the documentation is a set of pages whose links all lead to pages, and nothing comes from elsewhere', async () => {
    const seen = new Map<string, string>();
    const queue = ['/docs'];
    for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
      if (seen.has(path)) continue;
      const { status, headers, text } = await get(path);
      expect([path, status]).toEqual([path, 200]);
      seen.set(path, text);
      if (!/^text\/html/.test(headers.get('content-type')!)) continue;
      expect(text).not.toMatch(/<script(?![^>]* src="\/docs\/)|<style|\son[a-z]+="|<(?:img|link|script)[^>]*="https?:/);
      for (const [, link] of text.matchAll(/(?:href|src)="(\/[^"#]*)/g)) queue.push(link!);
    }
    expect([...seen.keys()]).toEqual(
      expect.arrayContaining([
        '/docs/api',
        '/docs/how-to/webhooks',
        '/docs/reference/policy-language',
        '/docs/check-dark-mode.js',
      ]),
    );
    const { text: app } = await get([...seen.keys()].find((path) => /\/theme\.[^/]+\.js$/.test(path))!);
    const search = await get(`/docs/assets/chunks/${/VPLocalSearchBox\.[\w-]+\.js/.exec(app)![0]}`);
    const index = await get(`/docs/assets/chunks/${/@localSearchIndexroot\.[\w-]+\.js/.exec(search.text)![0]}`);
    expect(index.text).toContain('/docs/how-to/why-was-it-denied#what-am-i-asked-to-approve');
    expect(index.headers.get('content-type')).toMatch(/^text\/javascript/);
    expect(index.headers.get('cache-control')).toContain('immutable');
  });

  test.each([
    'package.json',
    'index.html',
    'how-to/..%2f..%2fmain.js',
    'how-to%2fwebhooks.html',
    '..%2fpackage.json',
    '%2e%2e%2fpackage.json',
    'constructor',
    'swagger-ui.js.map',
  ])('/docs/%s is not served', async (file) => {
    expect(await get(`/docs/${file}`)).toMatchObject({ status: 404, body: { code: 5 } });
  });
});

describe('rate limits', () => {
  const burst = async (
    { client, url, organizationId }: TestCoordinator,
    count: number,
    { key = client.key, headers = {} }: { key?: typeof client.key; headers?: Record<string, string> } = {},
  ) => {
    const body = JSON.stringify({ organizationId });
    const { headerName, headerValue } = stampBody(body, key);
    const init = { method: 'POST', body, headers: { [headerName]: headerValue, ...headers } };
    return Promise.all(Array.from({ length: count }, () => exchange(`${url}/public/v1/query/whoami`, init)));
  };
  const statuses = (answers: readonly { status: number }[]) => answers.map(({ status }) => status).sort();
  /** The limits count within seconds of the wall clock; a new one has come after this. */
  const nextSecond = () => new Promise((resolve) => setTimeout(resolve, 1_050));
  /** What comes of it within one of those seconds: a busy machine needs longer now and then, and tries again. */
  const withinASecond = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;) {
      const begun = performance.now();
      const outcome = await work();
      if (performance.now() - begun < 1_000) return outcome;
      await nextSecond();
    }
  };

  test('are off unless they are set', async () => {
    const answers = await burst(coordinator, 200);
    expect(new Set(statuses(answers))).toEqual(new Set([200]));
    expect(answers[0]!.headers.get('ratelimit-limit')).toBeNull();
  });

  test('per address: the next one is 429 in the words that clients know, and a second later all is well', async () => {
    const limited = await startCoordinator({ settings: { RATE_LIMIT_PER_ADDRESS: '3' } });
    try {
      const [answers, forwarded] = await withinASecond(async () => [
        await burst(limited, 5),
        await burst(limited, 1, { headers: { 'x-forwarded-for': '203.0.113.9' } }),
      ]);
      expect(statuses(answers)).toEqual([200, 200, 200, 429, 429]);
      const remaining = answers
        .filter(({ status }) => status === 200)
        .map(({ headers }) => headers.get('ratelimit-remaining'));
      expect(remaining.sort()).toEqual(['0', '1', '2']);
      for (const { status, headers, body } of answers) {
        expect(headers.get('ratelimit-limit')).toBe('3');
        if (status === 200) continue;
        expect(headers.get('retry-after')).toBe('1');
        expect(headers.get('ratelimit-remaining')).toBe('0');
        expect(body).toMatchObject({
          code: 8,
          message: 'Too many requests. Please wait and try again in a few seconds',
          turnkeyErrorCode: 'RATE_LIMIT_EXCEEDED',
        });
      }
      // Who says to come from elsewhere is believed only behind a proxy.
      expect(statuses(forwarded)).toEqual([429]);
      await nextSecond();
      expect(statuses(await burst(limited, 1))).toEqual([200]);
    } finally {
      await limited.close();
    }
  });

  test('per address behind a proxy: the forwarded one counts', async () => {
    const limited = await startCoordinator({ settings: { RATE_LIMIT_PER_ADDRESS: '1', TRUST_PROXY: 'true' } });
    try {
      const from = (address: string) =>
        withinASecond(() => burst(limited, 2, { headers: { 'x-forwarded-for': address } }));
      expect(statuses(await from('203.0.113.1'))).toEqual([200, 429]);
      expect(statuses(await from('203.0.113.2'))).toEqual([200, 429]);
    } finally {
      await limited.close();
    }
  });

  test('of an organization are not used up by strangers, nor by a sub-organization that names its parent', async () => {
    const limited = await startCoordinator({ settings: { RATE_LIMIT_PER_ORGANIZATION: '4' } });
    try {
      const { client, url } = limited;
      const sub = limited.newKey();
      await client.perform('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
        subOrganizationName: 'One',
        rootUsers: [
          {
            userName: 'Ann',
            apiKeys: [{ apiKeyName: 'hers', publicKey: sub.publicKey, curveType: 'API_KEY_CURVE_P256' }],
            authenticators: [],
            oauthProviders: [],
          },
        ],
        rootQuorumThreshold: 1,
      });
      const stranger = limited.newKey();
      let tags = 0;
      const submits = (key: typeof stranger, count: number) => {
        const type = 'ACTIVITY_TYPE_CREATE_USER_TAG';
        const from = limited.clientFor(key);
        const bodies = Array.from({ length: count }, () =>
          from.submitBody(type, { userTagName: `tag ${tags++}`, userIds: [] }),
        );
        return Promise.all(
          bodies.map((body) => {
            const { headerName, headerValue } = stampBody(body, key);
            return exchange(`${url}${submitPath(type)}`, {
              method: 'POST',
              body,
              headers: { [headerName]: headerValue },
            });
          }),
        );
      };
      await nextSecond();
      const [strange, subs, own] = await withinASecond(async () => [
        [...(await burst(limited, 6, { key: stranger })), ...(await submits(stranger, 6))],
        await burst(limited, 5, { key: sub }),
        [...(await burst(limited, 2)), ...(await submits(client.key, 3))],
      ]);
      expect(new Set(statuses(strange))).toEqual(new Set([401]));
      expect(statuses(subs)).toEqual([200, 200, 200, 200, 429]);
      expect(statuses(own)).toEqual([200, 200, 200, 200, 429]);
    } finally {
      await limited.close();
    }
  });

  test('per credential, and per organization', async () => {
    const [perCredential, perOrganization] = await Promise.all([
      startCoordinator({ settings: { RATE_LIMIT_PER_CREDENTIAL: '4' } }),
      startCoordinator({ settings: { RATE_LIMIT_PER_ORGANIZATION: '4' } }),
    ]);
    try {
      const [one, other] = await Promise.all([perCredential, perOrganization].map((each) => each.createUser('Alice')));
      await nextSecond();
      const ofCredential = await withinASecond(async () => [
        ...(await burst(perCredential, 5)),
        ...(await burst(perCredential, 5, { key: one!.key })),
      ]);
      expect(statuses(ofCredential).filter((status) => status === 200)).toHaveLength(8);
      const ofOrganization = await withinASecond(async () => [
        ...(await burst(perOrganization, 3)),
        ...(await burst(perOrganization, 3, { key: other!.key })),
      ]);
      expect(statuses(ofOrganization)).toEqual([200, 200, 200, 200, 429, 429]);
    } finally {
      await Promise.all([perCredential.close(), perOrganization.close()]);
    }
  });
});

test('nothing secret is logged, at the most talkative level', async () => {
  const lines: string[] = [];
  const log = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  const own = await startCoordinator({ logLevel: 'trace', log, settings: { LOG_LEVEL: 'debug' } });
  const secrets: string[] = [own.root.apiPrivateKey];
  try {
    const alice = await own.createUser('Alice');
    secrets.push(alice.key.privateKey);
    const passkey = new SoftwareAuthenticator();
    await alice.client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
      userId: alice.userId,
      authenticators: [{ authenticatorName: 'passkey', ...passkey.register() }],
    });
    const body = JSON.stringify({ organizationId: own.organizationId });
    const { headerValue } = stampBody(body, alice.key);
    const stamp = passkey.assert({ body });
    secrets.push(headerValue, stamp, (JSON.parse(stamp) as { signature: string }).signature);
    const { signature } = JSON.parse(Buffer.from(headerValue, 'base64url').toString()) as { signature: string };
    secrets.push(signature);
    const url = `${own.url}/public/v1/query/whoami`;
    for (const headers of [
      { 'x-stamp': headerValue },
      { 'x-stamp-webauthn': stamp },
      { 'x-stamp': `${headerValue}x` },
      { 'x-stamp': headerValue, 'x-stamp-webauthn': stamp },
    ]) {
      await exchange(url, { method: 'POST', body, headers });
      await exchange(`${url}/nowhere`, { method: 'POST', body, headers });
      await exchange(url, { method: 'POST', body: `${body}!`, headers });
    }
    await refusal(alice.client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds: [own.root.userId] }));
  } finally {
    await own.close();
  }
  const logged = lines.join('');
  expect(logged).toEqual(textLike('Nest application'));
  for (const secret of secrets) {
    expect(secret.length).toBeGreaterThan(40);
    expect(logged).not.toContain(secret);
  }
});
