import type { ActivityClient } from '../../client/activity-client.js';
import type { AddressFormat } from '../../domain/key-formats.js';
import { personalMessagePrefix } from '../../stamps/eip191.js';
import { BadUsage } from '../bad-usage.js';
import { profileClient, withProfile, type ProfileOptions } from '../callers.js';
import type { CliCommand, Outcome } from '../command.js';
import { table } from '../layout.js';
import { idsOf, wholeList } from '../list-pages.js';
import type { Terminal } from '../terminal.js';

interface Wallet {
  readonly walletId: string;
  readonly walletName: string;
  readonly exported: boolean;
  readonly imported: boolean;
}

interface Account {
  readonly walletAccountId: string;
  readonly walletId: string;
  readonly address: string;
  readonly addressFormat: string;
  readonly path: string;
}

interface CreateOptions extends ProfileOptions {
  readonly account: readonly string[];
}

interface DeleteOptions extends ProfileOptions {
  readonly yes?: boolean;
  readonly withoutExport?: boolean;
}

interface SignOptions extends ProfileOptions {
  readonly wallet?: string;
  readonly message?: string;
  readonly transaction?: string;
  readonly chain: string;
  readonly hash?: string;
}

/** `countersign wallets` and its subcommands. */
export function mountWallets(wallets: CliCommand): void {
  const { terminal } = wallets;
  withProfile(wallets.command('list', { isDefault: true }))
    .summary('list the wallets of the organization')
    .description('Lists the wallets of the organization.')
    .example('countersign wallets', 'List the wallets')
    .answers((options: ProfileOptions) => list(terminal, options));

  withProfile(wallets.command('create'))
    .argument('<name>', 'name of the wallet')
    .summary('create a wallet')
    .description(
      'Creates a wallet from fresh entropy, with an account for each address format at the default path of its chain.',
    )
    .option(
      '--account <formats...>',
      'address formats such as ethereum, solana or bitcoin_mainnet_p2wpkh (docs/reference/address-formats.md)',
      ['ethereum'],
    )
    .example('countersign wallets create Treasury --account ethereum solana', 'Create a wallet for two chains')
    .answers((options: CreateOptions, name: string) => create(terminal, options, name));

  withProfile(wallets.command('accounts'))
    .argument('<wallet>', 'by name or id')
    .summary('list the accounts of a wallet')
    .description('Lists the accounts of a wallet, with their addresses.')
    .example('countersign wallets accounts Treasury', 'List the addresses of a wallet')
    .answers((options: ProfileOptions, name: string) => accounts(terminal, options, name));

  withProfile(wallets.command('sign'))
    .argument('[address]', 'address of an account, or of a private key')
    .summary('sign a message or a transaction')
    .description('Signs a text message, or an unsigned transaction in hexadecimal, with the key of an address.')
    .option('--wallet <wallet>', 'instead of an address: a wallet with one account, by name or id')
    .option('--message <text>', 'the text to sign')
    .option(
      '--hash <function>',
      'sign the hash of the bare text: keccak256, sha256, or not_applicable for Ed25519; otherwise an Ethereum address signs a ' +
        'personal message (EIP-191), and others sign keccak256 of the text',
    )
    .option('--transaction <hex>', 'the unsigned transaction to sign')
    .option('--chain <chain>', 'chain of the transaction: ethereum, solana, tron or bitcoin', 'ethereum')
    .example('countersign wallets sign --wallet Scratch --message "hello"', 'Sign a text with the account of a wallet')
    .example('countersign wallets sign "$ADDRESS" --message "hello"', 'Sign a text with an address')
    .answers((options: SignOptions, address: string | undefined) => sign(terminal, options, address));

  withProfile(wallets.command('delete'))
    .argument('<wallets...>', 'by name or id')
    .summary('delete wallets and shred their keys')
    .description(
      'Deletes wallets with all their accounts, and shreds their seeds and keys. This cannot be undone. Asks for confirmation.',
    )
    .option('--yes', 'do not ask for confirmation')
    .option('--without-export', 'delete even wallets that were never exported')
    .example('countersign wallets delete Scratch --without-export --yes', 'Delete a wallet that is no longer needed')
    .answers((options: DeleteOptions, names: readonly string[]) => remove(terminal, options, names));
}

function listWallets(client: ActivityClient): Promise<readonly Wallet[]> {
  return wholeList<Wallet>(client, 'list_wallets', 'wallets', ({ walletId }) => walletId);
}

async function listAccounts(client: ActivityClient, wallet: string): Promise<readonly Account[]> {
  const [walletId] = idsOf('wallet', [wallet], namesOf(await listWallets(client)));
  return wholeList<Account>(client, 'list_wallet_accounts', 'accounts', ({ walletAccountId }) => walletAccountId, {
    walletId,
  });
}

const namesOf = (wallets: readonly Wallet[]) =>
  wallets.map(({ walletId, walletName }) => ({ id: walletId, name: walletName }));

async function list(terminal: Terminal, options: ProfileOptions): Promise<Outcome> {
  const wallets = await listWallets(await profileClient(terminal, options));
  const rows = wallets.map(({ walletName, walletId, exported, imported }) => [
    walletName,
    walletId,
    [exported ? 'exported' : '', imported ? 'imported' : ''].filter(Boolean).join(', '),
  ]);
  const text = rows.length > 0 ? table(terminal, ['NAME', 'WALLET', ''], rows) : 'No wallets.\n';
  return { text, json: { wallets } };
}

async function accounts(terminal: Terminal, options: ProfileOptions, name: string): Promise<Outcome> {
  const client = await profileClient(terminal, options);
  const all = await listAccounts(client, name);
  const rows = all.map(({ address, addressFormat, path }) => [address, shortFormat(addressFormat), path]);
  const text = rows.length > 0 ? table(terminal, ['ADDRESS', 'FORMAT', 'PATH'], rows) : 'It has none.\n';
  return { text, json: { accounts: all } };
}

const shortFormat = (format: string): string => format.replace(/^ADDRESS_FORMAT_/, '').toLowerCase();

async function create(terminal: Terminal, options: CreateOptions, walletName: string): Promise<Outcome> {
  const { submitted } = await import('../activities.js');
  const { ADDRESS_FORMATS } = await import('../../keyring/addresses.js');
  const { unknownName } = await import('../wire-names.js');
  const formats = Object.keys(ADDRESS_FORMATS) as readonly AddressFormat[];
  const wanted = options.account.map((name) => {
    const addressFormat = formats.find((one) => shortFormat(one) === name.toLowerCase() || one === name);
    if (!addressFormat) throw unknownName('address format', name, formats.map(shortFormat));
    const { curves, defaultPath } = ADDRESS_FORMATS[addressFormat];
    return { curve: curves[0]!, pathFormat: 'PATH_FORMAT_BIP32' as const, path: defaultPath, addressFormat };
  });
  const client = await profileClient(terminal, options);
  const activity = await client.submit('ACTIVITY_TYPE_CREATE_WALLET', { walletName, accounts: wanted });
  const { walletId, addresses = [] } = (activity.result['createWalletResult'] ?? {}) as {
    readonly walletId?: string;
    readonly addresses?: readonly string[];
  };
  const shown = addresses.map((address, at) => `  ${address}  ${shortFormat(wanted[at]?.addressFormat ?? '')}\n`);
  return submitted(terminal, activity, `Created wallet ${walletName} (${walletId}).\n${shown.join('')}`);
}

async function remove(terminal: Terminal, options: DeleteOptions, names: readonly string[]): Promise<Outcome> {
  const { submitted } = await import('../activities.js');
  const client = await profileClient(terminal, options);
  const walletIds = [...idsOf('wallet', names, namesOf(await listWallets(client)))];
  const question = `Delete ${names.join(', ')} and shred the keys for good?`;
  if (!options.yes && !(await terminal.confirm(question))) {
    return { text: 'Nothing was changed.\n', json: { deleted: false } };
  }
  const activity = await client.submit('ACTIVITY_TYPE_DELETE_WALLETS', {
    walletIds,
    ...(options.withoutExport ? { deleteWithoutExport: true } : {}),
  });
  return submitted(terminal, activity, `Deleted ${names.join(', ')}.\n`);
}

async function sign(terminal: Terminal, options: SignOptions, address: string | undefined): Promise<Outcome> {
  const { submitted } = await import('../activities.js');
  const { wallet, message, transaction, chain, hash } = options;
  if ((message === undefined) === (transaction === undefined)) {
    throw new BadUsage('say what to sign with --message or --transaction');
  }
  if ((address === undefined) === (wallet === undefined)) {
    throw new BadUsage('say what to sign with: an address, or --wallet');
  }
  const client = await profileClient(terminal, options);
  const signWith = address ?? (await onlyAddressOf(client, wallet!));
  const activity =
    message === undefined
      ? await client.submit('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', {
          signWith,
          unsignedTransaction: transaction!,
          type: `TRANSACTION_TYPE_${chain.toUpperCase()}`,
        })
      : await client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
          signWith,
          payload: hash === undefined && isEthereumAddress(signWith) ? asPersonalMessage(message) : message,
          encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
          hashFunction: `HASH_FUNCTION_${(hash ?? 'keccak256').toUpperCase()}`,
        });
  return submitted(terminal, activity);
}

const asPersonalMessage = (text: string): string => personalMessagePrefix(Buffer.byteLength(text)) + text;

const isEthereumAddress = (text: string): boolean => /^0x[0-9a-f]{40}$/i.test(text);

async function onlyAddressOf(client: ActivityClient, wallet: string): Promise<string> {
  const [account, ...others] = await listAccounts(client, wallet);
  if (account && others.length === 0) return account.address;
  throw new BadUsage(
    `wallet \`${wallet}\` has ${account ? others.length + 1 : 'no'} accounts: use an address, see countersign wallets accounts`,
  );
}
