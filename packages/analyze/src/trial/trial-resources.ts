import type { PolicyValue, NamedKind, PolicyFile } from 'countersign/internal';
import { ethereum, type TrialAccount } from './trial-chains.js';
import { walletToImport, keyToImport } from './trial-imports.js';
import { NotExecuted, recordIn, refuseOthers, textIn, textsIn } from './trial-facts.js';
import { newKey, type TrialOrganization } from './trial-organization.js';

/** Something that signs or is exported: how requests name it, and what policies see of it. */
export interface TrialKey {
  readonly id: string;
  /** Of its one account. */
  readonly address: string;
  /** By namespace, with real values. */
  readonly resources: Readonly<Record<string, PolicyValue>>;
}

type Facts = Readonly<Record<string, PolicyValue>>;

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
    // A request has one of them, even if nothing is said about it.
    const isOfKey = wallet === undefined && privateKey !== undefined;
    if (isOfKey || Object.keys(known).length > 0) return this.privateKey(known, account);
    refuseOthers(recordIn(named, 'wallet_account'), 'wallet_account', ['address']);
    return this.wallet(recordIn(wallet, 'wallet'), account);
  }

  /** The wallet with these facts. Its id is its own, unless the file names it. @throws {NotExecuted} */
  async wallet(facts: Facts, account: TrialAccount = ethereum): Promise<TrialKey> {
    const { name: walletName, id, imported, exported } = this.named('wallet', facts);
    const { founder } = this.organization;
    const { walletId, addresses } = imported
      ? await founder.perform(
          'ACTIVITY_TYPE_IMPORT_WALLET',
          await walletToImport(this.organization, await this.somebody(), walletName, account),
        )
      : await founder.perform('ACTIVITY_TYPE_CREATE_WALLET', { walletName, accounts: [account] });
    if (exported)
      await founder.perform('ACTIVITY_TYPE_EXPORT_WALLET', { walletId, targetPublicKey: newKey().publicKey });
    if (id !== undefined) this.made.set(id, walletId);
    const address = addresses[0]!;
    const wallet = { id: walletId, label: walletName, imported, exported };
    return { id: walletId, address, resources: { wallet, wallet_account: { address } } };
  }

  /** The private key with these facts, as a wallet. @throws {NotExecuted} */
  async privateKey(facts: Facts, account: TrialAccount = ethereum): Promise<TrialKey> {
    const { name: label, id, imported, exported } = this.named('private key', facts);
    const tags: string[] = [];
    for (const tag of textsIn(facts['tags'], 'private_key.tags') ?? []) tags.push(await this.keyTag(tag));
    const { privateKeyId, address } = imported
      ? await this.importedKey(label, tags, account)
      : await this.createdKey(label, tags, account);
    if (exported) {
      const target = { privateKeyId, targetPublicKey: newKey().publicKey };
      await this.organization.founder.perform('ACTIVITY_TYPE_EXPORT_PRIVATE_KEY', target);
    }
    if (id !== undefined) this.made.set(id, privateKeyId);
    const resources = { private_key: { id: privateKeyId, label, tags, imported, exported } };
    return { id: privateKeyId, address, resources };
  }

  private async createdKey(privateKeyName: string, privateKeyTags: string[], account: TrialAccount) {
    const { curve, addressFormat } = account;
    const input = { privateKeyName, curve, privateKeyTags, addressFormats: [addressFormat] };
    const { privateKeys } = await this.organization.founder.perform('ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2', {
      privateKeys: [input],
    });
    const { privateKeyId, addresses } = privateKeys[0]!;
    return { privateKeyId, address: addresses[0]!.address };
  }

  private async importedKey(privateKeyName: string, tags: readonly string[], account: TrialAccount) {
    const { founder } = this.organization;
    const input = await keyToImport(this.organization, await this.somebody(), privateKeyName, account);
    const { privateKeyId, addresses } = await founder.perform('ACTIVITY_TYPE_IMPORT_PRIVATE_KEY', input);
    for (const privateKeyTagId of tags) {
      const change = { privateKeyTagId, addPrivateKeyIds: [privateKeyId] };
      await founder.perform('ACTIVITY_TYPE_UPDATE_PRIVATE_KEY_TAG', change);
    }
    return { privateKeyId, address: addresses[0]!.address };
  }

  /** Who imports. */
  private async somebody(): Promise<string> {
    return (await this.organization.founder.query('whoami')).userId;
  }

  /** The real id of a tag; one that the file does not name is another. */
  private async keyTag(id: string): Promise<string> {
    const known = this.ids.get(id);
    if (known !== undefined) return known;
    const input = { privateKeyTagName: `Another tag ${this.made.size}`, privateKeyIds: [] };
    const { privateKeyTagId } = await this.organization.founder.perform('ACTIVITY_TYPE_CREATE_PRIVATE_KEY_TAG', input);
    this.made.set(id, privateKeyTagId);
    return privateKeyTagId;
  }

  private named(kind: NamedKind, facts: Facts) {
    const path = kind === 'wallet' ? 'wallet' : 'private_key';
    refuseOthers(facts, path, ['id', 'label', 'imported', 'exported', 'tags']);
    const origin = { imported: facts['imported'] === true, exported: facts['exported'] === true };
    const id = textIn(facts['id'], `${path}.id`);
    const label = textIn(facts['label'], `${path}.label`);
    const known = [...(this.names.get(kind) ?? [])].find(
      ([name, input]) => input === id || (id === undefined && name === label),
    );
    if (known) {
      if (label !== undefined && label !== known[0])
        throw new NotExecuted(`the ${kind} <${known[0]}> is not called \`${label}\``);
      return { name: known[0], id: known[1], ...origin };
    }
    if (label !== undefined && (label.trim() !== label || label === '' || label.length > 255))
      throw new NotExecuted(`no ${kind} is called \`${label}\``);
    return { name: label ?? `Another ${kind} ${++this.others}`, id: undefined, ...origin };
  }
}
