import { initImportPrivateKey } from '../../../src/activities/private-keys/init-import-private-key.js';
import { vaultsEndedBy } from '../../../src/domain/organization/vaults.js';
import { anOrganization, aUser } from '../facts.js';
import { given, id } from '../given.js';
import { anImport } from './keys.js';

const ann = id(101);
const bob = id(102);
const history = [anOrganization(), aUser(ann), aUser(bob), anImport(bob, 301), anImport(ann, 302, 'wallet')];
const prepared = { vaultId: id(10_001), targetPublicKey: '04aa', importBundle: 'bundle' };
const started = {
  type: 'ImportStarted',
  data: { importId: id(1), userId: ann, kind: 'private-key', vaultId: id(10_001), targetPublicKey: '04aa' },
} as const;

describe('init import private key', () => {
  it('begins an import beside those of others and of wallets', () =>
    given(...history)
      .when(initImportPrivateKey, { userId: ann }, { prepared })
      .then([started], { importBundle: 'bundle' }));

  it('takes the place of the one that waits for the user, whose vault ends', () => {
    const ended = { type: 'ImportClosed', data: { importId: id(303), vaultId: id(10_303) } } as const;
    given(...history, anImport(ann, 303))
      .when(initImportPrivateKey, { userId: ann }, { prepared })
      .then([ended, started], { importBundle: 'bundle' });
    expect(vaultsEndedBy(ended)).toEqual([id(10_303)]);
  });

  it('refuses a user that is not there', () =>
    given(...history)
      .when(initImportPrivateKey, { userId: id(103) }, { prepared })
      .thenRefused('NOT_FOUND', new RegExp(`^no user \`${id(103)}\``)));
});
