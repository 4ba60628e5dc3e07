import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readCompose, root } from './read.js';

const password = 'a-password.of~24_characters';
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'countersign-certificates-'));
  await Promise.all(['bin', 'nodes', 'authority', 'tmp'].map((name) => mkdir(join(folder, name))));
  // Stand-ins for what only the container has: the generator, which notes its words, and the right to give files away.
  await program(
    'es-gencert-cli',
    `echo "$@" >> '${folder}/calls'
     while [ "$1" != -out ]; do [ "$1" = "$FAILS" ] && exit 1; first=\${first:-$1}; dns=\${3:-}; shift; done
     mkdir "$2"
     case $first in
       create-ca) echo "certificate $RANDOM" > "$2/ca.crt"; echo key > "$2/ca.key" ;;
       create-node) echo "$2" > "$2/node.crt"; echo "$2" > "$2/node.key" ;;
     esac`,
  );
  await program('chown', `echo "$@" >> '${folder}/owners'`);
});

afterEach(() => rm(folder, { recursive: true, force: true }));

const program = (name: string, text: string): Promise<void> =>
  writeFile(join(folder, 'bin', name), `#!/usr/bin/env bash\n${text}\n`, { mode: 0o755 });
const at = (...path: string[]): string => join(folder, ...path);
const text = (...path: string[]): string => readFileSync(at(...path), 'utf8');

function make(variables: Readonly<Record<string, string>> = { EVENTSTORE_ADMIN_PASSWORD: password }) {
  const script = join(root, 'deploy/make-certificates.sh');
  const { status, stdout, stderr } = spawnSync('bash', [script, at('nodes'), at('authority'), 'node-1', 'node-2'], {
    env: { PATH: `${at('bin')}:${process.env['PATH']}`, TMPDIR: at('tmp'), ...variables },
    encoding: 'utf8',
    timeout: 5_000,
  });
  return { status, stdout, stderr };
}

test('compose calls it with the folders that it mounts', () => {
  const { entrypoint, command, volumes } = readCompose().services['certificates']!;
  const targets = volumes!.map((mount) => mount.split(':')[1]);
  expect([entrypoint![1], ...command!.slice(0, 2)]).toEqual(targets);
});

test('makes a certificate for each node by its name, keeps the keys closed, and the key of the authority nowhere', () => {
  expect(make()).toMatchObject({ status: 0, stderr: '' });
  expect(text('calls').trim().split('\n')).toEqual([
    'create-ca -out ca',
    ...['node-1', 'node-2'].map(
      (name) =>
        `create-node -ca-certificate ca/ca.crt -ca-key ca/ca.key -out ${name} -ip-addresses 127.0.0.1 -dns-names ${name},localhost`,
    ),
  ]);
  for (const name of ['node-1', 'node-2']) {
    expect(text('nodes', name, 'node.crt')).toBe(`${name}\n`);
    expect(statSync(at('nodes', name, 'node.key')).mode & 0o777).toBe(0o400);
    expect(text('owners')).toContain(`-R 1000:1000 ${at('nodes', name)}\n`);
  }
  expect(readdirSync(at('authority'))).toEqual(['ca.crt']);
  expect(readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('ca.key'))).toEqual(
    [],
  );
});

test('changes nothing on the second start', () => {
  make();
  const before = text('authority', 'ca.crt');
  expect(make()).toEqual({ status: 0, stdout: 'certificates are there already\n', stderr: '' });
  expect(text('authority', 'ca.crt')).toBe(before);
  expect(text('calls').trim().split('\n')).toHaveLength(3);
});

test('an interrupted attempt is repeated from the start', () => {
  expect(make({ EVENTSTORE_ADMIN_PASSWORD: password, FAILS: 'create-node' }).status).toBe(1);
  expect(existsSync(at('authority', 'ca.crt'))).toBe(false);
  expect(make().status).toBe(0);
  expect(existsSync(at('authority', 'ca.crt'))).toBe(true);
});

test.each([
  ['no password', {}],
  ['an empty password', { EVENTSTORE_ADMIN_PASSWORD: '' }],
  ['a short password', { EVENTSTORE_ADMIN_PASSWORD: 'changeit' }],
  ['a password that would not go into a connection string', { EVENTSTORE_ADMIN_PASSWORD: `${password}@` }],
])('refuses %s, without showing it, and creates nothing', (_, variables) => {
  const { status, stdout, stderr } = make(variables);
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(/^EVENTSTORE_ADMIN_PASSWORD must be 16 or more of [^\n]+: set it in deploy\/\.env [^\n]+\n$/);
  expect(stderr).not.toContain(password);
  expect(existsSync(at('calls'))).toBe(false);
});
