import { updatePrivateKeyTag } from '../../../src/activities/private-keys/update-private-key-tag.js';
import { anOrganization } from '../facts.js';
import { given, id } from '../given.js';
import { aPrivateKey, aPrivateKeyTag } from './keys.js';

const cold = id(401);
const hot = id(402);
const history = [
  anOrganization(),
  aPrivateKeyTag(cold, 'cold'),
  aPrivateKeyTag(hot, 'hot'),
  aPrivateKey(101, { privateKeyTags: [hot, cold] }),
  aPrivateKey(102),
];

describe('update private key tag', () => {
  it('renames the tag, gives it and takes it', () =>
    given(...history)
      .when(updatePrivateKeyTag, {
        privateKeyTagId: cold,
        newPrivateKeyTagName: 'frozen',
        addPrivateKeyIds: [id(102)],
        removePrivateKeyIds: [id(101)],
      })
      .then(
        [
          { type: 'PrivateKeyTagUpdated', data: { tagId: cold, tagName: 'frozen' } },
          { type: 'PrivateKeyUpdated', data: { privateKeyId: id(102), privateKeyTags: [cold] } },
          { type: 'PrivateKeyUpdated', data: { privateKeyId: id(101), privateKeyTags: [hot] } },
        ],
        { privateKeyTagId: cold },
      ));

  it('does nothing for keys that carry it already, or do not carry it', () =>
    given(...history)
      .when(updatePrivateKeyTag, {
        privateKeyTagId: cold,
        addPrivateKeyIds: [id(101)],
        removePrivateKeyIds: [id(102)],
      })
      .then([], { privateKeyTagId: cold }));

  it.each([{}, { addPrivateKeyIds: [], removePrivateKeyIds: [] }])(
    'changes nothing when nothing is sent: %j',
    (changes) =>
      given(...history)
        .when(updatePrivateKeyTag, { privateKeyTagId: cold, ...changes })
        .then([], { privateKeyTagId: cold }),
  );

  it('keeps its own name', () =>
    given(...history)
      .when(updatePrivateKeyTag, { privateKeyTagId: cold, newPrivateKeyTagName: 'cold' })
      .then([{ type: 'PrivateKeyTagUpdated', data: { tagId: cold, tagName: 'cold' } }], { privateKeyTagId: cold }));

  it.each([
    ['the name of another', { newPrivateKeyTagName: 'hot' }, /^private key tag label must be unique: `hot`/],
    [
      'a key in both lists',
      { addPrivateKeyIds: [id(102), id(101)], removePrivateKeyIds: [id(101)] },
      new RegExp(`removePrivateKeyIds: lists private key \`${id(101)}\`, which is also in addPrivateKeyIds`),
    ],
  ])('refuses %s', (_what, changes, message) =>
    given(...history)
      .when(updatePrivateKeyTag, { privateKeyTagId: cold, ...changes })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it.each([
    ['tag', { privateKeyTagId: id(403), addPrivateKeyIds: [id(101)] }, /^no private key tag `/],
    ['key to give it to', { privateKeyTagId: cold, addPrivateKeyIds: [id(103)] }, /^no private key `/],
    ['key to take it from', { privateKeyTagId: cold, removePrivateKeyIds: [id(103)] }, /^no private key `/],
  ])('refuses a %s that is not there', (_what, intent, message) =>
    given(...history)
      .when(updatePrivateKeyTag, intent)
      .thenRefused('NOT_FOUND', message),
  );
});
