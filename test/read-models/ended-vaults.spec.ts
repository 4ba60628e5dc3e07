import type { OrganizationEvent } from '../../src/domain/organization/organization.js';
import { endedVaults, endedVaultsModel } from '../../src/read-models/destroyed-vaults.js';
import { id } from '../activities/given.js';
import { contents, recorded, rowsOf } from './projected.js';

const organizationId = id(700);
const walletDeleted = (number: number): OrganizationEvent => ({
  type: 'WalletDeleted',
  data: { walletId: id(number), vaultId: id(number) },
});

describe('vaults that ended', () => {
  it('are those that events name, the latest first, and no others', () => {
    const rows = rowsOf(
      endedVaultsModel,
      recorded(organizationId, [
        { type: 'WalletCreated', data: { walletId: id(1), walletName: 'a', vaultId: id(1), imported: false } },
        walletDeleted(2),
        { type: 'ImportClosed', data: { importId: id(9), vaultId: id(3) } },
        { type: 'PrivateKeyDeleted', data: { privateKeyId: id(9), vaultId: id(4) } },
        { type: 'OrganizationDeleted', data: { organizationId, vaultIds: [id(5), id(6)] } },
      ]),
    );
    expect([...endedVaults(rows)]).toEqual([id(6), id(5), id(4), id(3), id(2)]);
  });

  it('are none when nothing ended, and denials are no end', () => {
    const denied = { ...recorded(organizationId, [walletDeleted(1)])[0]!, type: 'ActivityDenied', data: {} };
    expect([...endedVaults(rowsOf(endedVaultsModel, [{ ...denied, stream: `denials-${organizationId}` }]))]).toEqual(
      [],
    );
  });

  it.each([999, 1_000, 1_001, 2_500])('are all there when they are %d, each once', (count) => {
    const events = Array.from({ length: count }, (_, index) => walletDeleted(index));
    const ended = [...endedVaults(rowsOf(endedVaultsModel, recorded(organizationId, events)))];
    expect(ended).toEqual(events.map((_, index) => id(index)).reverse());
  });

  it('are all there when one event ends more of them than are read at a time', () => {
    const vaultIds = Array.from({ length: 2_500 }, (_, index) => id(index));
    const deleted: OrganizationEvent = { type: 'OrganizationDeleted', data: { organizationId, vaultIds } };
    const ended = [...endedVaults(rowsOf(endedVaultsModel, recorded(organizationId, [walletDeleted(9_999), deleted])))];
    expect(ended).toEqual([...vaultIds.toReversed(), id(9_999)]);
  });

  it('are the same however the events come, and when they come again', () => {
    const events = recorded(
      organizationId,
      Array.from({ length: 40 }, (_, index) => walletDeleted(index)),
    );
    const once = contents(endedVaultsModel, rowsOf(endedVaultsModel, events));
    expect(contents(endedVaultsModel, rowsOf(endedVaultsModel, ...events.map((event) => [event])))).toEqual(once);
    expect(contents(endedVaultsModel, rowsOf(endedVaultsModel, events.slice(0, 30), events))).toEqual(once);
  });
});
