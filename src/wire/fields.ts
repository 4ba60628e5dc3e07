import 'reflect-metadata';
import {
  ArrayMaxSize,
  ArrayMinSize,
  ArrayUnique,
  IsArray,
  IsBoolean,
  IsIn,
  IsInt,
  IsObject,
  IsOptional,
  IsString,
  Matches,
  Max,
  Min,
  ValidateBy,
  ValidateNested,
  type ValidationArguments,
} from 'class-validator';
import { isMailDomain, mailAddress } from '../domain/contact-key.js';
import { limitTable } from '../domain/organization/limits.js';
import { uuidPattern } from '../domain/uuid.js';
import { type JsonSchema, recordField } from './json-schema.js';

/**
 * Field decorators for wire objects. One line says a field's shape, its rules and its words in the reference: the
 * class-validator rules that refuse bad input and the JSON Schema in the OpenAPI document come from the same call.
 */

interface FieldOptions {
  /** The member may be absent (or null, which is the same here). */
  readonly optional?: true;
  /** A sentence for the reference. */
  readonly about?: string;
}

type Shape = abstract new () => object;

/** Printable text without control characters; names that people read. */
const labelPattern = /^[^\p{Cc}\p{Cs}]*$/u;
/** E.164: a plus, then at most fifteen digits that do not begin with zero. */
const phonePattern = /^\+[1-9]\d{6,14}$/;
const fingerprintPattern = /^sha256:[0-9a-f]{64}$/;
/**
 * A local part and one @: no spaces, control or unassigned characters (see `contactKey`). Stricter checks are the mail server's.
 */
const emailPattern = /^[^\s@\p{Cc}\p{Cs}\p{Cn}"(),:;<>[\]\\]{1,64}@(?<domain>[^@]+)$/u;
const maxEmail = 254;

/** Whether a text is an e-mail address, by the rule of `Email`. */
export function isEmail(text: string): boolean {
  if (text.length > maxEmail) return false;
  const domain = emailPattern.exec(text)?.groups?.['domain'];
  return domain !== undefined && isMailDomain(domain) && mailAddress(text).length <= maxEmail;
}

/** Whether a text is a phone number in E.164. */
export const isPhone = (text: string): boolean => phonePattern.test(text);

const shown = (value: unknown): string => {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text === undefined ? 'nothing' : `\`${text.length > 64 ? `${text.slice(0, 64)}…` : text}\``;
};

const must =
  (rule: string) =>
  (context?: ValidationArguments): string => {
    const value: unknown = context?.value;
    return value === undefined ? 'is required' : `must be ${rule}, got ${shown(value)}`;
  };

function field(schema: JsonSchema, options: FieldOptions, ...rules: PropertyDecorator[]): PropertyDecorator {
  return (target, key) => {
    recordField(target, String(key), {
      schema: options.about ? { ...schema, description: options.about } : schema,
      required: !options.optional,
    });
    if (options.optional) IsOptional()(target, key);
    // The first broken rule is the one that is told, so the rules that the others build on go first.
    for (const rule of rules.reverse()) rule(target, key);
  };
}

/** Any text, at most `max` characters (default 4,096). */
export function Text({ max = 4096, min = 0, ...options }: FieldOptions & { max?: number; min?: number } = {}) {
  const message = must(`a string of ${min} to ${max} characters`);
  return field(
    { type: 'string', maxLength: max, ...(min ? { minLength: min } : {}) },
    options,
    Characters(min, max, ({ value }) => lengthMessage(value, min, max)),
    IsString({ message }),
  );
}

/** As class-validator's `MinLength` and `MaxLength` together, which make a list of all pairs in a text to count them. */
function Characters(min: number, max: number, message: (context: ValidationArguments) => string): PropertyDecorator {
  const validate = (value: unknown) => typeof value === 'string' && hasCharacters(value, min, max);
  return ValidateBy({ name: 'characters', validator: { validate } }, { message });
}

/** A surrogate pair is one character, and what says how a character is shown (U+FE0E, U+FE0F) belongs to it. */
export function hasCharacters(text: string, min: number, max: number): boolean {
  if (text.length < min) return false;
  // A character has three of them at most, and what is as long as it may be needs no counting.
  if (text.length <= max && text.length >= 3 * min) return true;
  if (text.length > 3 * max) return false;
  let characters = text.length;
  for (let at = 1; at < text.length; at++) {
    const [before, here] = [text.charCodeAt(at - 1), text.charCodeAt(at)];
    if (isPair(before, here) || (isPresentation(here) && !isPresentation(before))) characters -= 1;
  }
  return characters >= min && characters <= max;
}

const isPair = (high: number, low: number): boolean => (high & 0xfc00) === 0xd800 && (low & 0xfc00) === 0xdc00;
const isPresentation = (unit: number): boolean => unit === 0xfe0e || unit === 0xfe0f;

function lengthMessage(value: unknown, min: number, max: number): string {
  if (value === undefined) return 'is required';
  return typeof value === 'string'
    ? `must have ${min} to ${max} characters, has ${value.length}`
    : `must be a string of ${min} to ${max} characters, got ${shown(value)}`;
}

const { value: maxName } = limitTable.nameCharacters;

/** A name that people read: 1 to 255 characters, none of them a control character. */
export function Label(options: FieldOptions = {}) {
  return field(
    { type: 'string', minLength: 1, maxLength: maxName },
    options,
    Matches(labelPattern, { message: must('text without control characters') }),
    Characters(1, maxName, ({ value }) => lengthMessage(value, 1, maxName)),
    IsString({ message: must(`a string of 1 to ${maxName} characters`) }),
  );
}

/** A UUID as ids are recorded: in lower case. Input may have either case (RFC 9562, section 4). */
export function canonicalUuid(value: string): string {
  return value.toLowerCase();
}

/** An id. */
export function Uuid(options: FieldOptions = {}) {
  return field({ type: 'string', format: 'uuid' }, options, Matches(uuidPattern, { message: must('a UUID') }));
}

/** A list of ids, none of them twice. */
export function UuidList({ min = 0, max = 100, ...options }: FieldOptions & { min?: number; max?: number } = {}) {
  return field(
    { type: 'array', items: { type: 'string', format: 'uuid' }, minItems: min, maxItems: max },
    options,
    ArrayUnique({ message: ({ value }: ValidationArguments) => `must not list an id twice, got ${shown(value)}` }),
    Matches(uuidPattern, { each: true, message: must('a list of UUIDs') }),
    ...listRules(min, max),
  );
}

/** One of a closed set of strings. */
export function OneOf(values: readonly string[], options: FieldOptions = {}) {
  return field(
    { type: 'string', enum: values },
    options,
    IsIn(values, { message: must(`one of ${values.join(', ')}`) }),
  );
}

/** A list of strings of a closed set. */
export function ListOfOneOf(
  values: readonly string[],
  { min = 0, max = 100, ...options }: FieldOptions & { min?: number; max?: number } = {},
) {
  return field(
    { type: 'array', items: { type: 'string', enum: values }, minItems: min, maxItems: max },
    options,
    IsIn(values, { each: true, message: must(`a list of ${values.join(', ')}`) }),
    ...listRules(min, max),
  );
}

/** A list of texts. */
export function TextList({ min = 0, max = 100, ...options }: FieldOptions & { min?: number; max?: number } = {}) {
  return field(
    { type: 'array', items: { type: 'string' }, minItems: min, maxItems: max },
    options,
    IsString({ each: true, message: must('a list of strings') }),
    ...listRules(min, max),
  );
}

export function Flag(options: FieldOptions = {}) {
  return field({ type: 'boolean' }, options, IsBoolean({ message: must('true or false') }));
}

/** A JSON number without a fraction. */
export function Whole({ min, max, ...options }: FieldOptions & { min: number; max: number }) {
  const message = must(`a whole number from ${min} to ${max}`);
  return field(
    { type: 'integer', format: 'int32', minimum: min, maximum: max },
    options,
    Max(max, { message }),
    Min(min, { message }),
    IsInt({ message }),
  );
}

/** A whole number written as a decimal string, as the wire does for 64-bit values. */
export function DecimalString({ min, max, ...options }: FieldOptions & { min: number; max: number }) {
  const message = must(`a decimal string from "${min}" to "${max}"`);
  return field(
    { type: 'string', pattern: '^[0-9]+$' },
    options,
    numberWithin(min, max, message),
    Matches(/^(0|[1-9]\d{0,15})$/, { message }),
  );
}

function numberWithin(min: number, max: number, message: (context?: ValidationArguments) => string): PropertyDecorator {
  return ValidateBy({
    name: 'numberWithin',
    validator: {
      validate: (text) => typeof text === 'string' && Number(text) >= min && Number(text) <= max,
      defaultMessage: message,
    },
  });
}

/** An e-mail address. `removable`: an empty string is allowed and means none. */
export function Email({ removable, ...options }: FieldOptions & { removable?: true } = {}) {
  return field(
    { type: 'string', ...(removable ? {} : { format: 'idn-email' }), maxLength: maxEmail },
    options,
    Characters(0, maxEmail, must(`an e-mail address of at most ${maxEmail} characters`)),
    ValidateBy({
      name: 'email',
      validator: {
        // A long one is refused for its length alone.
        validate: (text) =>
          typeof text === 'string' && (text.length > maxEmail || (removable && text === '') || isEmail(text)),
        defaultMessage: must('an e-mail address'),
      },
    }),
  );
}

/** A phone number in E.164. `removable`: an empty string is allowed and means none. */
export function Phone({ removable, ...options }: FieldOptions & { removable?: true } = {}) {
  const pattern = removable ? new RegExp(`^$|${phonePattern.source}`) : phonePattern;
  return field(
    { type: 'string', pattern: pattern.source },
    options,
    Matches(pattern, { message: must('a phone number in E.164 format, such as +13214567890') }),
  );
}

/** Bytes in hexadecimal, without 0x. `removable`: an empty string is allowed and means none. */
export function Hex({ max = 1024, removable, ...options }: FieldOptions & { max?: number; removable?: true } = {}) {
  return field(
    { type: 'string', pattern: removable ? '^[0-9a-fA-F]*$' : '^[0-9a-fA-F]+$', maxLength: max },
    options,
    Characters(0, max, must(`at most ${max} hexadecimal characters`)),
    Matches(removable ? /^(?:[0-9a-f]{2})*$/i : /^(?:[0-9a-f]{2})+$/i, {
      message: must('bytes in hexadecimal without 0x'),
    }),
  );
}

/** Bytes in base64url. */
export function Base64Url({ max = 65_536, ...options }: FieldOptions & { max?: number } = {}) {
  return field(
    { type: 'string', pattern: '^[A-Za-z0-9_-]+={0,2}$', maxLength: max },
    options,
    Characters(0, max, ({ value }) => lengthMessage(value, 1, max)),
    Matches(/^[A-Za-z0-9_-]+={0,2}$/, { message: must('bytes in base64url') }),
  );
}

/** The fingerprint of a submit: the hash of its body (docs/protocol.md, fingerprints). */
export function Fingerprint(options: FieldOptions = {}) {
  return field(
    { type: 'string', pattern: fingerprintPattern.source },
    options,
    Matches(fingerprintPattern, { message: must('sha256: and 64 lower-case hexadecimal characters') }),
  );
}

/** A nested object. */
export function Nested(shape: () => Shape, options: FieldOptions = {}) {
  return field({ $shape: shape }, options, ValidateNested(), IsObject({ message: must('an object') }));
}

/** Any JSON object: what reads it checks it. */
export function JsonObject(options: FieldOptions = {}) {
  return field({ type: 'object', additionalProperties: true }, options, IsObject({ message: must('an object') }));
}

/** A list of nested objects. */
export function ListOf(
  shape: () => Shape,
  { min = 0, max = 100, ...options }: FieldOptions & { min?: number; max?: number } = {},
) {
  return field(
    { type: 'array', items: { $shape: shape }, minItems: min, maxItems: max },
    options,
    ValidateNested({ each: true }),
    IsObject({ each: true, message: must('a list of objects') }),
    ...listRules(min, max),
  );
}

/** A member whose shape another place describes: for answers only, nothing is checked. */
export function Described(schema: JsonSchema, options: FieldOptions = {}) {
  return field(schema, options);
}

/** What is wrong with a list that has too few or too many elements. */
export function sizeOfList(min: number, max: number, has: number | string): string {
  return `must have ${min} to ${max} elements, has ${has}`;
}

function listRules(min: number, max: number): PropertyDecorator[] {
  const size = ({ value }: ValidationArguments): string =>
    value === undefined ? 'is required' : sizeOfList(min, max, Array.isArray(value) ? value.length : shown(value));
  return [
    ArrayMaxSize(max, { message: size }),
    ArrayMinSize(min, { message: size }),
    IsArray({ message: must('a list') }),
  ];
}
