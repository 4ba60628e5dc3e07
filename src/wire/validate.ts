import { getMetadataStorage, validateSync, type ValidationError } from 'class-validator';
import { invalidFields } from '../domain/errors.js';
import { acceptedParameters, withoutEmptyTexts } from './absent.js';
import { sizeOfList } from './fields.js';
import { fieldsOfShape } from './json-schema.js';

interface Violation {
  readonly field: string;
  readonly description: string;
}

type Shape = new () => object;

/** Violations reported in one refusal; more would not help. */
const maxViolations = 20;

const validatorOptions = {
  forbidUnknownValues: true,
  stopAtFirstError: true,
  validationError: { target: false, value: false },
};

// For each object it validates, class-validator searches the rules of all classes for inherited ones. Our rules are
// complete when a class is declared, and use no groups, so the result can be cached.
const storage = getMetadataStorage();
const rulesFound = new WeakMap<object, ReturnType<typeof storage.getTargetValidationMetadatas>>();
const findRules = storage.getTargetValidationMetadatas.bind(storage);
storage.getTargetValidationMetadatas = (shape, ...options) => {
  const known = rulesFound.get(shape);
  if (known) return known;
  const found = findRules(shape, ...options);
  rulesFound.set(shape, found);
  return found;
};

/**
 * Converts plain JSON into its wire class, with every rule of the class checked and no unknown member. An empty text is
 * absent where a member is optional and may not be empty. `path` is the
 * prefix of field names in errors, such as `parameters`.
 * @throws {CoordinatorError} INVALID_ARGUMENT that names each bad field
 */
export function validate<Wire extends object>(shape: new () => Wire, plain: object, path = ''): Wire {
  const found: Violation[] = [];
  const tooLong: Violation[] = [];
  const instance = instanceOf(shape, withoutEmptyTexts(shape, plain), path, { unknown: found, tooLong }) as Wire;
  if (tooLong.length > 0) throw invalidFields(tooLong.slice(0, maxViolations));
  // A class without fields has no rules either, and class-validator would treat it as unknown.
  const errors = fieldsOf(shape).size === 0 ? [] : validateSync(instance, validatorOptions);
  found.push(...errors.flatMap((error) => violations(error, path)));
  if (found.length > 0) throw invalidFields(found.slice(0, maxViolations));
  return instance;
}

/** As `validate`, for the parameters of an activity (see `acceptedParameters`). @throws {CoordinatorError} INVALID_ARGUMENT */
export function validateParameters<Intent extends object>(
  shape: new () => Intent,
  parameters: object,
  path = 'parameters',
): Intent {
  return validate(shape, acceptedParameters(shape, parameters), path);
}

/** What is noted of a request before its rules are checked. */
interface Noted {
  readonly unknown: Violation[];
  readonly tooLong: Violation[];
}

/**
 * The value as an instance of its class; members that the class does not have are dropped and noted. Not done by
 * class-transformer, which takes `constructor` and `toString` in a request for an object's own methods. A list of objects
 * that is too long is not looked into: class-validator would check every element of it as well.
 */
function instanceOf(shape: Shape, value: unknown, path: string, noted: Noted): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item, index) => instanceOf(shape, item, `${path}[${index}]`, noted));
  const fields = fieldsOf(shape);
  const instance = new shape() as Record<string, unknown>;
  for (const name of Object.keys(value)) {
    const member = (value as Readonly<Record<string, unknown>>)[name];
    const field = path ? `${path}.${name}` : name;
    const schema = fields.get(name)?.schema;
    if (!schema) {
      noted.unknown.push({ field: field.slice(0, 256), description: 'is not a field of this request' });
      continue;
    }
    const { minItems = 0, maxItems = Infinity } = schema;
    if (Array.isArray(member) && member.length > maxItems) {
      noted.tooLong.push({ field, description: sizeOfList(minItems, maxItems, member.length) });
      continue;
    }
    const nested = (schema.$shape ?? schema.items?.$shape)?.() as Shape | undefined;
    instance[name] = nested ? instanceOf(nested, member, field, noted) : member;
  }
  return instance;
}

const knownFields = new WeakMap<Shape, ReturnType<typeof fieldsOfShape>>();

function fieldsOf(shape: Shape): ReturnType<typeof fieldsOfShape> {
  const known = knownFields.get(shape);
  if (known) return known;
  const fields = fieldsOfShape(shape);
  knownFields.set(shape, fields);
  return fields;
}

function violations(error: ValidationError, parent: string): Violation[] {
  const isIndex = /^\d+$/.test(error.property);
  const field = isIndex ? `${parent}[${error.property}]` : parent ? `${parent}.${error.property}` : error.property;
  const own = Object.values(error.constraints ?? {}).map((description) => ({ field, description }));
  // A list with invalid elements is reported itself; repeating that for each element would not help.
  return own.length > 0 ? own : (error.children ?? []).flatMap((child) => violations(child, field));
}
