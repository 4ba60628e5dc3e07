import { initImportWallet } from '../../../src/activities/wallets/init-import-wallet.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { given, id } from '../given.js';
import { ann, bob, history, organizationId, ports, prepared } from './wallet-facts.js';

const begun = (number: number, userId: string, kind: 'wallet' | 'private-key'): OrganizationEvent => ({
  type: 'ImportStarted',
  data: { importId: id(number), userId, kind, vaultId: id(1_000 + number), targetPublicKey: '04' },
});
const started = (vaultId: string) =>
  ({
    type: 'ImportStarted',
    data: { importId: id(1), userId: ann, kind: 'wallet', vaultId, targetPublicKey: '04aa' },
  }) as const;
const made = { vaultId: id(50), targetPublicKey: '04aa', importBundle: 'a bundle' };

describe('init import wallet', () => {
  it('makes a target key for the user, and tells it in a signed bundle', async () => {
    const real = await prepared(initImportWallet, { userId: ann }, history);
    const { data, enclaveQuorumPublic } = JSON.parse(real.importBundle) as Record<string, string>;
    expect(JSON.parse(Buffer.from(data!, 'hex').toString())).toEqual({
      targetPublic: real.targetPublicKey,
      organizationId,
      userId: ann,
    });
    expect(enclaveQuorumPublic).toBe(ports.keys.publicKey('signer', 'uncompressed'));
    given(...history)
      .when(initImportWallet, { userId: ann }, { prepared: real })
      .then(
        [{ ...started(real.vaultId), data: { ...started(real.vaultId).data, targetPublicKey: real.targetPublicKey } }],
        {
          importBundle: real.importBundle,
        },
      );
  });

  it('ends the import of a wallet that waits for the same user, and no other', () =>
    given(...history, begun(601, bob, 'wallet'), begun(602, ann, 'private-key'), begun(603, ann, 'wallet'))
      .when(initImportWallet, { userId: ann }, { prepared: made })
      .then([{ type: 'ImportClosed', data: { importId: id(603), vaultId: id(1_603) } }, started(id(50))], {
        importBundle: 'a bundle',
      }));

  it('refuses a user of no organization, or of another', () =>
    given(...history)
      .when(initImportWallet, { userId: id(999) })
      .thenRefused('NOT_FOUND', new RegExp(`no user \`${id(999)}\``)));
});
