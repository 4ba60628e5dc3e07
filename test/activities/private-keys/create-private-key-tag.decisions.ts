import { createPrivateKeyTag } from '../../../src/activities/private-keys/create-private-key-tag.js';
import { anOrganization } from '../facts.js';
import { given, id } from '../given.js';
import { aPrivateKey, aPrivateKeyTag } from './keys.js';

const history = [
  anOrganization(),
  aPrivateKeyTag(id(401), 'cold'),
  aPrivateKey(101, { privateKeyTags: [id(401)] }),
  aPrivateKey(102),
];
const tags = (count: number) =>
  Array.from({ length: count }, (_, index) => aPrivateKeyTag(id(500 + index), `t${index}`));

describe('create private key tag', () => {
  it('creates the tag, gives it to the keys, and answers them in their order', () =>
    given(...history)
      .when(createPrivateKeyTag, { privateKeyTagName: 'hot', privateKeyIds: [id(102), id(101)] })
      .then(
        [
          { type: 'PrivateKeyTagCreated', data: { tagId: id(1), tagName: 'hot' } },
          { type: 'PrivateKeyUpdated', data: { privateKeyId: id(102), privateKeyTags: [id(1)] } },
          { type: 'PrivateKeyUpdated', data: { privateKeyId: id(101), privateKeyTags: [id(401), id(1)] } },
        ],
        { privateKeyTagId: id(1), privateKeyIds: [id(102), id(101)] },
      ));

  it('creates a tag that no key carries', () =>
    given(...history)
      .when(createPrivateKeyTag, { privateKeyTagName: 'hot', privateKeyIds: [] })
      .then([{ type: 'PrivateKeyTagCreated', data: { tagId: id(1), tagName: 'hot' } }], {
        privateKeyTagId: id(1),
        privateKeyIds: [],
      }));

  it.each([
    [
      'a name that another has',
      { privateKeyTagName: 'cold', privateKeyIds: [] },
      new RegExp(
        `^private key tag label must be unique: \`cold\` is taken, it is the name of private key tag \`${id(401)}\`$`,
      ),
    ],
    ['an empty name', { privateKeyTagName: '', privateKeyIds: [] }, /privateKeyTagName: must have 1 to 255 char/],
    ['no list of keys', { privateKeyTagName: 'hot' }, /parameters\.privateKeyIds: is required/],
    [
      'a key named twice',
      { privateKeyTagName: 'hot', privateKeyIds: [id(101), id(101)] },
      /privateKeyIds: must not list an id twice/,
    ],
  ])('refuses %s', (_what, intent, message) =>
    given(...history)
      .when(createPrivateKeyTag, intent)
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('refuses a key that is not there', () =>
    given(...history)
      .when(createPrivateKeyTag, { privateKeyTagName: 'hot', privateKeyIds: [id(101), id(103)] })
      .thenRefused('NOT_FOUND', new RegExp(`^no private key \`${id(103)}\``)));

  it.each([
    ['a hundred and first', anOrganization(), 100],
    ['an eleventh of a sub-organization', anOrganization({ parentOrganizationId: id(701) }), 10],
  ])('refuses %s', (_what, organization, most) => {
    given(organization, ...tags(most - 1))
      .when(createPrivateKeyTag, { privateKeyTagName: 'last', privateKeyIds: [] })
      .then([expect.objectContaining({ type: 'PrivateKeyTagCreated' })], { privateKeyTagId: id(1), privateKeyIds: [] });
    given(organization, ...tags(most))
      .when(createPrivateKeyTag, { privateKeyTagName: 'more', privateKeyIds: [] })
      .thenRefused('RESOURCE_EXHAUSTED', new RegExp(`has ${most} private key tags, which is the limit`));
  });
});
