import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { CliCommand } from '../../src/cli/command.js';
import { Terminal } from '../../src/cli/terminal.js';
import { commandTree } from '../../src/cli/tree.js';
import { TypingUser } from '../cli/typed.js';
import { apiKeyPairFromPrivate, StampingClient } from '../../src/testing/index.js';
import { countersign, Installation, stop } from '../e2e/installation.js';
import { until } from '../e2e/until.js';

/*
 * What the help and the guide of the command line show works as it is written, on a real server.
 */

const patience = 300_000;

let installation: Installation;
let user: TypingUser;

beforeEach(async () => {
  installation = await Installation.make();
  user = await TypingUser.sitDown();
  await mkdir(user.path('data'), { mode: 0o700 });
});

afterEach(async () => {
  await user.leaves();
  await installation.remove();
});

function* leavesOf(command: CliCommand): Generator<CliCommand> {
  if (command.commands.length === 0) yield command;
  for (const one of command.commands) if (one instanceof CliCommand) yield* leavesOf(one);
}

const leaves = (): readonly CliCommand[] => [...leavesOf(commandTree(Terminal.ofProcess()))];

type Variables = Readonly<Record<string, string>>;

/** The words of a command line, as a shell has them: with quotes, and with variables outside of single ones. */
function wordsOf(line: string, variables: Variables): readonly string[] {
  const words = line.match(/(?:[^\s"']|"[^"]*"|'[^']*')+/g) ?? [];
  const textOf = (part: string): string => {
    if (part.startsWith("'")) return part.slice(1, -1);
    return part
      .replace(/^"|"$/g, '')
      .replace(/\$(\w+)/g, (_whole, name: string) => variables[name] ?? fail(name, line));
  };
  return words.slice(1).map((word) => (word.match(/[^"']+|"[^"]*"|'[^']*'/g) ?? []).map(textOf).join(''));
}

function fail(name: string, line: string): never {
  throw new Error(`\`${line}\` speaks of $${name}, which no test fills in`);
}

test('every command has an example', () => {
  expect(
    leaves()
      .filter(({ examples }) => examples.length === 0)
      .map(({ fullName }) => fullName),
  ).toEqual([]);
});

test('every command takes --json', () => {
  const takesJson = ({ options }: CliCommand): boolean => options.some(({ long }) => long === '--json');
  expect(leaves().filter((one) => !takesJson(one))).toEqual([]);
});

test(
  'every example of the help works as it is written',
  async () => {
    const settings = { DATA_DIR: user.path('data'), ALLOW_PRIVATE_NETWORK: 'true', LOG_LEVEL: 'error' };
    const server = await installation.start(settings);
    const root = JSON.parse(await readFile(user.path('data', 'root.json'), 'utf8')) as Record<string, string>;
    const place = ['--address', server.url, '--organization', root['organizationId']!];
    // Somebody has worked here before.
    for (const name of ['main', 'laptop']) await user.json(['login', '--profile', name, '--data-dir', 'data']);
    for (const name of ['asker', 'bob', 'Ann', 'Ben']) {
      const { publicKey } = await user.json<{ publicKey: string }>(['login', '--profile', name, '--new-key', ...place]);
      await user.json(['users', 'create', name, '--public-key', publicKey]);
    }
    for (const name of ['Carol', 'Tom', 'Tina', 'Theo', 'Otto']) await user.json(['users', 'create', name]);
    const onTags = ['--condition', "activity.kind == 'CREATE_USER_TAG'", '--consensus', 'approvers.count() >= 2'];
    await user.json(['policies', 'create', 'an old rule', ...onTags]);
    const { activity: scratch } = await user.json<Submitted>(['wallets', 'create', 'Scratch']);
    const url = 'http://127.0.0.1:9/nobody';
    const { activity: hook } = await user.json<Submitted>([
      ...['submit', 'create_webhook_endpoint', '--set', `url=${url}`, '--set', 'name=x'],
    ]);
    const ask = async (name: string): Promise<Submitted['activity']> => {
      const tag = ['submit', 'create_user_tag', '--set', `userTagName=${name}`];
      const said = await user.types([...tag, '--profile', 'asker', '--json']);
      expect(said).toMatchObject({ code: 4, error: '' });
      return (JSON.parse(said.out) as Submitted).activity;
    };
    const [first, second, third] = [await ask('first'), await ask('second'), await ask('third')];
    const denied = await user.types(['wallets', 'create', 'Not hers', '--profile', 'asker']);
    const condition = "activity.kind == 'CREATE_WALLET'";
    const fromFile = { policyName: 'from a file', effect: 'EFFECT_ALLOW', condition };
    await writeFile(user.path('policy.json'), JSON.stringify(fromFile));
    await cp(new URL('../../examples/policies', import.meta.url), user.path('examples/policies'), { recursive: true });
    await writeProofs();
    const userTagName = 'what if';
    const wanted = { type: 'ACTIVITY_TYPE_CREATE_USER_TAG', parameters: { userTagName, userIds: [] } };
    const draft = { policies: [{ policyName: 'a draft', effect: 'EFFECT_DENY', consensus: 'approvers.count() == 0' }] };
    await writeFile(user.path('draft.json'), JSON.stringify(draft));
    await writeFile(user.path('request.json'), JSON.stringify({ userId: root['userId'], ...wanted }));
    const newcomer = await user.json<{ publicKey: string }>(['login', '--profile', 'newcomer', '--new-key']);
    const variables: Variables = {
      API: server.url,
      ORGANIZATION: root['organizationId']!,
      PUBLIC_KEY: newcomer.publicKey,
      FINGERPRINT: first.fingerprint,
      ACTIVITY: second.id,
      DENIAL: /activities explain (\S+)/.exec(denied.error)![1]!,
      ADDRESS: resultOf<{ addresses: string[] }>(scratch).addresses[0]!,
      ENDPOINT: resultOf<{ endpointId: string }>(hook).endpointId,
    };

    const failed: object[] = [];
    const expectDone = ({ line, code, out, error }: Ended & { readonly line: string }): void => {
      // What it finds in the policies that are here is no failure of the example.
      const isFinding = line.includes('policies lint') && code === 1;
      // The clock was right.
      const isNoMend = line.includes('clock mend') && code === 1 && error.includes('there is nothing to mend');
      if (code !== 0 && !isFinding && !isNoMend) failed.push({ line, code, out, error });
    };
    const needsTheStore = (command: CliCommand): boolean =>
      /^countersign (?:clock|kek|webhooks|start)/.test(command.fullName);
    // The analysis with what it says, by policy-analysis.spec.ts; the tour below.
    const isRunElsewhere = ({ fullName }: CliCommand): boolean =>
      /^countersign (?:policies analyze|tour)$/.test(fullName);
    const run = async (command: CliCommand): Promise<void> => {
      if (isRunElsewhere(command)) return;
      for (const { line } of command.examples) {
        // Who could approve is asked of one that still waits.
        const isOfWaiting = command.fullName === 'countersign activities approvers';
        const words = wordsOf(line, isOfWaiting ? { ...variables, ACTIVITY: third.id } : variables);
        // It writes as a process does.
        const isProcess = command.fullName === 'countersign start';
        const asked = line.includes('clock mend') ? { reply: () => 'y' } : {};
        expectDone({ line, ...(isProcess ? await asProcess(words) : await user.types(words, asked)) });
      }
    };
    // By then there is a wallet that the folder names; after it, the root user is no member of the root quorum any more.
    const isLast = ({ fullName }: CliCommand): boolean => /^countersign policies (?:plan|apply)$/.test(fullName);
    for (const command of leaves().filter((one) => !needsTheStore(one) && !isLast(one))) await run(command);
    for (const command of leaves().filter(isLast)) await run(command);
    await stop(server);
    for (const command of leaves().filter(needsTheStore)) await run(command);
    expect(failed).toEqual([]);

    async function writeProofs(): Promise<void> {
      const withProofs = JSON.stringify({ walletName: 'proved', accounts: [] });
      await writeFile(user.path('wallet.json'), withProofs);
      const client = await clientOf(root, server.url);
      const { appProofs } = await client.submit('ACTIVITY_TYPE_CREATE_WALLET', JSON.parse(withProofs) as object, {
        generateAppProofs: true,
      });
      const { bootProof } = await client.query<{ bootProof: object }>('get_boot_proof', {
        ephemeralKey: (appProofs as unknown as [{ publicKey: string }])[0].publicKey,
      });
      await writeFile(user.path('boot.json'), JSON.stringify({ bootProof }));
      await writeFile(user.path('app.json'), JSON.stringify({ appProofs }));
      const response = await fetch(`${server.url}/public/v1/discovery/attestation-root.pem`);
      await writeFile(user.path('root.pem'), await response.text());
    }
  },
  patience,
);

test(
  'the guide goes from an empty folder to a signature that two people have approved',
  async () => {
    const guide = await readFile(new URL('../../docs/how-to/use-the-command-line.md', import.meta.url), 'utf8');
    const commands = [...guide.matchAll(/^```sh\n([^]*?)^```$/gm)].flatMap(([, block]) => block!.trim().split('\n'));
    const [start, ...rest] = commands;
    expect(start).toBe('countersign start');
    const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
    const ofReadme = [...readme.matchAll(/^countersign .+$/gm)].map(([line]) => line);
    expect(ofReadme.length).toBeGreaterThan(5);
    // Those of the README are the same, in the same order.
    expect(commands.filter((line) => ofReadme.includes(line))).toEqual(ofReadme);
    const server = await installation.start({ DATA_DIR: user.path('data') });
    const variables: Record<string, string> = {};
    const said: string[] = [];
    for (const line of rest) {
      const { code, out, error } = await inShell(line, variables);
      if (line.includes('Savings')) {
        expect({ code, error }).toEqual({
          code: 3,
          error: expect.stringContaining('sufficient permissions') as string,
        });
        continue;
      }
      expect({ line, code, error }).toEqual({ line, code: line.includes('wallets sign') ? 4 : 0, error: '' });
      said.push(out);
      // What the reader copies from one command to the next.
      if (line.includes('--waiting-for-me')) variables['ACTIVITY'] = /^([0-9a-f-]{36}) /m.exec(out)![1]!;
      if (line.includes('activities show')) variables['FINGERPRINT'] = /sha256:[0-9a-f]{64}/.exec(out)![0];
    }
    for (const [, shown] of guide.replace(/^```sh\n[^]*?^```$/gm, '').matchAll(/^```\n([^]*?)^```$/gm)) {
      const pattern = shown!
        .trim()
        .split('…')
        .map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
        .join('[^]*?');
      expect(said.join('')).toMatch(new RegExp(pattern));
    }
    await stop(server);
  },
  patience,
);

test(
  'the page on production goes from the root key to a quorum of two, and to a restored backup',
  async () => {
    const page = await readFile(new URL('../../docs/how-to/go-to-production.md', import.meta.url), 'utf8');
    const lines = [...page.matchAll(/^```sh\n([^]*?)^```$/gm)].flatMap(([, block]) => block!.trim().split('\n'));
    const variables: Record<string, string> = {};
    const id = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/;
    let server: Started | undefined;
    const startedBy = async (line: string): Promise<Started> => {
      const [, settings = '', args = ''] = /^((?:\w+=\S+ )*)countersign (start.*)$/.exec(line)!;
      const given = Object.fromEntries(settings.split(' ').map((one) => one.split('='))) as Record<string, string>;
      return serverAsTyped({ ...given, PORT: server?.port ?? '0' }, args.split(' '));
    };
    await rm(user.path('data'), { recursive: true });
    try {
      for (const line of lines) {
        if (line.includes('countersign start')) {
          const isDrill = line.includes('RESTORED');
          if (!isDrill) await server?.stop();
          const started = await startedBy(line);
          if (isDrill) await started.stop();
          else server = started;
          continue;
        }
        // What reads .env, or needs a shell, is a process of its own.
        const needsProcess = !line.startsWith('countersign ') || /\$\(|countersign (?:doctor|verify)/.test(line);
        const { code, out, error } = needsProcess
          ? await inShell(line, variables)
          : await user.types(wordsOf(line, variables));
        expect({ line, code, out, error }).toEqual({
          line,
          code: line.includes('users delete') ? 4 : 0,
          out,
          error: '',
        });
        // What the reader copies from one command to the next.
        if (line === 'countersign users')
          for (const name of ['Alice', 'Bob', 'Carol']) {
            variables[name.toUpperCase()] = id.exec(out.split('\n').find((row) => row.includes(name))!)![0];
          }
        if (line.includes('create_user_tag')) variables['TREASURERS'] = id.exec(/userTagId +(\S+)/.exec(out)![1]!)![0];
        if (line.includes('wallets create')) variables['WALLET'] = id.exec(out)![0];
        if (line.includes('--waiting-for-me')) variables['ACTIVITY'] = id.exec(out)![0];
        if (line.includes('activities show')) variables['FINGERPRINT'] = /sha256:[0-9a-f]{64}/.exec(out)![0];
      }
      // The root user is gone, one member alone decides nothing, and two treasurers can sign.
      const users = await user.json<{ users: readonly { readonly userName: string }[] }>(['users', 'list']);
      expect(users.users.map(({ userName }) => userName).sort()).toEqual(['Alice', 'Auth proxy', 'Bob', 'Carol']);
      const alone = ['policies', 'create', 'everything', '--profile', 'carol'];
      expect(await user.types(alone)).toMatchObject({ code: 4 });
      const accounts = ['wallets', 'accounts', 'Treasury'];
      const [account] = (await user.json<{ accounts: [{ address: string }] }>(accounts)).accounts;
      expect(await user.types(['wallets', 'sign', account.address, '--message', 'pay'])).toMatchObject({ code: 4 });
    } finally {
      await server?.stop();
    }
  },
  patience,
);

test(
  'start passes signals on, and its coordinator ends with it',
  async () => {
    const settings = { DATA_DIR: user.path('data') };
    const first = installation.run(countersign, settings, ['start']);
    await until('it is up', () => Promise.resolve(first.stdout().includes('API ')));
    expect(first.stdout()).toContain('countersign tour --data-dir');
    first.child.kill('SIGTERM');
    expect(await first.exit).toEqual({ code: 0, signal: null });
    const second = installation.run(countersign, settings, ['start']);
    await until('it is up again', () => Promise.resolve(second.stdout().includes('API ')));
    second.child.kill('SIGKILL');
    expect(await second.exit).toEqual({ code: null, signal: 'SIGKILL' });
    // The folder is free again when the coordinator has ended as well.
    const verified = await user.types(['kek', 'rotate', '--data-dir', 'data', '--yes']);
    expect(verified).toMatchObject({ code: 0, error: '' });
    const third = installation.run(countersign, settings, ['start', '--json']);
    await until('it says so to a program', () => third.stdout().endsWith('\n'));
    const { apiUrl, ...told } = JSON.parse(third.stdout()) as { readonly apiUrl: string };
    expect(told).toMatchObject({ dataDir: user.path('data'), isNew: false });
    expect((await fetch(`${apiUrl}/health/ready`)).status).toBe(200);
    const toured = await user.json<{ chapters: { lines: string[] }[] }>(['tour', '--data-dir', 'data']);
    expect(toured.chapters.length).toBeGreaterThan(15);
    expect(toured.chapters.flatMap(({ lines }) => lines)).toEqual(
      expect.arrayContaining([
        'it passes with any 1 of all users',
        'it would be denied',
        'Newly allowed (1):',
        expect.stringMatching(/^OK: /),
      ]),
    );
    third.child.kill('SIGTERM');
    expect(await third.exit).toEqual({ code: 0, signal: null });
    const bad = installation.run(countersign, { ...settings, PORT: 'eighty' }, ['start']);
    expect({ ...(await bad.exit), error: bad.stderr() }).toEqual({
      code: 2,
      signal: null,
      error: 'error: PORT=eighty: must be from 0 to 65535\n',
    });
  },
  patience,
);

test(
  'in a real bash, commands, options, activities and files are completed, and a reader that ends early is no error',
  async () => {
    const complete = async (line: string): Promise<readonly string[]> => {
      const words = line.split(' ');
      const { out } = await inShell(
        `source <(countersign completion bash); COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); ` +
          `COMP_CWORD=${words.length - 1}; compopt() { :; }; _countersign; printf '%s\\n' "\${COMPREPLY[@]}"`,
        {},
      );
      return out.trim().split('\n');
    };
    await writeFile(user.path('policy.json'), '{}');
    expect(await complete('countersign ver')).toEqual(['verify']);
    expect(await complete('countersign users ')).toEqual(
      expect.arrayContaining(['list', 'create', 'delete', '--json']),
    );
    expect(await complete('countersign users create --pub')).toEqual(['--public-key']);
    expect(await complete('countersign submit create_pol')).toEqual(['create_policies', 'create_policy']);
    expect(await complete('countersign submit --profile me create_pol')).toEqual(['create_policies', 'create_policy']);
    expect(await complete('countersign submit create_policy create_pol')).toEqual(['']);
    expect(await complete('countersign submit create_policy --fi')).toEqual(['--file']);
    expect(await complete('countersign submit create_policy --file pol')).toEqual(['policy.json']);
    expect(await inShell('countersign completion bash | head -1; countersign --help | true', {})).toMatchObject({
      code: 0,
      error: '',
    });
  },
  patience,
);

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly error: string;
}

interface Submitted {
  readonly activity: {
    readonly id: string;
    readonly fingerprint: string;
    readonly result: Readonly<Record<string, object>>;
  };
}

function resultOf<Result>({ result }: Submitted['activity']): Result {
  return Object.values(result)[0] as Result;
}

async function clientOf(root: Readonly<Record<string, string>>, url: string): Promise<StampingClient> {
  return new StampingClient(url, root['organizationId']!, apiKeyPairFromPrivate(root['apiPrivateKey']!));
}

/** A command that goes on until it is told to stop is told so when it is up. */
async function asProcess(words: readonly string[]): Promise<Ended> {
  const env = { PATH: process.env['PATH'], HOME: user.folder, LOG_LEVEL: 'error' };
  const child = spawn(process.execPath, [countersign, ...words], { cwd: user.folder, env });
  let [out, error] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
    if (/^ {2}API {2}/m.test(text)) child.kill('SIGTERM');
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (error += text));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, out, error };
}

/** A line in a real bash, where `countersign` is the command of this build. */
interface Started {
  readonly port: string;
  stop(): Promise<void>;
}

/** `countersign start` in the folder of the user, as typed; its settings are in .env there. */
async function serverAsTyped(settings: Variables, args: readonly string[]): Promise<Started> {
  const env = { PATH: process.env['PATH'], HOME: user.folder, LOG_LEVEL: 'error', ...settings };
  const child = spawn(process.execPath, [countersign, ...args], { cwd: user.folder, env, stdio: 'pipe' });
  let said = '';
  for (const output of [child.stdout, child.stderr])
    output.setEncoding('utf8').on('data', (text: string) => (said += text));
  const gone = once(child, 'close');
  await until('it is up', () => {
    if (child.exitCode !== null) throw new Error(`it has ended: ${said}`);
    return / API .*\n/.test(said);
  });
  return {
    port: / API +http:\S+:(\d+)/.exec(said)![1]!,
    async stop() {
      child.kill('SIGTERM');
      expect(await gone).toEqual([0, null]);
    },
  };
}

const libsql = createRequire(import.meta.url).resolve('libsql');
const sqlite3 = `sqlite3() { '${process.execPath}' -e 'new (require("${libsql}"))(process.argv[1]).exec(process.argv[2])' "$@"; }`;

const openssl = `command -v openssl >/dev/null || openssl() { '${process.execPath}' -p 'crypto.randomBytes(32).toString("hex")'; }`;

/** Bash with `countersign` in it, and with programs that are not everywhere. */
async function inShell(line: string, variables: Variables): Promise<Ended> {
  const env = { PATH: process.env['PATH'], HOME: user.folder, ...variables };
  const whole = `set -o pipefail; countersign() { '${process.execPath}' '${countersign}' "$@"; }; ${sqlite3}; ${openssl}; ${line}`;
  return new Promise((resolve) => {
    execFile('bash', ['-c', whole], { cwd: user.folder, env, timeout: 60_000 }, (failure, out, error) => {
      resolve({ code: failure ? Number(failure.code ?? -1) : 0, out, error });
    });
  });
}
