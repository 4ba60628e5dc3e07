/**
 * How the specification's tables are written down as data. Transcribed by hand and free of imports from `src`: the walk must
 * be able to find this server wrong.
 */

/** Who says so: the specification, or the client protocol where the specification leaves it open. */
export type Source = 'specification' | 'client protocol';

/** What a value is written as; the class "wrong form" sends texts that are not. */
export type Form = 'uuid' | 'decimal' | 'hex' | 'email' | 'E.164' | 'JSON' | 'policy expression';

/** Where a value ends: characters of a text, elements of a list, or the value of a number or decimal string. */
export interface Limit {
  readonly least?: number;
  readonly most?: number;
  readonly source: Source;
}

export type FieldType =
  | {
      readonly kind: 'string';
      readonly form?: Form;
      readonly limit?: Limit;
      /** Who says that an empty text is taken. */
      readonly emptyAllowed?: Source;
    }
  | { readonly kind: 'number'; readonly limit?: Limit }
  | { readonly kind: 'boolean' }
  /** `further`: values that only the client protocol has. */
  | { readonly kind: 'enum'; readonly values: readonly string[]; readonly further: readonly string[] }
  | { readonly kind: 'object'; readonly fields: readonly Field[] }
  | { readonly kind: 'list'; readonly of: FieldType; readonly limit?: Limit }
  /** The timestamp object of section 2. */
  | { readonly kind: 'timestamp' }
  /** Members by names that nobody fixes. */
  | { readonly kind: 'map' };

/** What an id names, so that one of another organization can be sent in its place. */
export type Resource =
  | 'policy'
  | 'webhook endpoint'
  | 'wallet'
  | 'wallet account'
  | 'wallet account address'
  | 'user'
  | 'user tag'
  | 'private key'
  | 'otp';

export interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly required: boolean;
  /** Who says whether it is required. */
  readonly source: Source;
  readonly names?: Resource;
  /** Sent by some published clients and read by nobody, so nothing is expected of it. */
  readonly unread?: true;
  /** Required lists that may be empty; nothing is expected when one is missing, since it may be taken as empty. */
  readonly missingMayBeEmpty?: true;
  /** Whoever runs a server may add values, so another one may also be answered as not found. */
  readonly openValues?: true;
  /** The endpoint whose walk has all the values of this shared shape. */
  readonly valuesIn?: string;
}

export interface SubmitEndpoint {
  readonly section: string;
  /** Last segment of `/public/v1/submit/…`. */
  readonly path: string;
  readonly type: string;
  readonly intent: string;
  readonly result: string;
  readonly parameters: readonly Field[];
  readonly results: readonly Field[];
  /** Only X-Stamp is listed as authorization. */
  readonly stampOnly: boolean;
}

export interface QueryEndpoint {
  readonly section: string;
  /** Last segment of `/public/v1/query/…`. */
  readonly path: string;
  readonly body: readonly Field[];
  readonly response: readonly Field[];
}

export interface ProxyEndpoint {
  readonly section: string;
  /** Last segment of `/v1/…`. */
  readonly path: string;
  readonly body: readonly Field[];
  readonly response: readonly Field[];
}

type StringType = Extract<FieldType, { kind: 'string' }>;

export const text = (more: Omit<StringType, 'kind'> = {}): FieldType => ({ kind: 'string', ...more });
export const uuid = text({ form: 'uuid' });
export const number = (limit?: Limit): FieldType => ({ kind: 'number', ...(limit ? { limit } : {}) });
export const flag: FieldType = { kind: 'boolean' };
export const timestamp: FieldType = { kind: 'timestamp' };
export const map: FieldType = { kind: 'map' };
export const object = (...fields: readonly Field[]): FieldType => ({ kind: 'object', fields });
export const list = (of: FieldType, limit?: Limit): FieldType => ({ kind: 'list', of, ...(limit ? { limit } : {}) });
export const oneOf = (values: readonly string[], further: readonly string[] = []): FieldType => ({
  kind: 'enum',
  values,
  further,
});

type More = Pick<Field, 'names' | 'unread' | 'missingMayBeEmpty' | 'openValues' | 'valuesIn'>;

const field =
  (required: boolean, source: Source) =>
  (name: string, type: FieldType, more: More = {}): Field => ({ name, type, required, source, ...more });

/** The specification says that it is required. */
export const required = field(true, 'specification');
/** The specification says that it is optional, or gives a default. */
export const optional = field(false, 'specification');
/** Requirement not shown in the specification; required by the client protocol. */
export const shownAsRequired = field(true, 'client protocol');
/** Requirement not shown in the specification; optional by the client protocol. */
export const shownAsOptional = field(false, 'client protocol');

/** Names for people: 1 to 255 characters here, as the client protocol does not know the limit (section 4). */
export const label = text({ limit: { least: 1, most: 255, source: 'client protocol' } });
