import { cp, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { startCoordinator, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { TypingUser } from './typed.js';

const examples = new URL('../../examples/policies/', import.meta.url);

/** The file of the treasury's policies, from the folder of a typing user. */
export const treasuryFile = 'examples/policies/treasury/policies.yaml';

/** An organization that has the people and the wallet of the treasury example, and someone at the command line. */
export class Treasury {
  private constructor(
    readonly coordinator: TestCoordinator,
    readonly user: TypingUser,
    readonly people: Readonly<Record<string, TestUser>>,
    readonly walletId: string,
    readonly address: string,
  ) {}

  static async open(seed: string): Promise<Treasury> {
    const coordinator = await startCoordinator({ seed, at: new Date() });
    const user = await TypingUser.sitDown();
    await writeFile(user.path('root.json'), JSON.stringify({ ...coordinator.root, apiUrl: coordinator.url }));
    await user.json(['login', '--key-file', 'root.json']);
    await cp(fileURLToPath(examples), user.path('examples/policies'), { recursive: true });
    const people: Record<string, TestUser> = {};
    for (const name of ['Ann', 'Ben', 'Tom', 'Tina', 'Theo', 'Otto']) people[name] = await coordinator.createUser(name);
    const { walletId, addresses } = await coordinator.createWallet('Treasury');
    return new Treasury(coordinator, user, people, walletId, addresses[0]!);
  }

  /** Gives one of the people a profile of their name in small letters. */
  async login(name: string): Promise<string> {
    const { organizationId, url } = this.coordinator;
    const { publicKey, privateKey } = this.people[name]!.key;
    const profile = name.toLowerCase();
    const root = { apiUrl: url, organizationId, apiPublicKey: publicKey, apiPrivateKey: privateKey };
    await writeFile(this.user.path(`${profile}.json`), JSON.stringify(root));
    await this.user.json(['login', '--profile', profile, '--key-file', `${profile}.json`, '--keep-key']);
    await this.user.json(['profiles', 'use', 'default']);
    return profile;
  }

  /** The policies of the folder, with one part as it should be otherwise. */
  async edit(from: string, to: string): Promise<void> {
    const text = await readFile(this.user.path(treasuryFile), 'utf8');
    expect(text.split(from)).toHaveLength(2);
    await writeFile(this.user.path(treasuryFile), text.replace(from, to));
  }

  async close(): Promise<void> {
    await this.user.leaves();
    await this.coordinator.close();
  }
}
