import { fieldsOfShape, type JsonSchema } from './json-schema.js';

type Shape = abstract new () => object;
type Members = Readonly<Record<string, unknown>>;

/** What of a wire class may be left out by an empty text, and where more of it is. */
interface Droppable {
  readonly texts: readonly string[];
  readonly nested: readonly (readonly [string, Shape])[];
}

const known = new WeakMap<Shape, Droppable>();

function droppableOf(shape: Shape): Droppable {
  const cached = known.get(shape);
  if (cached) return cached;
  const fields = [...fieldsOfShape(shape)];
  const droppable = {
    texts: fields.filter(([, { schema, required }]) => !required && refusesEmpty(schema)).map(([name]) => name),
    nested: fields.flatMap(([name, { schema }]) => {
      const nested = (schema.$shape ?? schema.items?.$shape)?.();
      return nested ? [[name, nested] as const] : [];
    }),
  };
  known.set(shape, droppable);
  return droppable;
}

/** Whether an empty text is not a value of a field. */
function refusesEmpty({ minLength = 0, enum: values, pattern, format }: JsonSchema): boolean {
  return (
    Number(minLength) > 0 ||
    values?.includes('') === false ||
    (typeof pattern === 'string' && !new RegExp(pattern, 'u').test('')) ||
    format === 'uuid' ||
    format === 'idn-email'
  );
}

/**
 * The same value without empty texts where a member is optional and may not be empty: clients of proto3 cannot leave a text
 * out. The very same object if there is none.
 */
export function withoutEmptyTexts<Value>(shape: Shape, value: Value): Value {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const elements = value as readonly unknown[];
    const whole = elements.map((one) => withoutEmptyTexts(shape, one));
    return whole.some((one, index) => one !== elements[index]) ? (whole as Value) : value;
  }
  const { texts, nested } = droppableOf(shape);
  const members = value as Members;
  const changed: Record<string, unknown> = {};
  const empty = texts.filter((name) => members[name] === '');
  for (const [name, of] of nested) {
    const member = Object.hasOwn(members, name) ? members[name] : undefined;
    const whole = withoutEmptyTexts(of, member);
    if (whole !== member) changed[name] = whole;
  }
  if (empty.length === 0 && Object.keys(changed).length === 0) return value;
  const kept = Object.entries(members).filter(([name]) => !empty.includes(name));
  return { ...Object.fromEntries(kept), ...changed } as Value;
}

/**
 * The parameters of an activity as its class reads them: without empty texts that mean absent, and without
 * `generateAppProofs`, a member of the envelope that some clients leave here. The very same object if there is neither.
 */
export function acceptedParameters(shape: Shape, parameters: object): object {
  if (!('generateAppProofs' in parameters) || fieldsOfShape(shape).has('generateAppProofs')) {
    return withoutEmptyTexts(shape, parameters);
  }
  const { generateAppProofs: _misplaced, ...rest } = parameters;
  return withoutEmptyTexts(shape, rest);
}
