import { readForm } from '../../src/domain/activity/recorded-form.js';
import { sealableMembers, SealedValue } from '../../src/domain/sealable.js';

const sealed = { sealed: 'bm9uY2U=', key: 'key-of-a-person' };

/** Data in which the member at that path is sealed, and nothing else is. */
const withSealed = (path: string): unknown =>
  path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), sealed);

const all = Object.entries(sealableMembers).flatMap(([type, paths = []]) => paths.map((path) => [type, path] as const));

test.each(all)('a reader of `%s` with a sealed `%s` gets an error that names the key', (type, path) => {
  expect(() => readForm(type, withSealed(path))).toThrow(new SealedValue(type, path, 'key-of-a-person'));
  try {
    readForm(type, withSealed(path));
  } catch (error) {
    expect(error).toMatchObject({
      code: 'UNAVAILABLE',
      message: `\`${path}\` of an event \`${type}\` is sealed under key \`key-of-a-person\`, which is not available: start a release that can open it`,
    });
  }
});

test('other members with the same content are a caller’s own', () => {
  const data = { settings: { emailCustomizationParams: sealed } };
  expect(readForm('AuthProxyUpdated', data)).toBe(data);
  const user = { userId: 'u', userTags: [], userName: 'Ann', userEmail: 'ann@example.com' };
  expect(readForm('UserCreated', user)).toBe(user);
});
