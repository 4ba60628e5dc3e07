/**
 * JSON Schema of the data of every event, made from the types in the sources by the compiler itself: what the types do not
 * say, the schema does not say either, and neither can go without the other.
 */
import { join } from 'node:path';
import ts from 'typescript';

/** Where the types of all events come together. */
const entry = { file: 'src/client/recorded-events.ts', type: 'EventDataByType' };

/** @returns the schema document: an event's data by its name under `$defs`, and the shapes that several have */
export function eventSchema(root) {
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(join(root, 'tsconfig.build.json'), ts.sys.readFile).config,
    ts.sys,
    root,
  );
  const file = join(root, entry.file);
  const program = ts.createProgram([file], { ...options, types: [], incremental: false, noEmit: true });
  const checker = program.getTypeChecker();
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)));
  const symbol = exported.find(({ name }) => name === entry.type) ?? fail(`${entry.type} is not in ${entry.file}`);
  const events = checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol));
  const shapes = new Shapes(checker);
  const names = events.map(({ name }) => name).sort();
  const data = new Map(names.map((name) => [name, shapes.of(checker.getTypeOfSymbol(find(events, name)))]));
  const definitions = [...data, ...shapes.named].sort(([one], [other]) => (one < other ? -1 : 1));
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Events of Countersign',
    description:
      'Made by `npm run docs` from the types. An event is `{ type, data, … }`; what `data` is follows from `type`. ' +
      'Members may be added in later releases, and none is ever renamed or removed.',
    type: 'object',
    properties: { type: { enum: names } },
    required: ['type', 'data'],
    allOf: names.map((name) => ({
      if: { properties: { type: { const: name } } },
      then: { properties: { data: { $ref: `#/$defs/${name}` } } },
    })),
    $defs: Object.fromEntries(definitions),
  };
}

const find = (symbols, wanted) => symbols.find(({ name }) => name === wanted);

/** Turns types into schemas. Named object types are defined once, under their names, and referred to. */
class Shapes {
  /** Schemas by name, those that are being made as undefined. */
  named = new Map();
  namesOf = new Map();

  constructor(checker) {
    this.checker = checker;
  }

  of(type) {
    const { flags } = type;
    if (flags & (ts.TypeFlags.Unknown | ts.TypeFlags.Any)) return {};
    if (flags & ts.TypeFlags.StringLiteral) return { const: type.value };
    if (flags & ts.TypeFlags.NumberLiteral) return { const: type.value };
    if (flags & ts.TypeFlags.BooleanLiteral) return { const: type.intrinsicName === 'true' };
    if (flags & ts.TypeFlags.TemplateLiteral) return { type: 'string' };
    if (flags & ts.TypeFlags.String) return { type: 'string' };
    if (flags & ts.TypeFlags.Number) return { type: 'number' };
    if (flags & ts.TypeFlags.Boolean) return { type: 'boolean' };
    if (flags & ts.TypeFlags.Null) return { type: 'null' };
    if (type.isUnion()) return this.union(type);
    if (flags & ts.TypeFlags.Object || type.isIntersection()) return this.object(type);
    return fail(`no schema for \`${this.checker.typeToString(type)}\``);
  }

  union(type) {
    const members = type.types.filter(({ flags }) => !(flags & ts.TypeFlags.Undefined));
    if (members.every(({ flags }) => flags & ts.TypeFlags.StringLiteral)) {
      return { enum: members.map(({ value }) => value).sort() };
    }
    if (members.every(({ flags }) => flags & ts.TypeFlags.BooleanLiteral) && members.length === 2) {
      return { type: 'boolean' };
    }
    const schemas = members.map((member) => this.of(member));
    const distinct = [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).entries()]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([, schema]) => schema);
    return distinct.length === 1 ? distinct[0] : { anyOf: distinct };
  }

  object(type) {
    if (this.checker.isTupleType(type)) {
      const items = this.checker.getTypeArguments(type).map((one) => this.of(one));
      return { type: 'array', prefixItems: items, items: false };
    }
    if (this.checker.isArrayType(type)) {
      return { type: 'array', items: this.of(this.checker.getTypeArguments(type)[0]) };
    }
    if (type.symbol?.name === 'DomainEvent') {
      const [{ value }] = this.checker.getTypeArguments(type);
      return {
        type: 'object',
        properties: { type: { const: value }, data: { $ref: `#/$defs/${value}` } },
        required: ['type', 'data'],
      };
    }
    const name = this.nameOf(type);
    if (name === undefined) return this.members(type);
    if (!this.named.has(name)) {
      this.named.set(name, undefined);
      this.named.set(name, this.members(type));
    }
    return { $ref: `#/$defs/${name}` };
  }

  /** Interfaces and aliases without parameters have a name of their own; two of the same name would be one definition. */
  nameOf(type) {
    if (type.aliasTypeArguments || this.checker.getTypeArguments(type).length > 0) return undefined;
    const symbol = type.aliasSymbol ?? (type.isClassOrInterface() ? type.symbol : undefined);
    if (!symbol) return undefined;
    const known = this.namesOf.get(symbol.name) ?? symbol;
    if (known !== symbol) fail(`two types are named ${symbol.name}`);
    this.namesOf.set(symbol.name, symbol);
    return symbol.name;
  }

  members(type) {
    const index = this.checker.getIndexInfoOfType(type, ts.IndexKind.String);
    const members = this.checker.getPropertiesOfType(type).sort((one, other) => (one.name < other.name ? -1 : 1));
    const required = members.filter(({ flags }) => !(flags & ts.SymbolFlags.Optional)).map(({ name }) => name);
    const properties = members.map((member) => {
      const about = ts.displayPartsToString(member.getDocumentationComment(this.checker)).replace(/\s+/g, ' ');
      const schema = this.of(this.checker.getTypeOfSymbol(member));
      return [member.name, about ? { description: about, ...schema } : schema];
    });
    return {
      type: 'object',
      properties: Object.fromEntries(properties),
      ...(required.length > 0 ? { required } : {}),
      ...(index ? { additionalProperties: this.of(index.type) } : {}),
    };
  }
}

/**
 * The same schema for whoever has recorded the events: nothing may be in an object that its type does not name.
 * @param schema what `eventSchema` gave
 */
export function closed(schema) {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  const isObject = inner.type === 'object' && inner.properties && !('allOf' in inner);
  return isObject ? { additionalProperties: false, ...inner } : inner;
}

function fail(reason) {
  throw new Error(`the schema of events cannot be made: ${reason}`);
}
