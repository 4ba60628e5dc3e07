import { importPrivateKey } from '../../../src/activities/private-keys/import-private-key.js';
import { anOrganization, aUser } from '../facts.js';
import { given, id } from '../given.js';
import { anImport, aPrivateKey, privateKeys, sealedKey } from './keys.js';

const ann = id(101);
const bob = id(102);
const waiting = anImport(ann, 301);
const history = [anOrganization(), aUser(ann), aUser(bob), waiting, aPrivateKey(201)];
const prepared = { importId: id(301), sealed: sealedKey(1, 'ADDRESS_FORMAT_ETHEREUM') };
const intent = {
  userId: ann,
  privateKeyName: 'from elsewhere',
  encryptedBundle: '{}',
  curve: 'CURVE_SECP256K1',
  addressFormats: ['ADDRESS_FORMAT_ETHEREUM'],
};

describe('import private key', () => {
  it('records the key, and ends the import', () =>
    given(...history)
      .when(importPrivateKey, intent, { prepared })
      .then(
        [
          { type: 'ImportClosed', data: { importId: id(301), vaultId: id(10_301) } },
          {
            type: 'PrivateKeyCreated',
            data: {
              privateKeyId: id(1),
              privateKeyName: 'from elsewhere',
              curve: 'CURVE_SECP256K1',
              imported: true,
              privateKeyTags: [],
              ...prepared.sealed,
            },
          },
        ],
        { privateKeyId: id(1), addresses: [...prepared.sealed.addresses] },
      ));

  it.each([
    ['was used', { type: 'ImportClosed', data: { importId: id(301), vaultId: id(10_301) } } as const, ann],
    ['waits for somebody else only', aUser(id(103)), bob],
    ['is one of a wallet', anImport(bob, 302, 'wallet'), bob],
  ])('refuses when the import that waits %s', (_what, event, userId) =>
    given(...history, event)
      .when(importPrivateKey, { ...intent, userId }, { prepared })
      .thenRefused('FAILED_PRECONDITION', new RegExp(`^no private key import is pending for user \`${userId}\``)),
  );

  it('refuses what was sealed to the target key of an earlier import', () =>
    given(...history, { type: 'ImportClosed', data: { importId: id(301), vaultId: id(10_301) } }, anImport(ann, 302))
      .when(importPrivateKey, intent, { prepared })
      .thenRefused('ABORTED', /^a newer import has been started for user/));

  it.each([
    ['the name of another', { privateKeyName: 'key 201' }, /^private key label must be unique: `key 201`/],
    [
      'a format that the curve has no addresses in',
      { curve: 'CURVE_ED25519' },
      /parameters\.addressFormats\[0\]: ADDRESS_FORMAT_ETHEREUM needs a key on CURVE_SECP256K1, not on `CURVE_ED25519`/,
    ],
    ['an empty bundle', { encryptedBundle: '' }, /encryptedBundle: must have 1 to 4096 characters/],
  ])('refuses %s', (_what, changes, message) =>
    given(...history)
      .when(importPrivateKey, { ...intent, ...changes }, { prepared })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('refuses a user that is not there', () =>
    given(...history)
      .when(importPrivateKey, { ...intent, userId: id(103) })
      .thenRefused('NOT_FOUND', new RegExp(`^no user \`${id(103)}\``)));

  it('refuses a thousand and first key', () =>
    given(...history, ...privateKeys(999))
      .when(importPrivateKey, intent)
      .thenRefused('RESOURCE_EXHAUSTED', /^the organization has 1000 private keys/));
});
