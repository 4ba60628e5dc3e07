import { generateApiKeyPair, stampBody } from '../../src/stamps/sign.js';
import { decodeBase64 } from '../../src/stamps/header.js';
import { readSessionHeader } from '../../src/stamps/session-header.js';
import { readStamp } from '../../src/stamps/verify.js';
import { refusedWith } from './refused-with.js';
import { SoftwareAuthenticator } from './software-authenticator.js';

const key = generateApiKeyPair((length) => new Uint8Array(length).fill(9));
const honest = stampBody('{}', key).headerValue;
const members = JSON.parse(Buffer.from(honest, 'base64url').toString()) as Record<string, string>;
const apiKey = (content: unknown): string =>
  Buffer.from(typeof content === 'string' ? content : JSON.stringify(content)).toString('base64url');
const passkey = new SoftwareAuthenticator();
const assertion = passkey.assert({ body: '{}' });

describe('X-Stamp', () => {
  test('is read whatever the spelling of its base64 and the order of its members', () => {
    const expected = {
      kind: 'api-key',
      scheme: 'SIGNATURE_SCHEME_TK_API_P256',
      publicKey: key.publicKey,
      signature: members['signature'],
    };
    const reversed = Object.fromEntries(Object.entries(members).reverse());
    // Spaces vary the length, so that every amount of padding occurs.
    for (const text of [members, reversed].flatMap((value) => ['', ' ', '  '].map((s) => JSON.stringify(value) + s))) {
      const bytes = Buffer.from(text);
      for (const header of [
        bytes.toString('base64url'),
        bytes.toString('base64'),
        bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_'),
      ]) {
        expect(readStamp({ 'x-stamp': header })).toEqual(expected);
        expect(readStamp({ 'x-stamp': [header], host: 'localhost' })).toEqual(expected);
      }
    }
  });

  test('normalizes the public key and the letter case of the signature', () => {
    const shouting = {
      ...members,
      publicKey: key.publicKey.toUpperCase(),
      signature: members['signature']?.toUpperCase(),
    };
    expect(readStamp({ 'x-stamp': apiKey(shouting) })).toEqual(readStamp({ 'x-stamp': honest }));
  });

  test.each([
    ['garbage', '!!!', 'it is not base64url'],
    ['empty', '', 'it is not valid JSON'],
    ['raw JSON', JSON.stringify(members), 'sent more than once'],
    ['mixed alphabets', `${Buffer.from('{"a":"??>>"}').toString('base64')}-_`, 'it is not base64url'],
    ['too much padding', `${honest}====`, 'it is not base64url'],
    ['a space inside', `${honest.slice(0, 8)} ${honest.slice(8)}`, 'it is not base64url'],
    ['bits beyond the last byte', `${Buffer.from('{}').toString('base64url').slice(0, -1)}1`, 'it is not base64url'],
    ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url'), 'UTF-8'],
    ['byte order mark', apiKey(`\ufeff${JSON.stringify(members)}`), 'it is not valid JSON'],
    ['not JSON', apiKey('{publicKey:1}'), 'it is not valid JSON'],
    ['a JSON array', apiKey([members]), 'it is not a JSON object'],
    ['JSON null', apiKey('null'), 'it is not a JSON object'],
    ['a JSON string', apiKey('"x"'), 'it is not a JSON object'],
    ['extra member', apiKey({ ...members, extra: 'x' }), 'member `extra` is unknown'],
    ['extra member with a name every object has', apiKey({ ...members, toString: 1 }), 'member `toString` is unknown'],
    ['extra member __proto__', apiKey(`{"__proto__":{},${JSON.stringify(members).slice(1)}`), '`__proto__` is unknown'],
    ['member twice', apiKey(`{"signature":"00",${JSON.stringify(members).slice(1)}`), 'it has a duplicate member'],
    [
      'member twice, escaped',
      apiKey(`{"\\u0073ignature":"00",${JSON.stringify(members).slice(1)}`),
      'it has a duplicate member',
    ],
    ['publicKey missing', apiKey({ ...members, publicKey: undefined }), 'member publicKey is missing'],
    ['scheme missing', apiKey({ ...members, scheme: undefined }), 'member scheme is missing'],
    ['signature missing', apiKey({ ...members, signature: undefined }), 'member signature is missing'],
    ['signature a number', apiKey({ ...members, signature: 5 }), 'member signature is not a string'],
    ['publicKey null', apiKey({ ...members, publicKey: null }), 'member publicKey is not a string'],
    ['unknown scheme', apiKey({ ...members, scheme: 'none' }), 'scheme `none` is unknown: use one of SIGNATURE_'],
    ['scheme of no table', apiKey({ ...members, scheme: 'constructor' }), 'scheme `constructor` is unknown'],
    [
      'WebAuthn scheme',
      apiKey({ ...members, scheme: 'SIGNATURE_SCHEME_TK_WEBAUTHN' }),
      'scheme `SIGNATURE_SCHEME_TK_WEBAUTHN` is unknown',
    ],
    ['signature not hex', apiKey({ ...members, signature: '0xab' }), 'signature is not hex'],
    ['empty signature', apiKey({ ...members, signature: '' }), 'signature is not hex'],
    ['key not hex', apiKey({ ...members, publicKey: 'zz' }), 'P-256 public key `zz` is not hex'],
    ['key off the curve', apiKey({ ...members, publicKey: `02${'ff'.repeat(32)}` }), 'is not a point on the curve'],
    ['100 kB', 'A'.repeat(100_000), 'it has 100000 characters: at most 8192 are allowed'],
  ])('refuses: %s', (_, header, reason) => {
    expect(() => readStamp({ 'x-stamp': header })).toThrow(
      refusedWith('UNAUTHENTICATED', /^could not read the X-Stamp header: /, 'SIGNATURE_INVALID'),
    );
    expect(() => readStamp({ 'x-stamp': header })).toThrow(reason);
  });
});

describe('X-Stamp-WebAuthn', () => {
  const sent = JSON.parse(assertion) as Record<string, string>;

  test('is raw JSON; its members end as base64url without padding', () => {
    const expected = { kind: 'webauthn', scheme: 'SIGNATURE_SCHEME_TK_WEBAUTHN', ...sent };
    expect(readStamp({ 'x-stamp-webauthn': assertion })).toEqual(expected);
    const standard = Object.fromEntries(
      Object.entries(sent).map(([name, value]) => [name, Buffer.from(value, 'base64url').toString('base64')]),
    );
    expect(readStamp({ 'x-stamp-webauthn': JSON.stringify(standard) })).toEqual(expected);
  });

  test.each([
    ['base64', Buffer.from(assertion).toString('base64url'), 'it is not valid JSON'],
    ['sent twice and joined', `${assertion}, ${assertion}`, 'it is not valid JSON'],
    ['an array', `[${assertion}]`, 'it is not a JSON object'],
    ['extra member', JSON.stringify({ ...sent, userHandle: '' }), 'member `userHandle` is unknown'],
    ['the DOM spelling', assertion.replace('clientDataJson', 'clientDataJSON'), 'member clientDataJson is missing'],
    ['wrong type', JSON.stringify({ ...sent, signature: [] }), 'member signature is not a string'],
    ['member twice', `{"signature":"AA",${assertion.slice(1)}`, 'it has a duplicate member'],
    ['not base64', JSON.stringify({ ...sent, authenticatorData: '*' }), 'authenticatorData is not base64url'],
    ['empty member', JSON.stringify({ ...sent, credentialId: '' }), 'credentialId is not base64url'],
    ['100 kB', ' '.repeat(100_000), 'at most 8192 are allowed'],
  ])('refuses: %s', (_, header, reason) => {
    expect(() => readStamp({ 'x-stamp-webauthn': header })).toThrow(
      refusedWith('UNAUTHENTICATED', /^could not read the X-Stamp-WebAuthn header: /, 'SIGNATURE_INVALID'),
    );
    expect(() => readStamp({ 'x-stamp-webauthn': header })).toThrow(reason);
  });
});

test('a missing stamp is answered with the text that clients know', () => {
  for (const headers of [{}, { host: 'localhost' }, { 'x-stamp': undefined }, { 'x-stamp': [] }]) {
    expect(() => readStamp(headers)).toThrow(
      refusedWith(
        'UNAUTHENTICATED',
        /^cannot authenticate public API activity request without a stamp \(X-Stamp\/X-Stamp-Webauthn header\)/,
        'SIGNATURE_MISSING',
      ),
    );
  }
});

test.each([
  ['the same header twice', { 'x-stamp': [honest, honest] }, 'it was sent more than once'],
  ['the same header twice, joined as Node does', { 'x-stamp': `${honest}, ${honest}` }, 'it was sent more than once'],
  ['a passkey twice', { 'x-stamp-webauthn': [assertion, assertion] }, 'it was sent more than once'],
  ['both headers', { 'x-stamp': honest, 'x-stamp-webauthn': assertion }, 'send exactly one stamp'],
  ['both headers, one empty', { 'x-stamp': '', 'x-stamp-webauthn': assertion }, 'send exactly one stamp'],
])('refuses more than one stamp: %s', (_, headers, reason) => {
  expect(() => readStamp(headers)).toThrow(refusedWith('UNAUTHENTICATED', 'could not read', 'SIGNATURE_INVALID'));
  expect(() => readStamp(headers)).toThrow(reason);
});

test('X-Session has 1 024 characters', () => {
  const token = 's'.repeat(1_024);
  expect(readSessionHeader({ 'x-session': token })).toEqual({ kind: 'session', token });
  expect(() => readSessionHeader({ 'x-session': `${token}s` })).toThrow('at most 1024 are allowed');
});

test('decodeBase64 accepts every length in both alphabets and no second spelling', () => {
  for (let length = 0; length < 40; length++) {
    const bytes = Buffer.alloc(length, 0xfb);
    const [standard, url] = [bytes.toString('base64'), bytes.toString('base64url')];
    for (const text of [standard, url, standard.replaceAll('=', '')]) expect(decodeBase64(text)).toEqual(bytes);
    expect(decodeBase64(`${url}\n`)).toBeUndefined();
    expect(
      decodeBase64(`${url}=`.replace(/^(.*)$/, (text) => (text.length % 4 === 0 ? `${text}=` : text))),
    ).toBeUndefined();
  }
});
