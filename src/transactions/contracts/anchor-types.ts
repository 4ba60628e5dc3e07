import { isObject, quoted } from '../refusals.js';
import { bad, checkName, MAX_NESTING, type InterfaceSize } from './interface-size.js';

export interface BorshField {
  readonly name: string;
  readonly type: BorshType;
}

export type BorshType =
  | { readonly kind: 'bool' | 'string' | 'bytes' | 'publicKey' }
  | { readonly kind: 'unsigned' | 'signed' | 'float'; readonly size: number }
  | { readonly kind: 'option' | 'vec'; readonly of: BorshType }
  | { readonly kind: 'array'; readonly of: BorshType; readonly length: number }
  | { readonly kind: 'struct'; readonly fields: BorshFields }
  | { readonly kind: 'enum'; readonly variants: readonly { readonly name: string; readonly fields: BorshFields }[] };

/** Named fields, or the unnamed ones of a tuple. */
export type BorshFields = readonly BorshField[] | { readonly tuple: readonly BorshType[] };

const PRIMITIVES: Readonly<Record<string, BorshType>> = {
  bool: { kind: 'bool' },
  string: { kind: 'string' },
  bytes: { kind: 'bytes' },
  publicKey: { kind: 'publicKey' },
  pubkey: { kind: 'publicKey' },
  f32: { kind: 'float', size: 4 },
  f64: { kind: 'float', size: 8 },
  ...Object.fromEntries(
    [8, 16, 32, 64, 128, 256].flatMap((bits): [string, BorshType][] => [
      [`u${bits}`, { kind: 'unsigned', size: bits / 8 }],
      [`i${bits}`, { kind: 'signed', size: bits / 8 }],
    ]),
  ),
};

/** What the generic parameters of a type stand for: types, and lengths of arrays. */
type Generics = ReadonlyMap<string, BorshType | number>;
const NO_GENERICS: Generics = new Map();

/**
 * The types of an IDL. They are read where an instruction uses them; those of accounts and events only need not be known
 * here.
 */
export class IdlTypes {
  readonly #definitions = new Map<string, Readonly<Record<string, unknown>>>();
  /** By name and generic arguments: a type used in many places is one object, so that the whole is no larger than the IDL. */
  readonly #types = new Map<string, BorshType>();
  readonly #beingRead = new Set<string>();
  readonly #typeIds = new Map<BorshType, number>();
  readonly #size: InterfaceSize;

  constructor(size: InterfaceSize) {
    this.#size = size;
  }

  /** Takes a definition, to be read when something is of that type. */
  define(definition: unknown, place: string): void {
    if (!isObject(definition) || typeof definition.name !== 'string' || !isObject(definition.type)) {
      throw bad(`${place} is ${quoted(definition)}; send { name, type }`);
    }
    this.#size.part();
    checkName(definition.name, `${place}.name`);
    if (this.#definitions.has(definition.name)) throw bad(`${place}.name ${quoted(definition.name)} is taken`);
    this.#definitions.set(definition.name, definition);
  }

  /** Fields with names, such as the arguments of an instruction. */
  fields(fields: unknown, place: string): readonly BorshField[] {
    return this.#namedFields(fields, place, NO_GENERICS, 0);
  }

  #namedFields(fields: unknown, place: string, generics: Generics, depth: number): readonly BorshField[] {
    if (!Array.isArray(fields)) throw bad(`${place} is ${quoted(fields)}; send a list of { name, type }`);
    const names = new Set<string>();
    return fields.map((field: unknown, at): BorshField => {
      const inner = `${place}[${at}]`;
      this.#size.part();
      if (!isObject(field) || typeof field.name !== 'string') {
        throw bad(`${inner} is ${quoted(field)}; send { name, type }`);
      }
      checkName(field.name, `${inner}.name`);
      if (names.has(field.name)) throw bad(`${inner}.name ${quoted(field.name)} is taken by another field`);
      names.add(field.name);
      return { name: field.name, type: this.#type(field.type, `${inner}.type`, generics, depth + 1) };
    });
  }

  /** The fields of a struct or of a variant: named ones, types only, or none. */
  #anyFields(fields: unknown, place: string, generics: Generics, depth: number): BorshFields {
    if (fields === undefined || fields === null) return [];
    if (!Array.isArray(fields)) throw bad(`${place} is ${quoted(fields)}; send a list`);
    const isNamed = fields.every((field: unknown) => isObject(field) && typeof field.name === 'string');
    if (isNamed) return this.#namedFields(fields, place, generics, depth);
    return {
      tuple: fields.map((type: unknown, at) => {
        this.#size.part();
        return this.#type(type, `${place}[${at}]`, generics, depth + 1);
      }),
    };
  }

  #type(type: unknown, place: string, generics: Generics, depth: number): BorshType {
    if (depth > MAX_NESTING) throw bad(`${place} is nested deeper than ${MAX_NESTING} levels`);
    if (typeof type === 'string' && Object.hasOwn(PRIMITIVES, type)) return PRIMITIVES[type]!;
    const [kind, ...others] = isObject(type) ? Object.keys(type) : [];
    if (isObject(type) && kind !== undefined && others.length === 0) {
      const content = type[kind];
      switch (kind) {
        case 'vec':
        case 'option':
          return this.#made(kind, this.#type(content, `${place}.${kind}`, generics, depth + 1));
        case 'array':
          return this.#array(content, `${place}.array`, generics, depth);
        case 'defined':
          return this.#defined(content, `${place}.defined`, generics, depth);
        case 'generic': {
          const meant = typeof content === 'string' ? generics.get(content) : undefined;
          if (meant !== undefined && typeof meant !== 'number') return meant;
        }
      }
    }
    throw bad(`${place} is ${quoted(type)}, which is no type of an Anchor IDL`);
  }

  #array(content: unknown, place: string, generics: Generics, depth: number): BorshType {
    const [of, size, ...rest] = Array.isArray(content) ? (content as unknown[]) : [];
    const length = isObject(size) && typeof size.generic === 'string' ? generics.get(size.generic) : size;
    if (typeof length !== 'number' || !Number.isSafeInteger(length) || length < 0 || rest.length > 0) {
      throw bad(`${place} is ${quoted(content)}; send [type, length]`);
    }
    return this.#made('array', this.#type(of, place, generics, depth + 1), length);
  }

  /** The same types make the same type: instances of generic types are told apart by what they are made of. */
  #made(kind: 'option' | 'vec', of: BorshType): BorshType;
  #made(kind: 'array', of: BorshType, length: number): BorshType;
  #made(kind: 'option' | 'vec' | 'array', of: BorshType, length = 0): BorshType {
    const key = JSON.stringify([kind, this.#idOf(of), length]);
    const known = this.#types.get(key);
    if (known !== undefined) return known;
    this.#size.type();
    const made: BorshType = kind === 'array' ? { kind, of, length } : { kind, of };
    this.#types.set(key, made);
    return made;
  }

  #defined(content: unknown, place: string, generics: Generics, depth: number): BorshType {
    const name = isObject(content) ? content.name : content;
    const definition = typeof name === 'string' ? this.#definitions.get(name) : undefined;
    if (typeof name !== 'string' || definition === undefined || !isObject(definition.type)) {
      throw bad(`${place} is ${quoted(content)}, which is not in types`);
    }
    const input = isObject(content) ? (content.generics ?? []) : [];
    const bound = this.#bind(definition.generics ?? [], input, place, generics, depth);
    const key = JSON.stringify(['defined', name, ...[...bound.values()].map((value) => this.#idOf(value))]);
    const known = this.#types.get(key);
    if (known !== undefined) return known;
    // Such a type could be nested without end, and no limit would be the right one for it.
    if (this.#beingRead.has(name)) throw bad(`${place} is ${quoted(name)}, which contains itself`);
    this.#size.type();
    this.#beingRead.add(name);
    const type = this.#definition(definition.type, `type ${name}`, bound, depth);
    this.#beingRead.delete(name);
    this.#types.set(key, type);
    return type;
  }

  #bind(declared: unknown, input: unknown, place: string, generics: Generics, depth: number): Generics {
    if (!Array.isArray(declared) || !Array.isArray(input) || declared.length !== input.length) {
      throw bad(`${place} has generic arguments ${quoted(input)} for the parameters ${quoted(declared)}`);
    }
    return new Map(
      declared.map((parameter: unknown, at): [string, BorshType | number] => {
        const argument: unknown = input[at];
        this.#size.part();
        if (!isObject(parameter) || typeof parameter.name !== 'string' || !isObject(argument)) {
          throw bad(`${place} has the generic argument ${quoted(argument)}; send { kind, type } or { kind, value }`);
        }
        if (parameter.kind === 'const') return [parameter.name, Number(argument.value)];
        return [parameter.name, this.#type(argument.type, `${place}.generics[${at}]`, generics, depth + 1)];
      }),
    );
  }

  #definition(
    definition: Readonly<Record<string, unknown>>,
    place: string,
    generics: Generics,
    depth: number,
  ): BorshType {
    switch (definition.kind) {
      case 'struct':
        return { kind: 'struct', fields: this.#anyFields(definition.fields, `${place}.fields`, generics, depth) };
      case 'enum':
        return { kind: 'enum', variants: this.#variants(definition.variants, `${place}.variants`, generics, depth) };
      case 'type':
        return this.#type(definition.alias, `${place}.alias`, generics, depth + 1);
      case 'alias':
        return this.#type(definition.value, `${place}.value`, generics, depth + 1);
      default:
        throw bad(`${place} has the kind ${quoted(definition.kind)}; send struct, enum or type`);
    }
  }

  #variants(
    variants: unknown,
    place: string,
    generics: Generics,
    depth: number,
  ): { readonly name: string; readonly fields: BorshFields }[] {
    if (!Array.isArray(variants)) throw bad(`${place} is ${quoted(variants)}; send a list`);
    return variants.map((variant: unknown, at) => {
      const inner = `${place}[${at}]`;
      this.#size.part();
      if (!isObject(variant) || typeof variant.name !== 'string') {
        throw bad(`${inner} is ${quoted(variant)}; send { name, fields }`);
      }
      checkName(variant.name, `${inner}.name`);
      return { name: variant.name, fields: this.#anyFields(variant.fields, `${inner}.fields`, generics, depth) };
    });
  }

  #idOf(value: BorshType | number): string {
    if (typeof value === 'number') return String(value);
    const id = this.#typeIds.get(value) ?? this.#typeIds.size;
    this.#typeIds.set(value, id);
    return `#${id}`;
  }
}
