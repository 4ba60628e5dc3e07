import type { PolicyValue } from '../../domain/policy/types.js';
import type { NamedKind, PolicyFile } from '../../lab/policy-files.js';
import type { TrialAccount } from './trial-chains.js';
import { NotExecuted, recordIn, refuseOthers, textIn, textsIn } from './trial-facts.js';
import type { TrialOrganization } from './trial-organization.js';

/** Something that signs or is exported: how requests name it, and what policies see of it. */
export interface TrialKey {
  readonly id: string;
  /** Of its one account. */
  readonly address: string;
  /** By namespace, with real values. */
  readonly resources: Readonly<Record<string, PolicyValue>>;
}

type Facts = Readonly<Record<string, PolicyValue>>;

/** The first account of a wallet. */
export const ethereum: TrialAccount = {
  curve: 'CURVE_SECP256K1',
  pathFormat: 'PATH_FORMAT_BIP32',
  path: "m/44'/60'/0'/0/0",
  addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
};

/** The wallets and private keys of an example: those that its file names, and those that it needs besides. */
export class TrialResources {
  /** Real ids by those of the file. */
  private readonly made = new Map<string, string>();
  private others = 0;

  constructor(
    private readonly organization: TrialOrganization,
    private readonly names: PolicyFile['names'],
  ) {}

  get ids(): ReadonlyMap<string, string> {
    return new Map([...this.organization.ids, ...this.made]);
  }

  /** Makes what the file names and the example does not use: policies may refer to it. */
  async rest(): Promise<void> {
    const unused = (kind: NamedKind) => [...(this.names.get(kind) ?? [])].filter(([, id]) => !this.made.has(id));
    for (const [, id] of unused('wallet')) await this.wallet({ id });
    for (const [, id] of unused('private key')) await this.privateKey({ id });
  }

  /** Whichever the facts speak of. */
  async keyOf(
    { wallet, wallet_account: named, private_key: privateKey }: Facts,
    account: TrialAccount = ethereum,
  ): Promise<TrialKey> {
    const known = recordIn(privateKey, 'private_key');
    if (Object.keys(known).length > 0) return this.privateKey(known, account);
    refuseOthers(recordIn(named, 'wallet_account'), 'wallet_account', ['address']);
    return this.wallet(recordIn(wallet, 'wallet'), account);
  }

  /** The wallet with these facts. Its id is its own, unless the file names it. @throws {NotExecuted} */
  async wallet(facts: Facts, account: TrialAccount = ethereum): Promise<TrialKey> {
    const { name: walletName, id } = this.named('wallet', facts);
    const { walletId, addresses } = await this.organization.founder.perform('ACTIVITY_TYPE_CREATE_WALLET', {
      walletName,
      accounts: [account],
    });
    if (id !== undefined) this.made.set(id, walletId);
    const address = addresses[0]!;
    const wallet = { id: walletId, label: walletName, imported: false, exported: false };
    return { id: walletId, address, resources: { wallet, wallet_account: { address } } };
  }

  /** The private key with these facts, as a wallet. @throws {NotExecuted} */
  async privateKey(facts: Facts, { curve, addressFormat }: TrialAccount = ethereum): Promise<TrialKey> {
    const { name: privateKeyName, id } = this.named('private key', facts);
    const tags: string[] = [];
    for (const tag of textsIn(facts['tags'], 'private_key.tags') ?? []) tags.push(await this.keyTag(tag));
    const { privateKeys } = await this.organization.founder.perform('ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2', {
      privateKeys: [
        {
          privateKeyName,
          curve,
          privateKeyTags: tags,
          addressFormats: [addressFormat],
        },
      ],
    });
    const { privateKeyId, addresses } = privateKeys[0]!;
    if (id !== undefined) this.made.set(id, privateKeyId);
    const resources = {
      private_key: { id: privateKeyId, label: privateKeyName, tags, imported: false, exported: false },
    };
    return { id: privateKeyId, address: addresses[0]!.address, resources };
  }

  /** The real id of a tag; one that the file does not name is another. */
  private async keyTag(id: string): Promise<string> {
    const known = this.ids.get(id);
    if (known !== undefined) return known;
    const given = { privateKeyTagName: `Another tag ${this.made.size}`, privateKeyIds: [] };
    const { privateKeyTagId } = await this.organization.founder.perform('ACTIVITY_TYPE_CREATE_PRIVATE_KEY_TAG', given);
    this.made.set(id, privateKeyTagId);
    return privateKeyTagId;
  }

  private named(kind: NamedKind, facts: Facts): { readonly name: string; readonly id: string | undefined } {
    const path = kind === 'wallet' ? 'wallet' : 'private_key';
    refuseOthers(facts, path, ['id', 'label', 'imported', 'exported', 'tags']);
    for (const name of ['imported', 'exported']) {
      if (facts[name] === true) throw new NotExecuted(`nothing here makes a ${kind} that was ${name}`);
    }
    const id = textIn(facts['id'], `${path}.id`);
    const label = textIn(facts['label'], `${path}.label`);
    const known = [...(this.names.get(kind) ?? [])].find(
      ([name, given]) => given === id || (id === undefined && name === label),
    );
    if (known) {
      if (label !== undefined && label !== known[0])
        throw new NotExecuted(`the ${kind} <${known[0]}> is not called \`${label}\``);
      return { name: known[0], id: known[1] };
    }
    if (label !== undefined && (label.trim() !== label || label === '' || label.length > 255))
      throw new NotExecuted(`no ${kind} is called \`${label}\``);
    return { name: label ?? `Another ${kind} ${++this.others}`, id: undefined };
  }
}
