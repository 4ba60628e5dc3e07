import { deletePrivateKeys } from '../../../src/activities/private-keys/delete-private-keys.js';
import { vaultsEndedBy } from '../../../src/domain/organization/vaults.js';
import { anOrganization } from '../facts.js';
import { given, id } from '../given.js';
import { aPrivateKey } from './keys.js';

const exported = { type: 'PrivateKeyExported', data: { privateKeyId: id(101) } } as const;
const history = [anOrganization(), aPrivateKey(101), aPrivateKey(102), exported];
const deleted = (number: number) =>
  ({ type: 'PrivateKeyDeleted', data: { privateKeyId: id(number), vaultId: id(10_000 + number) } }) as const;

describe('delete private keys', () => {
  it.each([[{}], [{ deleteWithoutExport: false }], [{ deleteWithoutExport: true }]])(
    'deletes a key that was exported, whatever is said of exports: %j',
    (rest) =>
      given(...history)
        .when(deletePrivateKeys, { privateKeyIds: [id(101)], ...rest })
        .then([deleted(101)], { privateKeyIds: [id(101)] }),
  );

  it('deletes keys that were not, when it is told to; their vaults end', () => {
    given(...history)
      .when(deletePrivateKeys, { privateKeyIds: [id(102), id(101)], deleteWithoutExport: true })
      .then([deleted(102), deleted(101)], { privateKeyIds: [id(102), id(101)] });
    expect(vaultsEndedBy(deleted(102))).toEqual([id(10_102)]);
  });

  it.each([[{}], [{ deleteWithoutExport: false }]])('refuses all when one was never exported: %j', (rest) =>
    given(...history)
      .when(deletePrivateKeys, { privateKeyIds: [id(101), id(102)], ...rest })
      .thenRefused('INVALID_ARGUMENT', new RegExp(`^private key has not been exported: \`${id(102)}\``)),
  );

  it('refuses all when one is not there', () =>
    given(...history)
      .when(deletePrivateKeys, { privateKeyIds: [id(101), id(103)], deleteWithoutExport: true })
      .thenRefused('NOT_FOUND', new RegExp(`^no private key \`${id(103)}\``)));

  it.each([
    ['none', [], /must have 1 to 100 elements, has 0/],
    ['one twice', [id(101), id(101)], /must not list an id twice/],
  ])('refuses %s', (_what, privateKeyIds, message) =>
    given(...history)
      .when(deletePrivateKeys, { privateKeyIds })
      .thenRefused('INVALID_ARGUMENT', message),
  );
});
