/**
 * The pages of docs/reference that follow from the code. What runs (activities, queries, settings, metrics, HTTP statuses)
 * is asked of the build in `dist`; what is only a type (events, error categories) is read from the sources.
 * `npm run docs` writes the pages; `test/docs/reference.spec.ts` holds the committed ones against them.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';
import { activities } from '../dist/activities/index.js';
import { exitCodeMeanings } from '../dist/cli/exit-codes.js';
import { Terminal } from '../dist/cli/terminal.js';
import { commandTree } from '../dist/cli/tree.js';
import { settings } from '../dist/config/settings.js';
import { buildRegistry } from '../dist/decide/registry.js';
import { stampsOf, submittersOf } from '../dist/decide/submitters.js';
import { grpcNumbers } from '../dist/domain/errors.js';
import { sealableMembers } from '../dist/domain/sealable.js';
import { limitTable } from '../dist/domain/organization/limits.js';
import { httpStatuses } from '../dist/http/errors.filter.js';
import { Metrics } from '../dist/metrics/metrics.js';
import { ADDRESS_FORMATS } from '../dist/keyring/addresses.js';
import { publishedQueries, publishedSubmits } from '../dist/http/published-paths.js';
import { queries } from '../dist/read-models/index.js';
import { fieldsOfShape } from '../dist/wire/json-schema.js';
import { readArguments } from './arguments.mjs';
import { eventSchema } from './event-schema.mjs';
import { architecturePage } from './rooms-table.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Every generated page: file name under docs/reference to its text. The same code gives the same text. */
export function referencePages() {
  return {
    'README.md': indexPage(),
    'activities.md': activitiesPage(),
    'address-formats.md': addressFormatsPage(),
    'command-line.md': commandLinePage(),
    'errors.md': errorsPage(),
    'events.md': eventsPage(),
    'events.schema.json': schemaOfEvents(),
    'limits.md': limitsPage(),
    'metrics.md': metricsPage(),
    'not-implemented.md': notImplementedPage(),
    'queries.md': queriesPage(),
    'settings.md': settingsPage(),
  };
}

// --- published paths that are missing ---------------------------------------------------------------------------

function notImplementedPage() {
  const submits = new Set(buildRegistry(activities).paths.keys());
  const asked = new Set(queries.map(({ path }) => path));
  const missing = [
    ...publishedQueries.filter((name) => !asked.has(name)).map((name) => `query/${name}`),
    ...publishedSubmits.filter((name) => !submits.has(name)).map((name) => `submit/${name}`),
  ];
  const all = publishedQueries.length + publishedSubmits.length;
  return page(
    'Not implemented',
    `The published client \`@turnkey/http\` 6.6.0 calls ${all} paths. This server has ${all - missing.length} of them.`,
    'The paths below respond with HTTP status 501, code 12 (UNIMPLEMENTED), and name this page. A path that no client has ' +
      'responds with 404, code 5.',
    table(
      ['path below /public/v1'],
      missing.map((path) => [`\`${path}\``]),
    ),
  );
}

// --- the command line ---------------------------------------------------------------------------------------------

function commandLinePage() {
  const tree = commandTree(Terminal.ofProcess());
  const commands = leavesOf(tree);
  return page(
    'Command line',
    'What `countersign --help` shows. In a clone of the repository, run `node dist/cli/countersign.js`; where the package is ' +
      'installed, `npx countersign`. A test runs every example.',
    'Commands on a store (`verify`, `kek rotate` and the like) open it with the settings of the coordinator: `--data-dir`, or the ' +
      'environment ([settings.md](settings.md)). All others speak HTTP with a profile, which `countersign login` creates.',
    table(
      ['command', 'what it does'],
      commands.map((command) => [`[${command.fullName}](#${anchorOf(command)})`, command.summary()]),
    ),
    '## Exit codes',
    table(
      ['code', 'meaning'],
      Object.entries(exitCodeMeanings).map(([code, meaning]) => [code, meaning]),
    ),
    'With `--json` a command writes one line of JSON: its outcome to standard output, or `{ "error": { message, exitCode, … } }` ' +
      'to standard error, with `status`, `code`, `turnkeyErrorCode` and `details` of the server where it has refused. Colours are for ' +
      'terminals; `NO_COLOR` turns them off.',
    '## Profiles',
    'A profile is a file in `$XDG_CONFIG_HOME/countersign/profiles` (`~/.config/countersign/profiles`), readable by its owner only: ' +
      'the address of a coordinator, an organization, and an API key. `--profile` chooses one for a command, `COUNTERSIGN_PROFILE` for ' +
      'a shell, `countersign profiles use` for good. A private key is read from a file or standard input, never from an argument, and ' +
      'no command prints one.',
    ...commands.map(commandSection),
  );
}

function leavesOf(command) {
  return command.commands.length > 0 ? command.commands.flatMap(leavesOf) : [command];
}

const anchorOf = (command) => command.fullName.replaceAll(' ', '-');

function commandSection(command) {
  const help = command.createHelp();
  const defaultOf = ({ defaultValue }) =>
    defaultValue === undefined || typeof defaultValue === 'boolean' || Object.keys(defaultValue).length === 0
      ? ''
      : ` (default: ${[defaultValue].flat().join(' ')})`;
  const rows = [
    ...command.registeredArguments.map((argument) => [`\`${help.argumentTerm(argument)}\``, argument.description]),
    ...command.options
      .filter(({ hidden }) => !hidden)
      .map((option) => [
        `\`${option.flags}\``,
        `${option.description.replaceAll('<', '\\<')}${defaultOf(option)}${option.mandatory ? ' (required)' : ''}`,
      ]),
  ];
  const usage = [
    command.fullName,
    ...command.registeredArguments.map((argument) => help.argumentTerm(argument)),
    '[options]',
  ];
  return [
    `## ${command.fullName}`,
    command.description(),
    `\`\`\`\n${usage.join(' ')}\n\`\`\``,
    rows.length > 0 ? table(['', ''], rows) : '',
    ...command.examples.map(({ line, about }) => `${about}:\n\n\`\`\`sh\n${line}\n\`\`\``),
  ]
    .filter(Boolean)
    .join('\n\n');
}

const generated = '<!-- Made by `npm run docs` from the code. Do not edit: change the code and run it again. -->';

const page = (title, ...parts) => `${generated}\n\n# ${title}\n\n${parts.filter(Boolean).join('\n\n')}\n`;

const cell = (text) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

function table(head, rows) {
  const line = (cells) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

const byName = (one, other) => (one < other ? -1 : one > other ? 1 : 0);

function addressFormatsPage() {
  return page(
    'Address formats',
    'What an account or a private key may be shown as. A format on another curve is refused with the name of the right one.',
    'The usual path is where wallets for that chain look for a key; any path is accepted. For Ed25519, every segment is hardened (SLIP-0010), marked or not.',
    table(
      ['format', 'curves', 'usual path', 'how it is written'],
      Object.entries(ADDRESS_FORMATS).map(([format, { curves, defaultPath, source }]) => [
        `\`${format}\``,
        curves.map((curve) => `\`${curve}\``).join(', '),
        `\`${defaultPath}\``,
        source,
      ]),
    ),
    '`test/keyring/addresses.spec.ts` compares each with the SDK of its chain.',
    'Keys on `CURVE_SECP256K1` sign with libsecp256k1, else with noble, and with BIP-340 by noble; `CURVE_P256` with noble, `CURVE_ED25519` with OpenSSL ([ADR 27](../adr/0027-sign-with-node-crypto-libsecp256k1-and-noble.md)).',
  );
}

function indexPage() {
  return page(
    'Reference',
    '`npm run docs` generates everything here from the code, except the policy language (the conformance page: ' +
      '`npm run docs:conformance`). A test fails if a page is stale.',
    table(
      ['page', 'what it lists'],
      [
        [
          '[activities.md](activities.md)',
          'every submit: versions, path, parameters with their rules, result, what policies see',
        ],
        ['[address-formats.md](address-formats.md)', 'every address format: curves, usual path, where it is defined'],
        ['[queries.md](queries.md)', 'every query: path, request, response'],
        [
          '[policy-language.md](policy-language.md)',
          'the language of conditions, consensus and time, and how a request is decided',
        ],
        ['[command-line.md](command-line.md)', 'every command, its options and examples, exit codes, profiles'],
        ['[errors.md](errors.md)', 'codes, HTTP statuses, categories'],
        ['[not-implemented.md](not-implemented.md)', 'paths of published clients that this server does not have'],
        ['[events.md](events.md)', 'every recorded event, and where it is declared'],
        ['[events.schema.json](events.schema.json)', 'the same as JSON Schema, for programs'],
        ['[limits.md](limits.md)', 'the limits of what is stored'],
        ['[settings.md](settings.md)', 'the settings of the process'],
        ['[metrics.md](metrics.md)', 'the metrics at `/metrics`'],
        [
          '[conformance.md](conformance.md)',
          'every request in the specification, sent to a running server, and its outcome',
        ],
      ],
    ),
    'A running server also serves the API as OpenAPI 3.1, at `/openapi.json`, and as pages at `/docs/api`.',
  );
}

// --- fields of wire classes ---------------------------------------------------------------------------------------

const formats = { uuid: 'UUID', 'idn-email': 'e-mail address', 'date-time': 'RFC 3339 time', int32: 'integer' };

/** What a JSON Schema of one member allows, in words. */
function ruleOf(schema) {
  if (schema.anyOf) return schema.anyOf.map(ruleOf).join(' or ');
  if (schema.$shape) return 'object';
  if (schema.enum) return `one of ${schema.enum.map((value) => `\`${value}\``).join(', ')}`;
  if (schema.type === 'array') {
    const of = schema.items?.$shape ? 'objects' : schema.items?.type ? `${pluralOf(schema.items)}` : 'anything';
    return `list of ${of}${range(schema.minItems, schema.maxItems)}`;
  }
  const type = Array.isArray(schema.type) ? schema.type.join(' or ') : (schema.type ?? 'anything');
  const base = formats[schema.format] ?? type;
  const limits = range(schema.minimum ?? schema.minLength, schema.maximum ?? schema.maxLength);
  const unit = limits && type === 'string' ? ' characters' : '';
  const pattern = schema.pattern ? `, \`${schema.pattern}\`` : '';
  return `${base}${limits}${unit}${pattern}`;
}

function pluralOf(items) {
  if (items.enum) return ruleOf(items);
  const name = formats[items.format] ?? items.type;
  return `${name}s`;
}

function range(least, most) {
  if (least === undefined && most === undefined) return '';
  if (most === undefined) return `, at least ${least}`;
  return least ? `, ${least} to ${most}` : `, at most ${most}`;
}

/**
 * One row per member, those of nested objects under their path. What `named` gives a name is not unfolded but referred to;
 * a shape inside itself is named once.
 */
function fieldRows(shape, { named = () => undefined, limits = (schema) => schema } = {}, prefix = '', seen = []) {
  if (seen.includes(shape)) return [];
  return [...fieldsOfShape(shape)].flatMap(([name, { schema, required }]) => {
    const { description = '', ...rules } = limits(schema);
    const path = `${prefix}${name}`;
    const nested = (rules.$shape ?? rules.items?.$shape ?? rules.anyOf?.find((one) => one.$shape)?.$shape)?.();
    const reference = nested && named(nested);
    const rule = reference ? ruleOf(rules).replace('object', reference) : ruleOf(rules);
    const row = [`\`${path}\``, required ? 'yes' : '', rule, description];
    if (!nested || reference) return [row];
    const inner = `${path}${rules.type === 'array' ? '[]' : ''}.`;
    return [row, ...fieldRows(nested, { named, limits }, inner, [...seen, shape])];
  });
}

/** An answer as it is: the limits of a field are rules for what callers send. */
const unlimited = (schema) =>
  Object.fromEntries(Object.entries(schema).filter(([keyword]) => !/^(min|max)(Items|Length)$/.test(keyword)));

const requestTable = (shape) => table(['field', 'required', 'rule', 'about'], fieldRows(shape));

// --- activities ---------------------------------------------------------------------------------------------------

function activitiesPage() {
  const registry = buildRegistry(activities);
  const paths = [...registry.paths].sort(([one], [other]) => byName(one, other));
  return page(
    'Activities',
    'Each is `POST /public/v1/submit/<path>` with `{ type, timestampMs, organizationId, parameters }` and a stamp over exactly ' +
      'these bytes. `timestampMs` is a decimal string, less than 1 h old and at most 5 min ahead; the optional boolean ' +
      '`generateAppProofs` asks for app proofs. Members that are `null` count as absent; unknown members are refused. ' +
      'A path accepts every version of its verb; an older version responds under its own keys.',
    '**Events** are those that the decision may add to the stream of the organization, in addition to those of the activity ' +
      'itself (`ActivitySubmitted`, votes, `ActivityCompleted` or `ActivityFailed`): [events.md](events.md).',
    'The response is `{ activity }`, finished or waiting for votes. For policies, see [policy-language.md](policy-language.md).',
    table(
      ['path', 'what it does', 'policies see'],
      paths.map(([path, [newest]]) => [`[${path}](#${path})`, newest.definition.summary, sightOf(newest.definition)]),
    ),
    ...paths.map(([path, versions]) => activitySection(path, versions)),
  );
}

function sightOf(definition) {
  if (definition.kind === 'vote') return 'nothing: it is a vote';
  const { policy } = definition;
  return policy === 'root-quorum-only' ? 'nothing: root quorum only' : `\`${policy.resource}\` \`${policy.action}\``;
}

function activitySection(path, versions) {
  const [newest, ...older] = versions;
  const { definition } = newest;
  return [
    `## ${path}`,
    definition.summary,
    factsOf(definition, newest).join('\n'),
    `Parameters of \`${newest.type}\`:`,
    requestTable(newest.intent),
    ...(definition.kind === 'vote' ? [] : resultOf(definition, newest)),
    ...older.map(
      (version) =>
        `<details>\n<summary>Older version <code>${version.type}</code></summary>\n\n` +
        `Keys: \`${version.keys.intentKey}\`, \`${version.keys.resultKeys.join('`, `')}\`.\n\n${requestTable(version.intent)}\n\n</details>`,
    ),
  ].join('\n\n');
}

function factsOf(definition, { keys, kind }) {
  if (definition.kind === 'vote') {
    return ['- Returns the activity that the vote is about.', `- Intent key: \`${keys.intentKey}\``];
  }
  const { policy, params = {} } = definition;
  const facts = [`- Keys: intent \`${keys.intentKey}\`, result \`${keys.resultKeys.join('`, and the same as `')}\``];
  if (policy === 'root-quorum-only') {
    facts.push('- **Root quorum only**: policies are not evaluated and cannot grant it.');
  } else {
    facts.push(
      `- Policies: \`activity.resource == '${policy.resource}'\`, \`activity.action == '${policy.action}'\`, \`activity.kind == '${kind}'\``,
    );
  }
  const events = eventsProduced().get(definition.type) ?? fail(`no decide of ${definition.type} in the sources`);
  facts.push(`- Events: ${events.length > 0 ? events.map((name) => `\`${name}\``).join(', ') : 'none of its own'}`);
  const names = Object.entries(params).map(([name, { type }]) => `\`activity.params.${name}\` (${typeName(type)})`);
  if (names.length > 0) facts.push(`- Parameters that policies see: ${names.join(', ')}`);
  if (definition.ownCredentialsOf) facts.push('- A user may do this to own credentials unless a policy speaks to it.');
  const { about } = submittersOf(definition);
  if (about) facts.push(`- ${about}`);
  const stamps = stampsOf(definition);
  if (!stamps.includes('webauthn')) facts.push('- Takes `X-Stamp` only, no passkey.');
  if (stamps.includes('attested')) facts.push('- Takes `X-Stamp-Attested` too: a key that a token vouches for.');
  return facts;
}

function typeName({ kind, of, name }) {
  if (kind === 'list' || kind === 'map') return `${kind}\\<${typeName(of)}>`;
  return kind === 'record' ? name : kind;
}

function resultOf(definition) {
  const rows = fieldRows(definition.result, { limits: unlimited });
  if (rows.length === 0) return ['Result: an empty object.'];
  return [
    'Result:',
    table(
      ['field', 'shape', 'about'],
      rows.map(([name, , rule, about]) => [name, rule, about]),
    ),
  ];
}

// --- queries ------------------------------------------------------------------------------------------------------

function queriesPage() {
  const sorted = [...queries].sort((one, other) => byName(one.path, other.path));
  const shapes = new Map();
  const named = (shape) => {
    if (!shape.name.endsWith('Shape')) return undefined;
    const name = shape.name.slice(0, -'Shape'.length);
    if (!shapes.has(name)) {
      shapes.set(name, undefined);
      shapes.set(name, answerTable(shape));
    }
    return `[${name}](#${name.toLowerCase()})`;
  };
  const answerTable = (shape) =>
    table(['field', 'always present', 'shape', 'about'], fieldRows(shape, { named, limits: unlimited }));
  const sections = sorted.map(({ path, summary, request, response }) =>
    [`## ${path}`, summary, 'Request:', requestTable(request), 'Response:', answerTable(response)].join('\n\n'),
  );
  return page(
    'Queries',
    'Each is `POST /public/v1/query/<path>` with a stamp over the exact body. Any user of the organization, or of its parent, may ' +
      'send it. The response reflects everything that this server has returned before; to wait for a later state, send the ' +
      '`X-Position` of a submit as `X-Min-Position`. After 2 s of waiting, the response is a 503.',
    table(
      ['path', 'what it returns'],
      sorted.map(({ path, summary }) => [`[${path}](#${path})`, summary]),
    ),
    ...sections,
    '# Shapes',
    ...[...shapes].sort(([one], [other]) => byName(one, other)).map(([name, members]) => `## ${name}\n\n${members}`),
  );
}

// --- errors -------------------------------------------------------------------------------------------------------

const retries = {
  INVALID_ARGUMENT: 'The request is wrong as it is: change it.',
  NOT_FOUND: 'What it names is not there.',
  ALREADY_EXISTS: 'It is there already.',
  PERMISSION_DENIED: "Not allowed. A denial by policies has each policy's outcome in `details`.",
  RESOURCE_EXHAUSTED: 'A limit: of requests a second (wait), or of how many there may be (delete some).',
  FAILED_PRECONDITION: 'The state of the organization does not allow it now.',
  ABORTED: 'Concurrent changes kept conflicting: send the same bytes again.',
  OUT_OF_RANGE: 'Larger than what the event store of this installation takes: send less, or have its limit raised.',
  UNIMPLEMENTED: 'This server cannot do it yet.',
  INTERNAL: 'A defect; the message has an id that the log has too.',
  UNAVAILABLE: 'Not now: send the same bytes again; it takes effect once at most.',
  UNAUTHENTICATED: 'The stamp is missing, wrong, or nobody here has its key.',
};

function errorsPage() {
  const thrown = thrownErrors();
  const used = new Map();
  for (const { code, category } of thrown) {
    if (category) used.set(category, new Set([...(used.get(category) ?? []), code]));
  }
  const codes = new Set(thrown.map(({ code }) => code));
  const categories = categoryNames();
  return page(
    'Errors',
    'Every error response is `{ code, message, details, turnkeyErrorCode }`. `code` is a google.rpc.Code; ' +
      '`message` says what was wrong, with which value, and what to do; `details` holds typed objects (`@type`); ' +
      '`turnkeyErrorCode` is a category that a client can branch on, or empty. 503, and 429 for too many requests per second, carry `Retry-After`.',
    'An activity that is waiting for votes is not an error: it is HTTP 200 with `ACTIVITY_STATUS_CONSENSUS_NEEDED`.',
    '## Codes',
    table(
      ['code', 'name', 'HTTP', 'what it means', 'used today'],
      Object.entries(grpcNumbers).map(([name, number]) => [
        String(number),
        `\`${name}\``,
        String(httpStatuses[name]),
        retries[name] ?? fail(`no words for ${name}`),
        codes.has(name) ? 'yes' : 'no',
      ]),
    ),
    '## Categories',
    table(
      ['`turnkeyErrorCode`', 'with'],
      categories
        .filter((name) => used.has(name))
        .map((name) => [
          `\`${name}\``,
          [...used.get(name)]
            .sort(byName)
            .map((code) => `\`${code}\``)
            .join(', '),
        ]),
    ),
    `Known to clients and not used by this server today: ${categories
      .filter((name) => !used.has(name))
      .map((name) => `\`${name}\``)
      .join(', ')}.`,
    '## Details',
    table(
      ['`@type`', 'where', 'members'],
      [
        [
          '`type.googleapis.com/google.rpc.BadRequest`',
          'bad fields',
          '`fieldViolations`: list of `{ field, description }`, at most 20',
        ],
        [
          '`type.googleapis.com/errors.v1.PolicyEnginePermissionError`',
          'denied submits and votes',
          '`message`, `policyEvaluations`: list of `{ policyId, policyName, outcome, error? }`, and `denialId` if it was recorded, for `explain_activity`',
        ],
        [
          '`type.googleapis.com/errors.v1.TurnkeyErrorDetail`',
          'whenever there is a category',
          '`turnkeyErrorCode`, the same again',
        ],
      ].map((row) => (sourceMentions(row[0].slice(1, -1)) ? row : fail(`${row[0]} is not in the sources`))),
    ),
  );
}

/** Every `new CoordinatorError(code, …, { category })` of the sources. */
function thrownErrors() {
  const found = [];
  for (const { tree } of sources()) {
    visit(tree, (node) => {
      if (!ts.isNewExpression(node) || node.expression.getText(tree) !== 'CoordinatorError') return;
      const [code, , options] = node.arguments ?? [];
      if (!code || !ts.isStringLiteral(code)) return;
      const category = options && ts.isObjectLiteralExpression(options) ? textMember(options, 'category') : undefined;
      found.push({ code: code.text, category });
    });
  }
  return found;
}

function textMember(object, name) {
  const member = object.properties.find((one) => ts.isPropertyAssignment(one) && one.name.text === name);
  return member && ts.isStringLiteral(member.initializer) ? member.initializer.text : undefined;
}

function categoryNames() {
  const { tree } = source('src/domain/errors.ts');
  const names = [];
  visit(tree, (node) => {
    if (ts.isTypeAliasDeclaration(node) && node.name.text === 'ErrorCategory') {
      names.push(...node.type.types.map(({ literal }) => literal.text));
    }
  });
  return names.length > 0 ? names.sort(byName) : fail('ErrorCategory is not where it was');
}

// --- events -------------------------------------------------------------------------------------------------------

function eventsPage() {
  const events = sources()
    .filter(({ file }) => file.startsWith('src/domain/'))
    .flatMap(({ file, tree }) => eventsOf(file, tree))
    .sort((one, other) => byName(one.file, other.file));
  const files = [...new Set(events.map(({ file }) => file))];
  return page(
    'Events',
    'Everything that is recorded. All state derives from these events. Names are in the past tense and never change; a new ' +
      'shape of `data` raises `schemaVersion`, and a build refuses to read versions that it does not know.',
    'For programs: [events.schema.json](events.schema.json) is the JSON Schema (draft 2020-12) of `{ type, data }`, with the data ' +
      "of each event under `$defs`. In TypeScript, `import type { EventData } from 'countersign'` gives " +
      "`EventData<'PolicyCreated'>`. Both are derived from the types in the sources. Later releases may add members.",
    '## Streams',
    table(
      ['stream', 'what is in it'],
      [
        ['`organization-<id>`', "an activity's life and its effects, in one append at the revision that was read"],
        [
          '`denials-<id>`',
          'denied requests: who tried what; never folded; at most 60 a minute and 10 MB a day are recorded, the rest counted',
        ],
        ['`claims-<id>`', 'the order in which keys, contacts and identities were proved under a parent; never folded'],
        [
          '`webhook-deliveries-<id>`',
          'outcomes of deliveries to the webhook endpoints of an organization; never folded',
        ],
        ['`installation-format`', 'the format version of the store; only in EventStoreDB, and its first event'],
        ['`installation-root`', 'the organization that this installation founded'],
        ['`installation-kek`', 'ids of the key-encryption keys that secrets were sealed under, in order'],
        ['`vault-<id>`', 'sealed secrets of a wallet, a key or an import; deleted with it'],
        [
          '`message-counts-<digest>`',
          'counts of messages to a contact, notices to an approver, or messages of a caller; the digest is keyed, and the last 64 are kept',
        ],
        ['`lease-<name>`, `renewals-…`', 'which coordinator does the work that only one may do; renewals are deleted'],
      ],
    ),
    '## Metadata of every event',
    table(['member', 'about'], membersOf('src/ledger/chain.ts', 'EventMetadata')),
    '`unchained` is never trusted: whoever can write to the store can change it unnoticed.',
    '## Members that may be sealed',
    'In the store, these may be `{ sealed, key }` instead of a text: encrypted under a key that can be destroyed. This release ' +
      'seals nothing, and refuses an organization in which it meets one.',
    table(
      ['event', 'members'],
      Object.entries(sealableMembers).map(([type, names]) => [
        `\`${type}\``,
        names.map((name) => `\`${name}\``).join(', '),
      ]),
    ),
    ...files.map((file) =>
      [
        `## ${file}`,
        table(
          ['event', 'data'],
          events.filter((event) => event.file === file).map(({ name, data }) => [`\`${name}\``, `\`${data}\``]),
        ),
      ].join('\n\n'),
    ),
    '## Shapes inside events',
    '`Recorded<T>` is T without `createdAt` and `updatedAt`, which derive from `at`, and with `userId`.',
    ...[
      ['Vote', 'src/domain/activity/events.ts'],
      ['Decision', 'src/domain/activity/events.ts'],
      ['Failure', 'src/domain/activity/events.ts'],
      ['ApiKey', 'src/domain/organization/credentials.ts'],
      ['Authenticator', 'src/domain/organization/credentials.ts'],
      ['RootQuorum', 'src/domain/organization/settings.ts'],
    ].map(
      ([name, file]) =>
        `### ${name}\n\n\`${file}\`\n\n${table(['member', 'type', 'about'], membersOf(file, name, ['type']))}`,
    ),
    '## Other streams',
    table(
      ['event', 'stream', 'declared in'],
      [
        ['StoreFormatted', '`installation-format`', 'src/ledger/store-format.ts'],
        ['CoordinatorInstalled', '`installation-root`', 'src/decide/found-organization.ts'],
        ['KeyEncryptionKeyActivated', '`installation-kek`', 'src/vault/kek-record.ts'],
        ['DataKeysRewrapped', '`installation-kek`', 'src/vault/kek-record.ts'],
        ['SecretSealed', '`vault-<id>`', 'src/vault/vault.ts'],
        ['DataKeyRewrapped', '`vault-<id>`', 'src/vault/vault.ts'],
        ['MessageCounted', '`message-counts-<digest>`', 'src/delivery/contact-limits.ts'],
      ].map(([name, stream, file]) =>
        source(file).text.includes(`'${name}'`)
          ? [`\`${name}\``, stream, `\`${file}\``]
          : fail(`${name} is not in ${file}`),
      ),
    ),
  );
}

/** The members of unions of `DomainEvent<'Name', Data>`. */
function eventsOf(file, tree) {
  const found = [];
  visit(tree, (node) => {
    if (!ts.isTypeReferenceNode(node) || node.typeName.getText(tree) !== 'DomainEvent') return;
    const [name, data] = node.typeArguments ?? [];
    if (!name || !ts.isLiteralTypeNode(name) || !data) return;
    found.push({ file, name: name.literal.text, data: withoutComments(data.getText(tree)) });
  });
  return found;
}

function withoutComments(text) {
  return text
    .replace(/\/\*[^]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .replace(/; \}/g, ' }')
    .trim();
}

/** The members of an interface with their documentation, and their type where it is asked for. */
function membersOf(file, name, [type] = []) {
  const { tree } = source(file);
  const rows = [];
  visit(tree, (node) => {
    if (!ts.isInterfaceDeclaration(node) || node.name.text !== name) return;
    for (const member of node.members) {
      const [comment] = ts.getJSDocCommentsAndTags(member);
      const about = (ts.getTextOfJSDocComment(comment?.comment) ?? '').replace(/\s+/g, ' ');
      const label = `\`${member.name.getText(tree)}${member.questionToken ? '?' : ''}\``;
      // The `?` says so already.
      const text = withoutComments(member.type.getText(tree));
      const said = member.questionToken ? text.replace(/^\| |\s*\| undefined$/g, '') : text;
      rows.push([label, ...(type ? [`\`${said}\``] : []), about]);
    }
  });
  return rows.length > 0 ? rows : fail(`${name} is not in ${file}`);
}

/**
 * The events that the decision of each activity may return, by its newest type: those whose object literals stand in
 * `decide` and in what it calls, followed through the sources by the compiler.
 */
function eventsProduced() {
  producedEvents ??= findEventsProduced();
  return producedEvents;
}

let producedEvents;

let schemaText;

/** Asking the compiler takes seconds, and the same sources give the same. */
function schemaOfEvents() {
  schemaText ??= `${JSON.stringify(eventSchema(root), null, 1)}\n`;
  return schemaText;
}

/** Makes what a sub-organization begins with, which is recorded in its own stream. */
const ofAnotherStream = 'foundingEvents';

function findEventsProduced() {
  const isPure = (file) => file.startsWith('src/activities/') || file.startsWith('src/domain/');
  const pure = sources().filter(({ file }) => isPure(file));
  const names = new Set(pure.flatMap(({ file, tree }) => eventsOf(file, tree)).map(({ name }) => name));
  const { checker, trees } = programOf(pure.map(({ file }) => file));

  const produced = (decide) => {
    const found = new Set();
    const seen = new Set([decide]);
    const look = (node) => {
      if (ts.isTypeNode(node)) return;
      // A method is looked at where it is called: the object that it is of may have others.
      if (ts.isMethodDeclaration(node) && ts.isObjectLiteralExpression(node.parent) && !seen.has(node)) return;
      for (const name of typeMember(node, checker)) if (names.has(name)) found.add(name);
      const isFollowed = ts.isIdentifier(node) && node.text !== ofAnotherStream;
      const declared = isFollowed ? declarationOf(node, checker) : undefined;
      if (declared && !seen.has(declared) && trees.has(declared.getSourceFile())) {
        seen.add(declared);
        ts.forEachChild(declared, look);
      }
      ts.forEachChild(node, look);
    };
    ts.forEachChild(decide, look);
    return [...found].sort(byName);
  };

  const byType = new Map();
  for (const tree of trees) {
    visit(tree, (node) => {
      if (!ts.isCallExpression(node) || node.expression.getText(tree) !== 'defineActivity') return;
      const member = (name) => node.arguments[0].properties.find((one) => one.name?.getText(tree) === name);
      const [type] = typeMember(member('type'), checker);
      byType.set(type, produced(member('decide')));
    });
  }
  return byType;
}

/** The texts that a member named `type` of an object literal may have. */
function typeMember(node, checker) {
  const isAssigned = ts.isPropertyAssignment(node);
  if ((!isAssigned && !ts.isShorthandPropertyAssignment(node)) || node.name.getText() !== 'type') return [];
  const texts = [];
  if (isAssigned) visit(node.initializer, (one) => ts.isStringLiteral(one) && texts.push(one.text));
  if (texts.length > 0) return texts;
  const type = isAssigned
    ? checker.getTypeAtLocation(node.initializer)
    : checker.getTypeOfSymbol(checker.getShorthandAssignmentValueSymbol(node));
  return (type.isUnion() ? type.types : [type]).filter((one) => one.isStringLiteral()).map(({ value }) => value);
}

/** The function or constant that a name stands for; undefined for anything else. */
function declarationOf(name, checker) {
  const symbol = checker.getSymbolAtLocation(name);
  const isImported = symbol && symbol.flags & ts.SymbolFlags.Alias;
  const declared = (isImported ? checker.getAliasedSymbol(symbol) : symbol)?.valueDeclaration;
  const isFollowed =
    declared &&
    (ts.isFunctionDeclaration(declared) || ts.isMethodDeclaration(declared) || ts.isVariableDeclaration(declared));
  return isFollowed ? declared : undefined;
}

/** The files with what names in them stand for: own sources only, without libraries, which make no events. */
function programOf(files) {
  const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext, noLib: true, types: [] };
  const host = ts.createCompilerHost(options, true);
  host.getSourceFile = (path) => source(relative(root, path).replaceAll('\\', '/')).tree;
  host.resolveModuleNameLiterals = (literals, from) =>
    literals.map(({ text }) => {
      const path = relative(root, join(dirname(from), text)).replaceAll('\\', '/');
      const file = path.replace(/\.js$/, '.ts');
      const isOurs = text.startsWith('.') && files.includes(file);
      return { resolvedModule: isOurs ? { resolvedFileName: join(root, file), extension: '.ts' } : undefined };
    });
  const program = ts.createProgram(
    files.map((file) => join(root, file)),
    options,
    host,
  );
  return {
    checker: program.getTypeChecker(),
    trees: new Set(program.getSourceFiles()),
  };
}

// --- settings and metrics -----------------------------------------------------------------------------------------

function settingsPage() {
  return page(
    'Settings',
    'Set these in the environment, or in `.env` in the working folder; the environment takes precedence. With an invalid setting, ' +
      'startup fails with exit code 2 and one line that names it.',
    table(
      ['setting', 'default', 'what it does'],
      settings.map(([name, value, about]) => [`\`${name}\``, value === '' ? '' : `\`${value}\``, about]),
    ),
  );
}

const holdersOfLimits = {
  organization: 'an organization',
  user: 'a user',
  submitter: 'a user who submits',
  text: 'what is written',
};

function limitsPage() {
  const number = (value) => value.toLocaleString('en-US');
  const rows = Object.entries(limitTable).map(([name, limit]) => {
    const { what, whose, value, ofSubOrganization, isFixed, reason, cost, help } = limit;
    const values =
      ofSubOrganization === undefined
        ? number(value)
        : `${number(value)}; ${number(ofSubOrganization)} of a sub-organization`;
    return [`\`${name}\``, holdersOfLimits[whose], what, isFixed ? `${values}, fixed` : values, reason, cost, help];
  });
  return page(
    'Limits of what is stored',
    'Beyond a limit, requests are refused with 429 (names: 400) and nothing is recorded; what already exists stays. The operator ' +
      'sets other values with `ORGANIZATION_LIMITS` and `SUB_ORGANIZATION_LIMITS` ([settings](settings.md)), from 1 to ten times ' +
      'the usual value; a parent sets lower ones for its sub-organizations with the feature ' +
      '`FEATURE_NAME_SUB_ORGANIZATION_LIMITS`, whose value has the same form: `users=20, wallets=5`. ' +
      '`get_organization` and `get_organization_configs` return the limits in force. [Another page](../limits.md) has the limits ' +
      'on work.',
    table(['name', 'of', 'what', 'usual value', 'reason', 'cost at the limit', 'how to make room'], rows),
  );
}

function metricsPage() {
  const metrics = new Metrics();
  metrics.measureLag(() => Promise.resolve(0));
  metrics.measureReadiness(() => Promise.resolve(true));
  metrics.measureConditions(() => []);
  metrics.measureClock(() => ({
    lead: 0,
    untrusted: 0,
    adopted: { count: 0, last: 0 },
    organizationsAhead: new Map(),
  }));
  metrics.measureWaitingDeliveries(() => 0);
  metrics.measureWaitingActivities(() => ({}));
  metrics.measureOpenMessages(() => 0);
  metrics.measureDisk(
    async () => ({}),
    async () => undefined,
  );
  metrics.describeBuild({ version: '', node: '' });
  const own = metrics.registry
    .getMetricsAsArray()
    .filter(({ name }) => name.startsWith('countersign_'))
    .sort((one, other) => byName(one.name, other.name));
  return page(
    'Metrics',
    'At `/metrics`, in the text format of Prometheus. In addition, there are the default metrics of Node.js (`process_…`, `nodejs_…`).',
    table(
      ['metric', 'kind', 'labels', 'about'],
      own.map(({ name, type, labelNames, help }) => [
        `\`${name}\``,
        type,
        labelNames.map((label) => `\`${label}\``).join(', '),
        help,
      ]),
    ),
  );
}

// --- sources ------------------------------------------------------------------------------------------------------

const parsed = new Map();

function source(file) {
  if (!parsed.has(file)) {
    const text = readFileSync(join(root, file), 'utf8');
    parsed.set(file, { file, text, tree: ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true) });
  }
  return parsed.get(file);
}

function sources() {
  return readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .sort(byName)
    .map(source);
}

function sourceMentions(text) {
  return sources().some((one) => one.text.includes(text));
}

function visit(node, look) {
  look(node);
  ts.forEachChild(node, (child) => visit(child, look));
}

function fail(reason) {
  throw new Error(`the reference cannot be made: ${reason}`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  readArguments();
  const folder = join(root, 'docs', 'reference');
  for (const [name, text] of Object.entries(referencePages())) writeFileSync(join(folder, name), text);
  writeFileSync(join(root, 'docs', 'architecture.md'), architecturePage());
  process.stdout.write(
    `${Object.keys(referencePages()).length} pages written to ${relative(process.cwd(), folder) || '.'}, ` +
      'and the table of rooms to docs/architecture.md\n',
  );
}
