import { deletePrivateKeyTags } from '../../../src/activities/private-keys/delete-private-key-tags.js';
import { anOrganization } from '../facts.js';
import { given, id } from '../given.js';
import { aPrivateKey, aPrivateKeyTag } from './keys.js';

const [cold, hot, old] = [id(401), id(402), id(403)];
const history = [
  anOrganization(),
  aPrivateKeyTag(cold, 'cold'),
  aPrivateKeyTag(hot, 'hot'),
  aPrivateKeyTag(old, 'old'),
  aPrivateKey(101, { privateKeyTags: [hot, cold] }),
  aPrivateKey(102, { privateKeyTags: [old] }),
  aPrivateKey(103, { privateKeyTags: [old, hot, cold] }),
];

describe('delete private key tags', () => {
  it('deletes the tags, and takes them from the keys that carry them', () =>
    given(...history)
      .when(deletePrivateKeyTags, { privateKeyTagIds: [hot, cold] })
      .then(
        [
          { type: 'PrivateKeyUpdated', data: { privateKeyId: id(101), privateKeyTags: [] } },
          { type: 'PrivateKeyUpdated', data: { privateKeyId: id(103), privateKeyTags: [old] } },
          { type: 'PrivateKeyTagDeleted', data: { tagId: hot } },
          { type: 'PrivateKeyTagDeleted', data: { tagId: cold } },
        ],
        { privateKeyTagIds: [hot, cold], privateKeyIds: [id(101), id(103)] },
      ));

  it('refuses all when one is not there', () =>
    given(...history)
      .when(deletePrivateKeyTags, { privateKeyTagIds: [hot, id(404)] })
      .thenRefused('NOT_FOUND', new RegExp(`^no private key tag \`${id(404)}\``)));

  it('refuses an empty list', () =>
    given(...history)
      .when(deletePrivateKeyTags, { privateKeyTagIds: [] })
      .thenRefused('INVALID_ARGUMENT', /must have 1 to 100 elements, has 0/));
});
