import type { ActivityDefinition } from '../../../src/activities/define-activity.js';
import type { AccountToDerive } from '../../../src/ports/keyring.js';
import type { PreparePorts } from '../../../src/ports/prepare.js';
import { derivedId } from '../../../src/ledger/ids.js';
import { validate } from '../../../src/wire/validate.js';
import type { AddressFormat, Curve } from '../../../src/domain/key-formats.js';
import { emptyOrganization, evolve, type OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { privateKeySecret } from '../../../src/domain/organization/signing-keys.js';
import type { PolicyValue } from '../../../src/domain/policy/types.js';
import { addressOf } from '../../../src/keyring/addresses.js';
import { publicKeyOf } from '../../../src/keyring/curves.js';
import type { OpenKeyring } from '../../../src/keyring/open-keyring.js';
import { plain } from '../../transactions/plain.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { anOrganization } from '../facts.js';
import { given, id, usualLimits } from '../given.js';

const organizationId = id(700);
const at = Date.UTC(2026, 0, 1);

type Definition<Intent extends object, Result extends object, Prepared> = ActivityDefinition<
  string,
  Intent,
  Result,
  Prepared
>;

/** An organization whose keys are in a real vault, and what its history says of them. */
export class Signers {
  readonly history: OrganizationEvent[] = [anOrganization()];

  private constructor(private readonly ports: PreparePorts & OpenKeyring) {}

  static async open(): Promise<Signers> {
    return new Signers(await preparePorts());
  }

  /** A private key of a published vector, or any other; its id and vault follow from the number. */
  async addPrivateKey(
    number: number,
    curve: Curve,
    secret: Uint8Array,
    formats: readonly AddressFormat[] = [],
  ): Promise<{ privateKeyId: string; publicKey: Buffer; addresses: readonly string[] }> {
    const privateKeyId = id(number);
    const vaultId = id(1_000 + number);
    await this.ports.vault.seal(vaultId, organizationId, [{ name: privateKeySecret, secret }]);
    const publicKey = publicKeyOf(curve, secret);
    const addresses = formats.map((format) => ({ format, address: addressOf(format, curve, publicKey) }));
    const names = { privateKeyId, privateKeyName: `key ${number}`, privateKeyTags: [id(500)] };
    this.history.push({
      type: 'PrivateKeyCreated',
      data: { ...names, curve, publicKey: publicKey.toString('hex'), addresses, vaultId, imported: true },
    });
    return { privateKeyId, publicKey, addresses: addresses.map(({ address }) => address) };
  }

  /** A wallet of the keyring; its id follows from the number. */
  async addWallet(number: number, accounts: readonly AccountToDerive[]) {
    const walletId = id(number);
    const created = await this.ports.keyring.createWallet({ organizationId, mnemonicLength: 12, accounts });
    const { vaultId } = created;
    const facts = created.accounts.map((account, index) => ({
      walletAccountId: id(number + 1 + index),
      pathFormat: 'PATH_FORMAT_BIP32' as const,
      ...account,
    }));
    this.history.push(
      { type: 'WalletCreated', data: { walletId, walletName: `wallet ${number}`, vaultId, imported: false } },
      { type: 'WalletAccountsCreated', data: { walletId, accounts: facts } },
    );
    return { walletId, vaultId, accounts: facts };
  }

  /** What the real keyring gives. */
  async prepare<Intent extends object, Prepared>(
    definition: Definition<Intent, object, Prepared>,
    intent: object,
  ): Promise<Prepared> {
    let count = 0;
    const newId = () => derivedId('prepared', String(count++));
    const valid = validate(definition.intent, intent, 'parameters');
    return definition.sign!(valid, this.ports.keyring, {
      organization: this.organization(),
      submitterId: id(900),
      now: at,
      newId,
      ...usualLimits,
    });
  }

  /** The result, which must come without any effect but itself. */
  async sign<Intent extends object, Result extends object, Prepared>(
    definition: Definition<Intent, Result, Prepared>,
    intent: object,
  ): Promise<Result> {
    const prepared = await this.prepare(definition, intent);
    const valid = validate(definition.intent, intent, 'parameters');
    const decided = definition.decide(
      valid,
      {
        organization: this.organization(),
        activityId: id(800),
        submitterId: id(900),
        credentialId: id(901),
        now: at,
        newId: () => id(1),
        ...usualLimits,
        policyEnvironment: { namespaces: new Map(), functions: [] },
      },
      prepared,
    );
    if ('failure' in decided) throw decided.failure;
    given(...this.history)
      .when(definition, intent, { prepared })
      .then([], decided.result);
    return decided.result;
  }

  /** What is decided with what was prepared earlier, after more has happened. */
  when<Intent extends object, Result extends object, Prepared>(
    definition: Definition<Intent, Result, Prepared>,
    intent: object,
    { prepared, after = [] }: { prepared?: Prepared; after?: readonly OrganizationEvent[] } = {},
  ) {
    return given(...this.history, ...after).when(definition, intent, prepared === undefined ? {} : { prepared });
  }

  /** What policies read of each payload of a request, by the field that it came in. */
  payloads<Intent extends object>(
    definition: Definition<Intent, object, unknown>,
    intent: object,
  ): Readonly<Record<string, Readonly<Record<string, PolicyValue>>>> {
    const parts = definition.payloads!(validate(definition.intent, intent, 'parameters'), this.organization());
    return Object.fromEntries(
      parts.map(({ name, resources }) => [name, plain(resources) as Readonly<Record<string, PolicyValue>>]),
    );
  }

  /** What policies read of a request that has one payload, or none. */
  resources<Intent extends object>(
    definition: Definition<Intent, object, unknown>,
    intent: object,
  ): Readonly<Record<string, PolicyValue>> {
    if (!definition.payloads) {
      return plain(
        definition.resources!(validate(definition.intent, intent, 'parameters'), this.organization()),
      ) as Readonly<Record<string, PolicyValue>>;
    }
    const [only, ...others] = Object.values(this.payloads(definition, intent));
    if (!only || others.length > 0) throw new Error('there is more than one payload');
    return only;
  }

  organization() {
    const organization = emptyOrganization();
    for (const event of this.history) evolve(organization, event, at);
    return organization;
  }
}
