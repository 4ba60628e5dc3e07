import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { send } from '../../client/stamping-client.js';
import { environment } from '../../config/environment.js';
import { apiKeyPairFromPrivate, generateApiKeyPair, type ApiKeyPair } from '../../stamps/sign.js';
import { BadUsage } from '../bad-usage.js';
import { clientOf } from '../callers.js';
import { clientSignature } from '../client-signature.js';
import type { CliCommand, Outcome } from '../command.js';
import { explained } from '../explain.js';
import { exitCodes } from '../exit-codes.js';
import { unreadable } from '../input-files.js';
import { printable } from '../layout.js';
import { Profiles, type Profile } from '../profiles.js';
import type { Terminal } from '../terminal.js';

interface LoginOptions {
  readonly profile?: string;
  readonly address?: string;
  readonly organization?: string;
  readonly dataDir?: string;
  readonly keyFile?: string;
  readonly keepKey?: boolean;
  readonly newKey?: boolean;
  readonly email?: string;
  readonly authProxyConfig?: string;
  readonly authProxy?: string;
  readonly yes?: boolean;
}

/** `countersign login`. */
export function mountLogin(parent: CliCommand): void {
  parent
    .command('login')
    .summary('create a profile: who you are, and at which coordinator')
    .description(
      'Creates a key for this machine, registers it at a coordinator, and keeps both in a profile that only you can read. ' +
        'To prove who you are, use a key that the coordinator knows: the root key of a coordinator on this machine ' +
        '(--data-dir), or an API key in a file (--key-file); its private key is not kept. With --new-key, you get a public ' +
        'key for somebody else to register; with --email, you get a code by e-mail and a session key.',
    )
    .option('--profile <name>', 'name of the profile', 'default')
    .option(
      '--address <url>',
      'URL of the coordinator, such as https://countersign.example.com; default: that of the current profile',
    )
    .option('--organization <id>', 'your organization; default: that of the current profile')
    .option(
      '--data-dir <folder>',
      'log in with root.json in this folder; default, if no other way is chosen: DATA_DIR or ./data',
    )
    .option(
      '--key-file <file>',
      'log in with an API key: 64 hex digits, or JSON such as root.json; - reads standard input',
    )
    .option('--keep-key', 'keep the key from --key-file or root.json itself, and register no new one')
    .option('--new-key', 'do not log in: create a key, and print its public key for somebody to register')
    .option(
      '--email <address>',
      'log in with a code sent by e-mail, through the auth proxy; the key lasts as long as the session',
    )
    .option('--auth-proxy-config <id>', 'id of the auth proxy configuration, for --email')
    .option('--auth-proxy <url>', 'URL of the auth proxy, for --email; default: that of --address')
    .option('--yes', 'replace an existing profile without asking')
    .example('countersign login --data-dir ./data', 'Log in as the root user of a coordinator on this machine')
    .example(
      'countersign login --profile alice --new-key --address "$API" --organization "$ORGANIZATION"',
      'Create a key as a new user; give the public key to somebody who may create users',
    )
    .answers((options: LoginOptions) => login(parent.terminal, options));
}

async function login(terminal: Terminal, options: LoginOptions): Promise<Outcome> {
  const { profile: name = 'default', newKey, email, keyFile, dataDir } = options;
  const ways = [newKey && '--new-key', email && '--email', keyFile && '--key-file', dataDir && '--data-dir'];
  const chosen = ways.filter((way) => way !== undefined && way !== false);
  if (chosen.length > 1) throw new BadUsage(`${chosen.join(' and ')}: choose one way to log in`);
  const profiles = Profiles.of(terminal);
  const question = `Replace the profile \`${name}\`, and the key in it?`;
  if ((await profiles.has(name)) && !options.yes && !(await terminal.confirm(question))) {
    return { text: 'Nothing was changed.\n', json: { profile: name, loggedIn: false } };
  }
  const before = await profiles.read(await profiles.current()).catch(() => undefined);
  const outcome = newKey
    ? awaitingRegistration(options, before)
    : email
      ? await byEmail(terminal, email, options, before)
      : await byKey(terminal, options);
  try {
    await profiles.write(name, outcome.profile);
  } catch (cause) {
    const undone = await outcome.undo?.();
    throw new Error(
      `${profiles.fileOf(name)} cannot be written (${String((cause as NodeJS.ErrnoException).code ?? cause)}): make room, or allow this ` +
        `user to write there, and log in again${undone === undefined ? '' : `; ${undone}`}`,
      { cause },
    );
  }
  // Nobody knows a new key yet: a profile that already works stays current.
  const isUsed = !newKey || before === undefined;
  if (isUsed) await profiles.use(name);
  const { address, organizationId, apiKeyId, userId, key } = outcome.profile;
  const file = profiles.fileOf(name);
  return {
    text: `${outcome.text}\nProfile \`${name}\` is in ${file}; ${isUsed ? 'commands now use it' : `use it with --profile ${name}`}.\n`,
    json: { profile: name, file, address, organizationId, userId, apiKeyId, publicKey: key.publicKey, ...outcome.json },
    exitCode: outcome.waits ? exitCodes.waiting : exitCodes.done,
  };
}

interface LoggedIn {
  readonly profile: Profile;
  readonly text: string;
  readonly json?: object;
  readonly waits?: boolean;
  /** Takes back what the coordinator has recorded for the profile, and says what has become of it. */
  readonly undo?: () => Promise<string>;
}

const newKeyPair = (): ApiKeyPair => generateApiKeyPair((count) => randomBytes(count));

function awaitingRegistration(options: LoginOptions, before: Profile | undefined): LoggedIn {
  const profile = { ...placeOf(options, foundIn(before)), key: newKeyPair() };
  return {
    profile,
    text:
      `Your public key is\n\n  ${profile.key.publicKey}\n\nIt is not registered yet. Somebody who may create users can register it with\n\n` +
      `  countersign users create <your name> --public-key ${profile.key.publicKey}\n`,
    json: { registered: false },
  };
}

/** Address and organization of the current profile. */
const foundIn = (before: Profile | undefined) =>
  before === undefined ? {} : { apiUrl: before.address, organizationId: before.organizationId };

/** Address and organization: as given, otherwise from the key file or the current profile. */
function placeOf(
  { address, organization }: LoginOptions,
  found: { readonly apiUrl?: string; readonly organizationId?: string },
): Pick<Profile, 'address' | 'organizationId'> {
  const where = address ?? found.apiUrl;
  const organizationId = organization ?? found.organizationId;
  if (where === undefined) {
    throw new BadUsage(
      'the coordinator is not known yet: add --address, its URL, such as http://127.0.0.1:8080 (`countersign start` prints it), and ' +
        '--organization',
    );
  }
  if (organizationId === undefined) {
    throw new BadUsage(
      'the organization is not known yet: add --organization, its id (`organizationId` in root.json; `countersign whoami` prints it to ' +
        'a colleague who is logged in)',
    );
  }
  if (!URL.canParse(where) || !/^https?:$/.test(new URL(where).protocol)) {
    throw new BadUsage(`--address ${where}: must be a URL such as https://countersign.example.com`);
  }
  const { origin, pathname } = new URL(where);
  return { address: `${origin}${pathname.replace(/\/+$/, '')}`, organizationId };
}

async function byKey(terminal: Terminal, options: LoginOptions): Promise<LoggedIn> {
  const { key: input, ...found } = await givenKey(terminal, options);
  const place = placeOf(options, found);
  const known = clientOf({ ...place, key: input });
  const { userId, username, organizationName } = await known.query<Readonly<Record<string, string>>>('whoami');
  const hello = `Logged in to ${place.address} as ${printable(`${username} of ${organizationName}`)}.`;
  if (options.keepKey) return { profile: { ...place, key: input, userId: userId! }, text: hello, json: { username } };
  const key = newKeyPair();
  const { id, status, fingerprint, result } = await known.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
    userId: userId!,
    apiKeys: [
      { apiKeyName: `Command line on ${hostname()}`, publicKey: key.publicKey, curveType: 'API_KEY_CURVE_P256' },
    ],
  });
  if (status !== 'ACTIVITY_STATUS_COMPLETED' && status !== 'ACTIVITY_STATUS_CONSENSUS_NEEDED') {
    throw new Error(`the new key was not registered: activity ${id} is ${status}`);
  }
  const waits = status === 'ACTIVITY_STATUS_CONSENSUS_NEEDED';
  const [apiKeyId] = (result['createApiKeysResult'] as { readonly apiKeyIds: string[] } | undefined)?.apiKeyIds ?? [];
  return {
    profile: { ...place, key, userId: userId!, ...(apiKeyId ? { apiKeyId } : {}) },
    text: waits
      ? `The new key is waiting for approvals, and cannot be used before. Approve it with\n\n  countersign approve ${fingerprint}\n`
      : `${hello}\nA new API key was registered: ${key.publicKey}`,
    json: { username, registered: !waits, ...(waits ? { activityId: id, fingerprint } : {}) },
    waits,
    async undo() {
      if (apiKeyId === undefined)
        return `the key that was to be registered waits for approvals, and nobody has it: countersign reject ${fingerprint}`;
      try {
        await known.perform('ACTIVITY_TYPE_DELETE_API_KEYS', { userId: userId!, apiKeyIds: [apiKeyId] });
        return 'the key that was registered for it is deleted again';
      } catch (error) {
        return `the key ${key.publicKey} stays registered, and nobody has it, as deleting it failed: ${explained(error).message}`;
      }
    },
  };
}

interface GivenKey {
  readonly key: ApiKeyPair;
  readonly apiUrl?: string;
  readonly organizationId?: string;
}

async function givenKey(terminal: Terminal, { keyFile, dataDir }: LoginOptions): Promise<GivenKey> {
  if (keyFile === '-') return keyIn(await terminal.input(), 'standard input');
  const folder = dataDir ?? environment(terminal.env)['DATA_DIR'] ?? './data';
  const file = terminal.path(keyFile ?? join(folder, 'root.json'));
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    if (keyFile !== undefined || dataDir !== undefined) throw unreadable(file, cause);
    return undefined;
  });
  if (text !== undefined) return keyIn(text, file);
  throw new BadUsage(
    `${file} is not there: start a coordinator here first (countersign start), or say how to log in with --data-dir, --key-file, ` +
      '--new-key or --email (countersign login --help)',
  );
}

/** The text is a secret: no error may quote it. */
function keyIn(text: string, file: string): GivenKey {
  const trimmed = text.trim();
  if (/^[0-9a-f]{64}$/i.test(trimmed)) return { key: apiKeyPairFromPrivate(trimmed) };
  let value: unknown;
  try {
    value = JSON.parse(trimmed);
  } catch {
    value = undefined;
  }
  const { apiPrivateKey, privateKey, apiUrl, organizationId } = (value ?? {}) as Readonly<Record<string, unknown>>;
  const secret = apiPrivateKey ?? privateKey;
  if (typeof secret !== 'string' || !/^[0-9a-f]{64}$/i.test(secret)) {
    throw new BadUsage(
      `${file} contains no P-256 private key: it must be 64 hex digits, or JSON with such an \`apiPrivateKey\` or \`privateKey\``,
    );
  }
  return {
    key: apiKeyPairFromPrivate(secret),
    ...(typeof apiUrl === 'string' ? { apiUrl } : {}),
    ...(typeof organizationId === 'string' ? { organizationId } : {}),
  };
}

/** The key of this machine becomes a session key, like that of a browser. */
async function byEmail(
  terminal: Terminal,
  email: string,
  options: LoginOptions,
  before: Profile | undefined,
): Promise<LoggedIn> {
  // The code determines the sub-organization, if it leads to only one.
  const place = placeOf(options, { ...foundIn(before), organizationId: '' });
  const { authProxy = place.address, authProxyConfig } = options;
  if (authProxyConfig === undefined) throw new BadUsage('add --auth-proxy-config, the id of the configuration');
  const ask = async <Answer>(path: string, body: object): Promise<Answer> => {
    const headers = { 'x-auth-proxy-config-id': authProxyConfig };
    return (await send<Answer>(`${authProxy}/v1/${path}`, JSON.stringify(body), headers, 60_000)).body;
  };
  const key = newKeyPair();
  const { publicKey } = key;
  const { otpId } = await ask<{ otpId: string }>('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact: email });
  const otpCode = await terminal.ask(`Code sent to ${email}:`);
  const { verificationToken } = await ask<{ verificationToken: string }>('otp_verify', { otpId, otpCode, publicKey });
  const { id: tokenId } = claimsOf<{ id: string }>(verificationToken);
  const { session } = await ask<{ session: string }>('otp_login', {
    verificationToken,
    publicKey,
    ...(place.organizationId ? { organizationId: place.organizationId } : {}),
    clientSignature: clientSignature(key, { login: { publicKey }, tokenId, type: 'USAGE_TYPE_LOGIN' }),
  });
  const { exp, organization_id: organizationId } = claimsOf<{ exp: number; organization_id: string }>(session);
  const until = new Date(exp * 1000).toISOString();
  const profile = { ...place, organizationId, key };
  const { userId, username, organizationName } =
    await clientOf(profile).query<Readonly<Record<string, string>>>('whoami');
  return {
    profile: { ...profile, userId: userId! },
    text: `Logged in to ${place.address} as ${printable(`${username} of ${organizationName}`)}, until ${until}.`,
    json: { username, expiresAt: until },
  };
}

/** A token's claims; its issuer has just returned it, so there is no need to verify it here. */
function claimsOf<Claims>(token: string): Claims {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Claims;
}
