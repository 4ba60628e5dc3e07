import type { WalkRecord } from './record.js';
import { proxyEndpoints } from './specification/proxy.js';
import { queries } from './specification/queries.js';
import type { Field, FieldType, Source } from './specification/shape.js';
import { submits } from './specification/submits.js';

/** Classes of requests, in the order of the columns, and what each holds. */
const classes = {
  done: 'Done as described: every field, required fields only, null for optional ones, each optional one alone, each remark of the specification, and `X-Stamp-WebAuthn` where it is taken. Answers are held against their tables.',
  values: 'Every value of every enumeration is taken or listed; others are refused, and named.',
  missing: 'Every required field missing, null, and empty where it may not be: 400, and the field is named.',
  type: 'Every field with values of every other JSON type, in nested objects and lists too: 400, and the field is named.',
  form: 'Texts that are no UUID, decimal string, hexadecimal, address, phone number, JSON or expression: 400, and the field is named.',
  limits: 'At each limit, next to it inside and outside; the age of a request; pages.',
  stamp:
    'Stamps that are missing, doubled, garbled, over other bytes, of nobody or of another organization: 401. A passkey where only `X-Stamp` is listed: 401.',
  tenant: 'Ids of another organization, and organizations that the caller is not of.',
  path: 'The type of one activity at the path of each other: 400 that names the right path.',
  config: '`X-Auth-Proxy-Config-Id` missing, empty, garbled, doubled, of nobody: 400 or 404.',
  origin: 'Origins that are allowed, and others: 403.',
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

The specification's endpoints as data (\`test/conformance/specification/\`), and every request that follows from them, sent over
HTTP with real stamps to a running server. A cell counts requests that were answered as they must be, \`n of m\` where some
were not.

${record.summary}

The tables have ${specification} lines of the specification, and ${protocol} that it leaves open and that are taken from what the
published clients send and expect; \`source\` in the data says which. 400kb are 400,000 characters.

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
