import { createPrivateKeys } from '../../../src/activities/private-keys/create-private-keys.js';
import { anOrganization } from '../facts.js';
import { given, id } from '../given.js';
import { lifted } from '../lifted.js';
import { aPrivateKey, aPrivateKeyTag, privateKeys, sealedKey } from './keys.js';

const cold = id(401);
const history = [anOrganization(), aPrivateKeyTag(cold, 'cold'), aPrivateKey(101)];
const treasury = {
  privateKeyName: 'treasury',
  curve: 'CURVE_SECP256K1',
  privateKeyTags: [cold],
  addressFormats: ['ADDRESS_FORMAT_ETHEREUM', 'ADDRESS_FORMAT_COMPRESSED'],
};
const plain = { privateKeyName: 'plain', curve: 'CURVE_P256', privateKeyTags: [], addressFormats: [] };

describe('create private keys', () => {
  it('records the sealed keys in the order of the intent', () => {
    const first = sealedKey(1, 'ADDRESS_FORMAT_ETHEREUM', 'ADDRESS_FORMAT_COMPRESSED');
    const second = sealedKey(2);
    given(...history)
      .when(createPrivateKeys, { privateKeys: [treasury, plain] }, { prepared: [first, second] })
      .then(
        [
          {
            type: 'PrivateKeyCreated',
            data: {
              privateKeyId: id(1),
              privateKeyName: 'treasury',
              curve: 'CURVE_SECP256K1',
              imported: false,
              privateKeyTags: [cold],
              ...first,
            },
          },
          {
            type: 'PrivateKeyCreated',
            data: {
              privateKeyId: id(2),
              privateKeyName: 'plain',
              curve: 'CURVE_P256',
              imported: false,
              privateKeyTags: [],
              ...second,
            },
          },
        ],
        {
          privateKeys: [
            { privateKeyId: id(1), addresses: [...first.addresses] },
            { privateKeyId: id(2), addresses: [] },
          ],
          privateKeyIds: [id(1), id(2)],
        },
      );
  });

  it.each([
    [
      'the name of another',
      [{ ...plain, privateKeyName: 'key 101' }],
      /^private key label must be unique: `key 101` is/,
    ],
    [
      'one name twice',
      [plain, treasury, plain],
      /^private key label must be unique: `plain` is taken, it appears twice in this request/,
    ],
    [
      'a format that the curve has no addresses in',
      [plain, { ...plain, privateKeyName: 'b', addressFormats: ['ADDRESS_FORMAT_SOLANA'] }],
      /privateKeys\[1\]\.addressFormats\[0\]: ADDRESS_FORMAT_SOLANA needs a key on CURVE_ED25519, not on `CURVE_P256`/,
    ],
    [
      'a format named twice',
      [{ ...plain, addressFormats: ['ADDRESS_FORMAT_COMPRESSED', 'ADDRESS_FORMAT_COMPRESSED'] }],
      /addressFormats\[1\]: lists `ADDRESS_FORMAT_COMPRESSED` twice/,
    ],
    ['a format that is none', [{ ...plain, addressFormats: ['ADDRESS_FORMAT_DOLLAR'] }], /must be a list of/],
    ['a curve that is none', [{ ...plain, curve: 'CURVE_448' }], /curve: must be one of CURVE_SECP256K1, /],
    ['no keys', [], /parameters\.privateKeys: must have 1 to 100 elements, has 0/],
    ['an empty name', [{ ...plain, privateKeyName: '' }], /must have 1 to 255 characters, has 0/],
    ['no list of tags', [{ ...plain, privateKeyTags: undefined }], /privateKeyTags: is required/],
  ])('refuses %s', (_what, keys, message) =>
    given(...history)
      .when(createPrivateKeys, { privateKeys: keys })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('refuses a tag that is not there', () =>
    given(...history)
      .when(createPrivateKeys, { privateKeys: [{ ...plain, privateKeyTags: [id(402)] }] })
      .thenRefused('NOT_FOUND', new RegExp(`^no private key tag \`${id(402)}\``)));

  it('makes a thousand, and not one more', () => {
    given(anOrganization(), ...privateKeys(999))
      .when(createPrivateKeys, { privateKeys: [plain] }, { prepared: [sealedKey(1)] })
      .then([expect.objectContaining({ type: 'PrivateKeyCreated' })], expect.anything() as never);
    given(anOrganization(), ...privateKeys(999))
      .when(createPrivateKeys, { privateKeys: [plain, { ...plain, privateKeyName: 'b' }] })
      .thenRefused(
        'RESOURCE_EXHAUSTED',
        /^the organization has 999 private keys, and with 2 more .* the limit of 1000/,
      );
  });

  it('takes the first version, whose intent is the same', () =>
    expect(lifted('ACTIVITY_TYPE_CREATE_PRIVATE_KEYS', { privateKeys: [treasury] })).toEqual({
      privateKeys: [treasury],
    }));
});
