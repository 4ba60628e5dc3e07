import { createRequire } from 'node:module';
import { readFile } from 'node:fs/promises';
import oniguruma from 'vscode-oniguruma';
import textmate, { type IGrammar } from 'vscode-textmate';
import { parse } from 'yaml';
import { activities } from '../../../src/activities/index.js';
import { buildRegistry } from '../../../src/decide/registry.js';
import { tokenize } from '../../../src/domain/policy/tokens.js';

const { createOnigScanner, createOnigString, loadWASM } = oniguruma;
const { INITIAL, parseRawGrammar, Registry: Grammars } = textmate;

/** The grammars in `editors/`, run by the engine that editors run them by. */

const wasm = await readFile(createRequire(import.meta.url).resolve('vscode-oniguruma/release/onig.wasm'));
await loadWASM(new Uint8Array(wasm));

const files: Readonly<Record<string, string>> = {
  'source.countersign-policy': 'countersign-policy.tmLanguage.json',
  'source.countersign-policy.yaml': 'countersign-policy-yaml.tmLanguage.json',
};
/** As much of YAML as an injection needs to be injected into. */
const yaml = { scopeName: 'source.yaml', patterns: [{ match: '#.*$', name: 'comment.yaml' }], repository: {} };

const textOf = (scopeName: string) =>
  readFile(new URL(`../../../editors/${files[scopeName]}`, import.meta.url), 'utf8');

const grammars = new Grammars({
  onigLib: Promise.resolve({ createOnigScanner, createOnigString }),
  async loadGrammar(scopeName) {
    if (scopeName === 'source.yaml') return parseRawGrammar(JSON.stringify(yaml), 'yaml.json');
    return parseRawGrammar(await textOf(scopeName), 'grammar.json');
  },
  getInjections: (scopeName) => (scopeName === 'source.yaml' ? ['source.countersign-policy.yaml'] : undefined),
});

async function grammarOf(scopeName: string): Promise<IGrammar> {
  const grammar = await grammars.loadGrammar(scopeName);
  if (!grammar) throw new Error(`no grammar ${scopeName}`);
  return grammar;
}

/** Each token with the most particular scope it has. */
function scoped(grammar: IGrammar, text: string): { readonly text: string; readonly scope: string; at: number }[] {
  let stack = INITIAL;
  let offset = 0;
  return text.split('\n').flatMap((line) => {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, stack);
    stack = ruleStack;
    const begun = offset;
    offset += line.length + 1;
    return tokens.map(({ startIndex, endIndex, scopes }) => ({
      text: line.slice(startIndex, endIndex),
      scope: scopes.at(-1)!.replace('.countersign-policy', ''),
      at: begun + startIndex,
    }));
  });
}

const language = await grammarOf('source.countersign-policy');
const words = (scope: string, text: string) =>
  scoped(language, text).flatMap((token) => (token.scope === scope ? [token.text] : []));

const { namespaces, functions } = buildRegistry(activities).policyEnvironment;

test('knows every function and every namespace of the language, and no others', async () => {
  const grammar = await textOf('source.countersign-policy');
  const { repository } = JSON.parse(grammar) as {
    repository: { function: { patterns: { match: string }[] }; namespace: { match: string } };
  };
  const named = (match: string) => /\(\?:([^)]*)\)/.exec(match)![1]!.split('|').sort();
  expect(repository.function.patterns.flatMap(({ match }) => named(match)).sort()).toEqual(
    functions.map(({ name }) => name).sort(),
  );
  expect(named(repository.namespace.match)).toEqual([...namespaces.keys()].sort());
});

test('tells literals, operators, functions, namespaces and members apart', () => {
  const clause =
    "activity.kind in ['A b', '<tag treasurer>'] && !(eth.tx.value >= 10) || approvers.filter(user, user.tags.contains('in 5')).count() != 2 && time < Timestamp('2026-01-01T00:00:00Z') && true";
  expect(words('support.variable', clause)).toEqual(['activity', 'eth', 'approvers', 'time']);
  expect(words('support.function', clause)).toEqual(['filter', 'contains', 'count', 'Timestamp']);
  expect(words('variable.other', clause)).toEqual(['kind', 'tx', 'value', 'user', 'user', 'tags']);
  expect(words('variable.other.placeholder', clause)).toEqual(['<tag treasurer>']);
  expect(words('constant.numeric.integer', clause)).toEqual(['10', '2']);
  expect(words('constant.language', clause)).toEqual(['true']);
  expect(words('keyword.operator.logical', clause)).toEqual(['&&', '!', '||', '&&', '&&']);
  expect(words('keyword.operator.comparison', clause)).toEqual(['in', '>=', '!=', '<']);
  expect(words('string.quoted.single', clause)).toEqual(['A b', 'in 5', '2026-01-01T00:00:00Z']);
});

test.each(['activity.kind = 5', 'activity.kind & 1', 'x == "y"', 'x == 007', 'x == 5a'])(
  'shows as illegal what the language refuses: %s',
  (clause) => {
    expect(scoped(language, clause).some(({ scope }) => scope.startsWith('invalid.'))).toBe(true);
  },
);

test('shows a string without a closing quote as a string to the end', () => {
  expect(scoped(language, "x == 'open && y").at(-1)).toMatchObject({
    scope: 'string.quoted.single',
    text: 'open && y',
  });
});

/** The clauses of the examples and of the guide to company policies. */
async function publishedClauses(): Promise<readonly string[]> {
  const read = (path: string) => readFile(new URL(`../../../${path}`, import.meta.url), 'utf8');
  const folders = ['treasury', 'ci-signing', 'customer-wallets'];
  const examples = await Promise.all(folders.map((folder) => read(`examples/policies/${folder}/policies.yaml`)));
  const quoted = (await read('docs/how-to/company-policies.md')).matchAll(/"(?:condition|consensus|time)": "([^"]+)"/g);
  const inFiles = examples.flatMap((text) => {
    const { policies } = parse(text) as { policies: Readonly<Record<string, string>>[] };
    return policies.flatMap(({ condition, consensus, time }) => [condition, consensus, time]);
  });
  return [...inFiles, ...Array.from(quoted, ([, clause]) => clause)].filter((clause) => clause !== undefined);
}

test('gives every token of the published policies a scope of its own, and calls none of them illegal', async () => {
  const clauses = await publishedClauses();
  expect(clauses.length).toBeGreaterThan(8);
  for (const clause of clauses) {
    const shown = scoped(language, clause);
    expect(shown.filter(({ scope }) => scope.startsWith('invalid.'))).toEqual([]);
    for (const { kind, from, to } of tokenize(clause)) {
      if (kind === 'end') continue;
      const { scope } = shown.findLast(({ at }) => at <= from)!;
      expect({ clause, token: clause.slice(from, to), scope }).not.toMatchObject({ scope: 'source' });
    }
  }
});

test('shows the clauses of policies in YAML, and nothing else of the file', async () => {
  const file = [
    'policies:',
    '  - name: activity in the office',
    "    condition: activity.action == 'SIGN' # who signs",
    '    consensus: |',
    '      approvers.count() >= 2 &&',
    '        true',
    '    notes: approvers are kept',
    '  - condition: eth.tx.value > 5',
  ].join('\n');
  const shown = scoped(await grammarOf('source.yaml'), file);
  const of = (scope: string) => shown.flatMap((token) => (token.scope === scope ? [token.text] : []));
  expect(of('support.variable')).toEqual(['activity', 'approvers', 'eth']);
  expect(of('support.function')).toEqual(['count']);
  expect(of('constant.numeric.integer')).toEqual(['2', '5']);
  expect(of('entity.name.tag.yaml')).toEqual(['condition', 'consensus', 'condition']);
  expect(of('comment.line.number-sign.yaml')).toEqual(['# who signs']);
});
