import { exportPrivateKey } from '../../../src/activities/private-keys/export-private-key.js';
import { emptyOrganization, evolve } from '../../../src/domain/organization/organization.js';
import { anOrganization, publicKeyOf } from '../facts.js';
import { given, id } from '../given.js';
import { aPrivateKey } from './keys.js';

const targetPublicKey = publicKeyOf(1);
const history = [anOrganization(), aPrivateKey(101, { privateKeyTags: [id(401)], imported: true })];

describe('export private key', () => {
  it('marks the key as exported, and answers the bundle', () =>
    given(...history)
      .when(exportPrivateKey, { privateKeyId: id(101), targetPublicKey }, { prepared: 'bundle' })
      .then([{ type: 'PrivateKeyExported', data: { privateKeyId: id(101) } }], {
        privateKeyId: id(101),
        exportBundle: 'bundle',
      }));

  it.each([
    ['is not hexadecimal', '0x04', /targetPublicKey: must be bytes in hexadecimal without 0x/],
    ['is too long', '04'.repeat(66), /targetPublicKey: must be at most 130 hexadecimal characters/],
    ['is not a point', `02${'ff'.repeat(32)}`, /parameters\.targetPublicKey: `02f+` is not a point on CURVE_P256/],
    ['is a key of another curve', publicKeyOf(1, 'API_KEY_CURVE_ED25519'), /is not a SEC1 point/],
  ])('refuses a target key that %s', (_what, key, message) =>
    given(...history)
      .when(exportPrivateKey, { privateKeyId: id(101), targetPublicKey: key })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('refuses a key that is not there, also when it was there as the bundle was made', () =>
    given(...history, { type: 'PrivateKeyDeleted', data: { privateKeyId: id(101), vaultId: id(10_101) } })
      .when(exportPrivateKey, { privateKeyId: id(101), targetPublicKey }, { prepared: 'bundle' })
      .thenRefused('NOT_FOUND', new RegExp(`^no private key \`${id(101)}\``)));

  it('shows policies the key', () => {
    const organization = emptyOrganization();
    for (const event of history) evolve(organization, event, 0);
    const resources = () => exportPrivateKey.resources!({ privateKeyId: id(101), targetPublicKey }, organization);
    const seen = { id: id(101), label: 'key 101', tags: [id(401)], imported: true };
    expect(resources()).toEqual({ private_key: { ...seen, exported: false } });
    evolve(organization, { type: 'PrivateKeyExported', data: { privateKeyId: id(101) } }, 0);
    expect(resources()).toEqual({ private_key: { ...seen, exported: true } });
  });
});
