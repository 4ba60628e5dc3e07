/** JSON Schema (draft 2020-12, as in OpenAPI 3.1); `$shape` stands for a class that `schemaOf` turns into a `$ref`. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly $ref?: string;
  readonly $shape?: () => abstract new () => object;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly [keyword: string]: unknown;
}

interface Field {
  readonly schema: JsonSchema;
  readonly required: boolean;
}

const fieldsOf = new WeakMap<object, Map<string, Field>>();

/** Registers a field of a wire class; called by the decorators of `fields.ts`. */
export function recordField(prototype: object, name: string, field: Field): void {
  const own = fieldsOf.get(prototype) ?? new Map<string, Field>();
  fieldsOf.set(prototype, own.set(name, field));
}

/** The fields of a wire class, inherited ones first, in source order. */
export function fieldsOfShape(shape: abstract new () => object): ReadonlyMap<string, Field> {
  const chain: Map<string, Field>[] = [];
  for (let prototype: unknown = shape.prototype; prototype && prototype !== Object.prototype;) {
    const own = fieldsOf.get(prototype);
    if (own) chain.unshift(own);
    prototype = Object.getPrototypeOf(prototype);
  }
  return new Map(chain.flatMap((fields) => [...fields]));
}

/**
 * The JSON Schema of a wire class, with every class it refers to in `components` under its own name.
 * @throws if two different classes share a name: the document would describe only one of them
 */
export function schemaOf(
  shape: abstract new () => object,
  components: Map<string, { readonly shape: unknown; schema: JsonSchema }>,
): JsonSchema {
  const known = components.get(shape.name);
  if (known && known.shape !== shape) throw new Error(`two wire classes are named \`${shape.name}\``);
  if (!known) {
    const entry = { shape, schema: {} as JsonSchema };
    components.set(shape.name, entry);
    const fields = [...fieldsOfShape(shape)];
    const required = fields.filter(([, field]) => field.required).map(([name]) => name);
    entry.schema = {
      type: 'object',
      properties: Object.fromEntries(fields.map(([name, field]) => [name, resolve(field.schema, components)])),
      ...(required.length ? { required } : {}),
    };
  }
  return { $ref: `#/components/schemas/${shape.name}` };
}

function resolve(schema: JsonSchema, components: Parameters<typeof schemaOf>[1]): JsonSchema {
  const { $shape, ...rest } = schema;
  if ($shape) return { ...schemaOf($shape(), components), ...rest };
  return {
    ...rest,
    ...(rest.items ? { items: resolve(rest.items, components) } : {}),
    ...(rest.anyOf ? { anyOf: rest.anyOf.map((one) => resolve(one, components)) } : {}),
  };
}
