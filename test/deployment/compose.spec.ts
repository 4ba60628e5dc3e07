import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig } from '../../src/config/config.js';
import { settings } from '../../src/config/settings.js';
import { readConnectionString } from '../../src/ledger/stores/event-store-db/settings.js';
import { anyText } from '../e2e/exchange.js';
import { read, readCompose, readDockerfile, root, type Service } from './read.js';

const password = 'a-password.of~24_characters';
const { services, networks, volumes, secrets } = readCompose({ EVENTSTORE_ADMIN_PASSWORD: password });
const named = Object.entries(services);
const isCoordinator = ({ image }: Service): boolean => image.startsWith('countersign:');
const isProxy = ({ environment }: Service): boolean => environment?.['APP'] === 'proxy';
const coordinators = named.filter(([, service]) => isCoordinator(service) && !isProxy(service));
const proxies = named.filter(([, service]) => isProxy(service));
const stores = named.filter(([, { image }]) => /^(?:eventstore\/eventstore|kurrentplatform\/kurrentdb):/.test(image));
const mounts = named.flatMap(([name, { volumes: of = [] }]) =>
  of.map((text) => {
    const [source, target, mode] = text.split(':') as [string, string, string?];
    return { name, source, target, mode };
  }),
);
const imageEnvironment = Object.fromEntries(
  readDockerfile()
    .at(-1)!
    .instructions.filter(({ name }) => name === 'ENV')
    .flatMap(({ words }) => words.split(' ').map((one) => one.split('=') as [string, string])),
);

test('each profile has its services', () => {
  const of = (profile: string | undefined): string[] =>
    named.filter(([, { profiles }]) => profiles?.[0] === profile).map(([name]) => name);
  expect(named.filter(([, { profiles = [] }]) => profiles.length > 1)).toEqual([]);
  expect(of(undefined)).toEqual(['eventstoredb', 'coordinator', 'auth-proxy']);
  expect(of('mail')).toEqual(['mail']);
  expect(of('kurrentdb')).toEqual(['kurrentdb', 'coordinator-on-kurrentdb']);
  expect(of('cluster')).toEqual([
    'certificates',
    'eventstoredb-1',
    'eventstoredb-2',
    'eventstoredb-3',
    'coordinator-1',
    'coordinator-2',
    'load-balancer',
    'cluster-auth-proxy',
  ]);
  expect(Object.keys(services)).toHaveLength(14);
});

describe.each(named)('%s', (name, service) => {
  test('has an image with a version in its tag', () => {
    expect(service.image).toMatch(/^[a-z/-]+:v?\d+\.\d+(?:\.\d+)?(?:-[a-z]+)?$/);
  });

  test('has a health check, or ends', () => {
    const ends = service.entrypoint !== undefined;
    if (isCoordinator(service)) expect(service.healthcheck).toBeUndefined();
    else expect(service.healthcheck !== undefined).toBe(!ends);
    if (service.healthcheck) {
      expect(service.healthcheck.test[0]).toMatch(/^CMD(?:-SHELL)?$/);
      expect(service.healthcheck.retries).toBeGreaterThan(0);
    }
  });

  test('depends on services that exist, start with it, and can come to the state that it waits for', () => {
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
      expect(services).toHaveProperty([other]);
      expect([[], service.profiles]).toContainEqual(services[other]!.profiles ?? []);
      const ends = services[other]!.entrypoint !== undefined;
      expect(condition).toBe(ends ? 'service_completed_successfully' : 'service_healthy');
    }
  });

  test('publishes on this machine only, and not what a store listens on', () => {
    for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
    if (stores.some(([store]) => store === name)) expect(service.ports).toBeUndefined();
  });

  test('is in networks that are declared', () => {
    for (const network of service.networks ?? []) expect(['default', ...Object.keys(networks)]).toContain(network);
  });

  test('gains no privileges', () => {
    expect(service.security_opt).toEqual(['no-new-privileges:true']);
  });
});

test('nothing waits for itself', () => {
  const waits = (name: string): string[] =>
    Object.keys(services[name]!.depends_on ?? {}).flatMap((other) => [other, ...waits(other)]);
  expect(waits('load-balancer')).toEqual(expect.arrayContaining(['certificates', 'eventstoredb-3', 'coordinator-1']));
  for (const [name] of named) expect(waits(name)).not.toContain(name);
});

test('no two services publish the same port', () => {
  const published = named.flatMap(([, { ports = [] }]) => ports.map((port) => port.split(':')[1]));
  expect(new Set(published).size).toBe(published.length);
});

test('every volume is declared and used, and every file that is mounted exists and cannot be written', () => {
  const files = mounts.filter(({ source }) => source.startsWith('.'));
  expect(files.map(({ source }) => source)).toEqual(['./deploy/make-certificates.sh', './deploy/haproxy.cfg']);
  for (const { source, mode } of files) expect([existsSync(join(root, source)), mode]).toEqual([true, 'ro']);
  const used = mounts.filter(({ source }) => !source.startsWith('.')).map(({ source }) => source);
  expect(Object.keys(volumes).sort()).toEqual([...new Set(used)].sort());
});

test('no two services write to the same volume', () => {
  const written = mounts.filter(({ mode }) => mode !== 'ro').map(({ source }) => source);
  expect(new Set(written).size).toBe(written.length);
});

describe.each(coordinators)('the coordinator %s', (name, service) => {
  test('has settings that exist and that the server takes', () => {
    const known: readonly string[] = settings.map(([setting]) => setting);
    expect(Object.keys(service.environment!).filter((setting) => !known.includes(setting))).toEqual([]);
    const config = readConfig({ ...imageEnvironment, ...service.environment });
    expect(config).toMatchObject({ host: '0.0.0.0', port: 8080, dataDir: '/data' });
    expect(() => readConnectionString(config.eventStore)).not.toThrow();
  });

  test('reaches the stores that it names, which share a network with it and are healthy before', () => {
    const [, hosts] = /\/\/(?:[^@/?]*@)?([^@/?]*)\?/.exec(service.environment!['EVENT_STORE']!)!;
    const waits = (of: string): string[] =>
      Object.keys(services[of]!.depends_on ?? {}).flatMap((other) => [other, ...waits(other)]);
    for (const host of hosts!.split(',')) {
      const [, store] = /^([\w-]+):2113$/.exec(host)!;
      expect(stores.map(([one]) => one)).toContain(store);
      expect(service.networks!.filter((network) => services[store!]!.networks!.includes(network))).toEqual(['store']);
      expect(waits(name)).toContain(store);
    }
  });

  test('can write to its own volume and /tmp, and has no capabilities', () => {
    expect(service).toMatchObject({ build: '.', read_only: true, tmpfs: ['/tmp'], cap_drop: ['ALL'] });
    const writable = mounts.filter((mount) => mount.name === name && mount.mode !== 'ro');
    const own = { name, source: `${name}-data`, target: '/data', mode: undefined };
    const kek = { name, source: `${name}-kek`, target: '/kek', mode: undefined };
    const secret = { name, source: anyText, target: '/proxy-secret', mode: undefined };
    const isOfCluster = service.profiles?.[0] === 'cluster';
    // The first coordinator makes the secret of the auth proxy.
    const makesSecret = ['coordinator', 'coordinator-1'].includes(name);
    expect(writable).toEqual([own, ...(isOfCluster ? [] : [kek]), ...(makesSecret ? [secret] : [])]);
  });

  test('has a key-encryption key that outlives the container, apart from its data, and one for all in a cluster', () => {
    const { kek, kekFile } = readConfig({ ...imageEnvironment, ...service.environment });
    expect(kek).toBeUndefined();
    if (service.profiles?.[0] !== 'cluster') {
      expect([kekFile, service.secrets]).toEqual(['/kek/kek', undefined]);
      return;
    }
    expect([kekFile, service.secrets]).toEqual(['/run/secrets/kek', ['kek']]);
    expect(secrets).toEqual({ kek: { file: './deploy/kek' } });
    expect(read('.gitignore').split('\n')).toContain('deploy/kek');
    expect(read('.dockerignore').split('\n')).toEqual(expect.arrayContaining(['*']));
    expect(read('.dockerignore')).not.toContain('deploy');
  });

  test('has an address from outside that leads to it', () => {
    const { port } = new URL(service.environment!['PUBLIC_URL']!);
    const door = service.ports ? name : 'load-balancer';
    expect(services[door]!.ports).toEqual([`127.0.0.1:${port}:8080`]);
  });

  test('believes X-Forwarded-For only where it cannot be reached past the load balancer', () => {
    expect(service.environment!['TRUST_PROXY'] === 'true').toBe(service.ports === undefined);
  });
});

describe.each(proxies)('the auth proxy %s', (name, service) => {
  const config = () => readConfig({ ...imageEnvironment, ...service.environment });

  test('has settings that exist and that the server takes', () => {
    const known: readonly string[] = settings.map(([setting]) => setting);
    expect(Object.keys(service.environment!).filter((setting) => !known.includes(setting))).toEqual([]);
    expect(config()).toMatchObject({ app: 'proxy', host: '0.0.0.0', port: 8080, trustProxy: false });
  });

  test('finds the API that it waits for, and reaches no store', () => {
    const { hostname } = new URL(config().apiUrl!);
    expect(Object.keys(service.depends_on!)).toEqual([hostname]);
    expect(service.networks).toBeUndefined();
    expect([undefined, ['default', 'store']]).toContainEqual(services[hostname]!.networks);
  });

  test('shares the secret with the coordinators of its profile, and nothing else', () => {
    const served = coordinators.filter(
      ([one, { profiles }]) => profiles?.[0] === service.profiles?.[0] && (!profiles || one !== name),
    );
    expect(served.length).toBeGreaterThan(0);
    const [mount, ...others] = mounts.filter((one) => one.name === name);
    expect([mount!.mode, others]).toEqual(['ro', []]);
    for (const [coordinator, { environment }] of served) {
      const theirs = mounts.find((one) => one.name === coordinator && one.target === '/proxy-secret');
      expect([theirs?.source, theirs?.target]).toEqual([mount!.source, mount!.target]);
      expect(environment!['PROXY_SECRET_FILE']).toBe(config().proxySecretFile);
      expect(environment!['APP']).toBe('api');
      expect(environment!['AUTH_PROXY_URL']).toBe(config().publicUrl);
    }
    expect(config().proxySecretFile!.startsWith(`${mount!.target}/`)).toBe(true);
  });

  test('can write nothing, has no capabilities, and an address from outside that leads to it', () => {
    expect(service).toMatchObject({ read_only: true, tmpfs: ['/tmp'], cap_drop: ['ALL'] });
    expect(service.ports).toEqual([`127.0.0.1:${new URL(config().publicUrl!).port}:8080`]);
  });
});

describe.each(stores)('the store %s', (name, { image, environment, healthcheck, networks: of, volumes: mounted }) => {
  const prefix = image.startsWith('kurrent') ? 'KURRENTDB_' : 'EVENTSTORE_';

  test('is in the network that has no way out, and keeps its data', () => {
    expect(of).toEqual(['store']);
    expect(networks['store']).toEqual({ internal: true });
    expect(mounted).toContain(`${name}-data:/var/lib/${prefix === 'KURRENTDB_' ? 'kurrentdb' : 'eventstore'}`);
  });

  test('has settings of its own line, runs no projections, and is asked whether it is alive', () => {
    expect(Object.keys(environment!).filter((setting) => !setting.startsWith(prefix))).toEqual([]);
    expect(environment![`${prefix}RUN_PROJECTIONS`]).toBe('None');
    expect(healthcheck!.test.join(' ')).toContain('localhost:2113/health/live');
  });

  test('is insecure alone, or one of three over TLS with a password of its own', () => {
    const isAlone = environment![`${prefix}CLUSTER_SIZE`] === '1';
    expect(environment![`${prefix}INSECURE`]).toBe(isAlone ? 'true' : undefined);
    if (isAlone) return;
    const others = stores.map(([one]) => one).filter((one) => /^eventstoredb-\d$/.test(one) && one !== name);
    expect(environment).toMatchObject({
      EVENTSTORE_CLUSTER_SIZE: '3',
      EVENTSTORE_GOSSIP_SEED: others.map((one) => `${one}:2113`).join(),
      EVENTSTORE_NODE_HOST_ADVERTISE_AS: name,
      EVENTSTORE_REPLICATION_HOST_ADVERTISE_AS: name,
      EVENTSTORE_CERTIFICATE_FILE: `/certificates/${name}/node.crt`,
      EVENTSTORE_CERTIFICATE_PRIVATE_KEY_FILE: `/certificates/${name}/node.key`,
      EVENTSTORE_DEFAULT_ADMIN_PASSWORD: password,
      EVENTSTORE_DEFAULT_OPS_PASSWORD: password,
    });
    expect(services['certificates']!.command).toContain(name);
    expect(mounted).toEqual(expect.arrayContaining(['certificates:/certificates:ro']));
  });
});

test('without a variable everything can still be read, and no default password stands in', () => {
  const bare = readCompose();
  expect(bare.services['eventstoredb-1']!.environment!['EVENTSTORE_DEFAULT_ADMIN_PASSWORD']).toBe('');
  expect(() => readConnectionString(bare.services['coordinator-1']!.environment!['EVENT_STORE']!)).toThrow(
    'not `user:password`',
  );
  expect(read('docker-compose.yml')).not.toMatch(/\$\{\w+:?\?/);
  const variables = new Set([...read('docker-compose.yml').matchAll(/\$\{(\w+)/g)].map(([, variable]) => variable));
  expect(read('deploy/env.example').match(/^\w+(?==)/gm)).toEqual([...variables]);
});

describe('the load balancer', () => {
  const lines = read('deploy/haproxy.cfg')
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim());

  test('leads to every coordinator of the cluster, as long as it is ready', () => {
    const cluster = coordinators.filter(([, { profiles }]) => profiles?.includes('cluster')).map(([name]) => name);
    expect(cluster).toHaveLength(2);
    expect(lines.filter((line) => line.startsWith('server '))).toEqual(
      cluster.map((name) => `server ${name} ${name}:8080`),
    );
    expect(lines).toContain('option httpchk GET /health/ready');
    expect(services['load-balancer']!.networks).toBeUndefined();
    for (const name of cluster) expect(services[name]!.networks).toContain('default');
  });

  test('lets through what has a stamp, and says itself where the caller is', () => {
    expect(lines).toContain('http-request return status 404 unless { path_beg /public/ /.well-known/ }');
    expect(lines.filter((line) => line === 'http-request set-header X-Forwarded-For %[src]')).toHaveLength(2);
    expect(lines.join('\n')).not.toContain('forwardfor');
  });

  test('is made of sections that there are once, with a backend that exists for every frontend', () => {
    const text = read('deploy/haproxy.cfg');
    const sections = [...text.matchAll(/^(global|defaults|(?:resolvers|frontend|backend) \w+)$/gm)].map(
      ([section]) => section,
    );
    expect(sections).toEqual([
      'global',
      'defaults',
      'resolvers docker',
      'frontend api',
      'frontend inside',
      'backend coordinators',
    ]);
    // Whatever is neither the beginning of a section nor a comment stands in one.
    expect(text.match(/^(?!#|  |global|defaults|resolvers |frontend |backend ).+$/gm)).toBeNull();
    expect(lines.filter((line) => line.startsWith('default_'))).toEqual([
      'default_backend coordinators',
      'default_backend coordinators',
    ]);
  });

  test('has a door for the auth proxy, which is not published', () => {
    expect(lines.filter((line) => line.startsWith('bind'))).toEqual(['bind :8080', 'bind :8081']);
    expect(services['cluster-auth-proxy']!.environment!['API_URL']).toBe('http://load-balancer:8081');
    expect(services['load-balancer']!.ports!.filter((port) => port.endsWith(':8081'))).toEqual([]);
  });

  test('is asked at the address that it answers itself', () => {
    const [, path] = /^monitor-uri (\S+)$/m.exec(lines.join('\n'))!;
    expect(services['load-balancer']!.healthcheck!.test.at(-1)).toBe(`http://127.0.0.1:8080${path}`);
    expect(read('deploy/haproxy.cfg').endsWith('\n')).toBe(true);
  });
});
