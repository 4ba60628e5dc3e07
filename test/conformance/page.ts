import type { WalkRecord } from './record.js';
import { proxyEndpoints } from './specification/proxy.js';
import { queries } from './specification/queries.js';
import type { Field, FieldType, Source } from './specification/shape.js';
import { submits } from './specification/submits.js';

/** Classes of requests, in the order of the columns, and what each holds. */
const classes = {
  done: 'Requests that succeed: all fields, only the required ones, null for optional ones, empty texts for those that may not be empty, each optional one by itself, each remark of the specification, and `X-Stamp-WebAuthn` where it is accepted. Responses are checked against their tables.',
  values:
    'Every value of every enumeration is accepted, or appears in a list; any other value is refused with 400 that names it.',
  missing: 'Each required field missing, null, or empty where it must not be: 400 that names the field.',
  type: 'Each field with a value of every other JSON type, also in nested objects and lists: 400 that names the field.',
  form: 'Strings that are not a valid UUID, decimal string, hexadecimal, address, phone number, JSON or expression: 400 that names the field.',
  limits: 'Values at each limit, just below and just above it; the age of a request; pages.',
  stamp:
    'Stamps that are missing, duplicated, malformed, made over other bytes, unknown, or from another organization: 401. A passkey where only `X-Stamp` is listed: 401.',
  tenant: 'Ids of another organization, and organizations the caller does not belong to.',
  path: 'The type of one activity at the path of every other: 400 that names the right path.',
  config: '`X-Auth-Proxy-Config-Id` missing, empty, malformed, duplicated or unknown: 400 or 404.',
  origin: 'Allowed origins; others: 403.',
} as const satisfies Readonly<Record<string, string>>;

export type Kind = keyof typeof classes;

const submitKinds: readonly Kind[] = ['done', 'values', 'missing', 'type', 'form', 'limits', 'stamp', 'tenant', 'path'];
const queryKinds: readonly Kind[] = ['done', 'values', 'missing', 'type', 'form', 'limits', 'stamp', 'tenant'];
const proxyKinds: readonly Kind[] = ['done', 'values', 'missing', 'type', 'form', 'config', 'origin'];

/** Lines of the tables by who they come from, those of nested objects counted too. */
function countBySource(fields: readonly Field[]): Readonly<Record<Source, number>> {
  const all = (table: readonly Field[]): readonly Field[] =>
    table.flatMap((field) => [field, ...all(inside(field.type))]);
  const lines = all(fields);
  const from = (source: Source) => lines.filter((line) => line.source === source).length;
  return { specification: from('specification'), 'client protocol': from('client protocol') };
}

function inside(type: FieldType): readonly Field[] {
  if (type.kind === 'object') return type.fields;
  return type.kind === 'list' ? inside(type.of) : [];
}

/** One line for each class, and a table for each kind of endpoint. */
export function tables(record: WalkRecord) {
  const label = (prefix: string) => (one: { readonly section: string; readonly path: string }) =>
    [`${one.section} \`${one.path}\``, `${prefix}/${one.path}`] as const;
  return {
    submits: record.table(submits.map(label('submit')), submitKinds),
    queries: record.table(queries.map(label('query')), queryKinds),
    proxy: record.table(proxyEndpoints.map(label('proxy')), proxyKinds),
  };
}

/** docs/reference/conformance.md. */
export function conformancePage(record: WalkRecord): string {
  const { specification, 'client protocol': protocol } = countBySource([
    ...submits.flatMap(({ parameters, results }) => [...parameters, ...results]),
    ...[...queries, ...proxyEndpoints].flatMap(({ body, response }) => [...body, ...response]),
  ]);
  const { submits: submitTable, queries: queryTable, proxy } = tables(record);
  return `<!-- Made by \`npm run docs:conformance\` from a walk over a running server. Do not edit: change the code and run it again. -->

# Conformance

The endpoints of the specification are data in \`test/conformance/specification/\`. Every request that follows from them is sent over
HTTP, with real stamps, to a running server. Each cell counts the requests that got the required response; \`n of m\` means that some
did not.

${record.summary}

The tables have ${specification} lines from the specification and ${protocol} on what it leaves open, taken from what the
published clients send and expect; \`source\` in the data says which. 400kb means 400,000 characters.

${Object.entries(classes)
  .map(([kind, about]) => `- **${kind}**: ${about}`)
  .join('\n')}

## Submits

\`POST /public/v1/submit/<path>\`

${submitTable}

## Queries

\`POST /public/v1/query/<path>\`

${queryTable}

## Auth proxy

\`POST /v1/<path>\`

${proxy}
`;
}
