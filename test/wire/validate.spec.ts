import 'reflect-metadata';
import { validate } from '../../src/wire/validate.js';
import { CoordinatorError } from '../../src/domain/errors.js';
import fc from 'fast-check';
import { maxLength, minLength } from 'class-validator';
import { Email, hasCharacters, isEmail, ListOf, Nested, Text, TextList, Uuid, Whole } from '../../src/wire/fields.js';

class Leaf {
  @Text({ min: 1, max: 3 })
  name!: string;
}

class Base {
  @Uuid({ optional: true })
  id?: string;
}

class Tree extends Base {
  @Whole({ min: 0, max: 9 })
  size!: number;

  @Nested(() => Leaf, { optional: true })
  leaf?: Leaf;

  @ListOf(() => Leaf, { optional: true, max: 30 })
  leaves?: Leaf[];

  @TextList({ optional: true })
  notes?: string[];
}

function violationsOf(plain: object, path?: string): Record<string, string> {
  try {
    validate(Tree, plain, path);
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    expect({ code: error.code, category: error.category }).toEqual({
      code: 'INVALID_ARGUMENT',
      category: 'REQUEST_INVALID',
    });
    const { fieldViolations } = error.details[0] as unknown as {
      fieldViolations: { field: string; description: string }[];
    };
    return Object.fromEntries(fieldViolations.map(({ field, description }) => [field, description]));
  }
  return {};
}

test('creates instances of the classes, all the way down', () => {
  const tree = validate(Tree, { size: 1, leaf: { name: 'a' }, leaves: [{ name: 'b' }], notes: ['n'] });
  expect(tree).toBeInstanceOf(Tree);
  expect(tree.leaf).toBeInstanceOf(Leaf);
  expect(tree.leaves?.[0]).toBeInstanceOf(Leaf);
  expect({ ...tree, leaf: { ...tree.leaf }, leaves: [{ ...tree.leaves?.[0] }] }).toEqual({
    size: 1,
    leaf: { name: 'a' },
    leaves: [{ name: 'b' }],
    notes: ['n'],
  });
});

test('names every bad field, by its place, after the path', () => {
  expect(
    violationsOf({ id: 'x', size: 10, leaf: { name: '' }, leaves: [{ name: 'abc' }, { name: 'abcd' }] }, 'parameters'),
  ).toEqual({
    'parameters.id': 'must be a UUID, got `x`',
    'parameters.size': 'must be a whole number from 0 to 9, got `10`',
    'parameters.leaf.name': 'must have 1 to 3 characters, has 0',
    'parameters.leaves[1].name': 'must have 1 to 3 characters, has 4',
  });
  expect(violationsOf({})).toEqual({ size: 'is required' });
});

test('an unknown member is named at every depth, together with what else is wrong', () => {
  expect(violationsOf({ color: 1, leaf: { name: 'a', color: 1 }, leaves: [{ name: 'a' }, { color: 1 }] })).toEqual({
    color: 'is not a field of this request',
    'leaf.color': 'is not a field of this request',
    'leaves[1].color': 'is not a field of this request',
    size: 'is required',
    'leaves[1].name': 'is required',
  });
});

test.each(['constructor', 'toString', 'hasOwnProperty', 'valueOf', 'then', 'toJSON', 'prototype', 'length'])(
  'a member `%s` is unknown like any other, and not called',
  (name) => {
    const call = () => {
      throw new Error('was called');
    };
    for (const value of ['text', 1, {}, [], call]) {
      const member = Object.fromEntries([[name, value]]);
      expect(violationsOf({ size: 1, ...member })).toEqual({ [name]: 'is not a field of this request' });
      expect(violationsOf({ size: 1, leaf: { name: 'a', ...member } })).toEqual({
        [`leaf.${name}`]: 'is not a field of this request',
      });
    }
    // Where text is expected, an object with such a member is no text, and nothing worse.
    for (const value of ['text', {}, []]) {
      const member = Object.fromEntries([[name, value]]);
      expect(Object.keys(violationsOf({ size: 1, id: member }))).toEqual(['id']);
      expect(Object.keys(violationsOf({ size: member }))).toEqual(['size']);
      expect(Object.keys(violationsOf({ size: 1, notes: [member] }))).toEqual(['notes']);
    }
  },
);

test.each<[string, object]>([
  ['an object for a list', { leaves: { name: 'a' } }],
  ['an object that looks like a list', { leaves: { 0: { name: 'a' }, length: 1 } }],
  ['a list for an object', { leaf: [{ name: 'a' }] }],
  ['text for an object', { leaf: 'a' }],
  ['text in a list of objects', { leaves: ['a'] }],
  ['a list in a list of objects', { leaves: [[{ name: 'a' }]] }],
  ['null in a list of objects', { leaves: [null] }],
  ['null in a list of text', { notes: [null] }],
])('%s is refused', (_name, members) => {
  expect(Object.keys(violationsOf({ size: 1, ...members }))).not.toEqual([]);
});

test('a list that is too long is refused for that alone: no element is looked into', () => {
  let seen = 0;
  const leaf = Object.defineProperty({}, 'name', { enumerable: true, get: () => `${++seen}` });
  const leaves = Array<object>(31).fill(leaf);
  expect(violationsOf({ size: 10, leaves }, 'parameters')).toEqual({
    'parameters.leaves': 'must have 0 to 30 elements, has 31',
  });
  expect(seen).toBe(0);
  expect(violationsOf({ size: 1, leaves: leaves.slice(1) })).toEqual({});
  expect(seen).toBe(30);
});

test('at most twenty are reported, none of them at length', () => {
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x${index}`, 1]));
  expect(Object.keys(violationsOf({ size: 1, ...many }))).toHaveLength(20);
  const [name] = Object.keys(violationsOf({ size: 1, ['y'.repeat(10_000)]: 1 }));
  expect(name).toHaveLength(256);
});

test('characters are counted as class-validator counts them', () => {
  const piece = fc.constantFrom('a', '\n', 'é', '\ud83d\ude00', '\ud83d', '\ude00', '\ufe0f', '\ufe0e', '❤\ufe0f');
  const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''));
  fc.assert(
    fc.property(text, fc.nat(8), fc.nat(12), (value, min, max) => {
      expect(hasCharacters(value, min, max)).toBe(minLength(value, min) && maxLength(value, max));
    }),
    { numRuns: 2_000 },
  );
});

test('an e-mail address has 254 characters', () => {
  class Contact {
    @Email()
    email!: string;
  }
  const longest = `${'a'.repeat(64)}@${'b'.repeat(185)}.com`;
  expect([longest, `a${longest.slice(1)}m`].map(isEmail)).toEqual([true, false]);
  expect(validate(Contact, { email: longest }).email).toBe(longest);
  expect(() => validate(Contact, { email: `${longest}m` })).toThrow(
    'email: must be an e-mail address of at most 254 characters',
  );
});
