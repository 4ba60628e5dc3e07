import { generateApiKeyPair, stampBody } from '../../src/stamps/sign.js';
import { signatureOf } from '../../src/stamps/attested.js';
import { readStamp, verifyApiKeyStamp } from '../../src/stamps/verify.js';
import { refusedWith } from './refused-with.js';

const key = generateApiKeyPair((length) => new Uint8Array(length).fill(9));
const body = Buffer.from('{"a":1}');
const { signature } = JSON.parse(Buffer.from(stampBody(body, key).headerValue, 'base64url').toString()) as {
  signature: string;
};
const members = {
  publicKeyAttestation: 'header.claims.signature',
  scheme: 'STAMP_ATTESTED_SCHEME_P256_OIDC',
  publicKey: key.publicKey,
  signature,
};
const read = (content: unknown) => {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  return readStamp({ 'x-stamp-attested': Buffer.from(text).toString('base64url') });
};
const expected = {
  kind: 'attested',
  scheme: 'SIGNATURE_SCHEME_TK_ATTESTED_P256',
  attestedBy: 'STAMP_ATTESTED_SCHEME_P256_OIDC',
  token: 'header.claims.signature',
  publicKey: key.publicKey,
  signature,
};

test('is read as base64url, as base64, and as plain JSON, whatever the order of its members', () => {
  const reversed = Object.fromEntries(Object.entries(members).reverse());
  for (const text of [members, reversed].map((one) => JSON.stringify(one))) {
    const bytes = Buffer.from(text);
    for (const header of [bytes.toString('base64url'), bytes.toString('base64'), text, ` ${text}`]) {
      expect(readStamp({ 'x-stamp-attested': header })).toEqual(expected);
    }
  }
  const attestedBy = 'STAMP_ATTESTED_SCHEME_P256_VERIFICATION_TOKEN';
  expect(read({ ...members, scheme: attestedBy })).toEqual({ ...expected, attestedBy });
  expect(read({ ...members, signature: signature.toUpperCase() })).toEqual(expected);
});

test('its signature is one over the bytes of the body by its key', async () => {
  const stamp = readStamp({ 'x-stamp-attested': JSON.stringify(members) });
  if (stamp.kind !== 'attested') throw new Error('another stamp');
  await verifyApiKeyStamp(signatureOf(stamp), body);
  await expect(verifyApiKeyStamp(signatureOf(stamp), Buffer.from('{"a":2}'))).rejects.toThrow(
    refusedWith('UNAUTHENTICATED', 'could not verify api key signature', 'SIGNATURE_INVALID'),
  );
});

const { publicKeyAttestation: _token, ...withoutToken } = members;

test.each([
  ['a scheme of another stamp', { ...members, scheme: 'SIGNATURE_SCHEME_TK_API_P256' }, 'is unknown: use one of'],
  ['the name of a method', { ...members, scheme: 'constructor' }, 'is unknown: use one of'],
  ['no token', withoutToken, 'member publicKeyAttestation is missing'],
  ['a token that is no text', { ...members, publicKeyAttestation: {} }, 'is not a string'],
  ['one member more', { ...members, more: '' }, 'member `more` is unknown'],
  ['a member twice', JSON.stringify(members).replace('{', '{"scheme":"x",'), 'it has a duplicate member'],
  ['a signature that is not hex', { ...members, signature: `0x${signature}` }, 'signature is not hex'],
  ['a key in capitals', { ...members, publicKey: key.publicKey.toUpperCase() }, 'in lower-case hex'],
  ['an uncompressed key', { ...members, publicKey: `04${'ab'.repeat(64)}` }, 'is not a compressed P-256 key'],
  ['no key', { ...members, publicKey: '' }, 'is not a compressed P-256 key'],
  ['a list', [members], 'it is not a JSON object'],
  ['half of it', JSON.stringify(members).slice(0, -5), 'it is not valid JSON'],
])('is refused with %s', (_what, content, message) => {
  const refusal = refusedWith('UNAUTHENTICATED', message, 'SIGNATURE_INVALID');
  expect(() => read(content)).toThrow(refusal);
  if (typeof content === 'string' && content.startsWith('{')) {
    expect(() => readStamp({ 'x-stamp-attested': content })).toThrow(refusal);
  }
});

test('is refused if it is not base64, too long, sent twice, or beside another stamp', () => {
  const refused = (message: string) => refusedWith('UNAUTHENTICATED', message, 'SIGNATURE_INVALID');
  expect(() => readStamp({ 'x-stamp-attested': 'ä' })).toThrow(refused('it is not base64url'));
  expect(() => read({ ...members, publicKeyAttestation: 'x'.repeat(14_336) })).toThrow(
    refused('at most 14336 are allowed'),
  );
  const header = Buffer.from(JSON.stringify(members)).toString('base64url');
  expect(() => readStamp({ 'x-stamp-attested': [header, header] })).toThrow(refused('more than once'));
  expect(() => readStamp({ 'x-stamp-attested': `${header}, ${header}` })).toThrow(refused('more than once'));
  const other = stampBody(body, key).headerValue;
  expect(() => readStamp({ 'x-stamp': other, 'x-stamp-attested': header })).toThrow(refused('exactly one stamp'));
  expect(() => readStamp({ 'x-stamp-webauthn': '{}', 'x-stamp-attested': header })).toThrow(
    refused('exactly one stamp'),
  );
});
