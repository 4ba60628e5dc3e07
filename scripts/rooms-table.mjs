/**
 * Who may import whom, as a table for people: made from the rules that `npm run rules` checks, into docs/architecture.md.
 * `npm run docs` writes it; `test/docs/reference.spec.ts` holds the page against it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const { forbidden } = createRequire(import.meta.url)('../.dependency-cruiser.cjs');

/** Rooms that no rule keeps from anything. */
const free = [
  { room: 'testing', about: 'what a jest suite imports' },
  {
    room: 'app',
    about: 'what starts: the root module, the adapters that settings choose, what is closed in which order',
  },
].map((one) => ({ ...one, allowed: undefined }));

/** The page, with the table in the place of the one under "Code layout". */
export function architecturePage() {
  const text = readFileSync(`${root}docs/architecture.md`, 'utf8');
  const [, before, after] = /^([^]*?\n## Code layout\n\n)(?:\|[^\n]*\n)+([^]*)$/.exec(text) ?? [];
  if (before === undefined) throw new Error('docs/architecture.md has no table under "Code layout"');
  return `${before}${roomsTable()}\n${after}`;
}

function roomsTable() {
  const ruled = forbidden
    .filter(({ from, to }) => to.path === '^src/' && /^\^src\/[\w-]+\/$/.test(from.path))
    .map(({ comment, from, to }) => ({ room: roomOf(from.path), about: comment, allowed: to.pathNot.slice(1) }));
  const rooms = [...ruled, ...free];
  const folders = readdirSync(`${root}src`, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const differ = (some, others) => some.filter((name) => !others.includes(name));
  const [names, there] = [rooms.map(({ room }) => room), folders.map(({ name }) => name)];
  const odd = [...differ(names, there), ...differ(there, names)];
  if (odd.length > 0) throw new Error(`.dependency-cruiser.cjs and src do not have the same rooms: ${odd.join(', ')}`);
  return padded([
    ['folder', 'what belongs there', 'may import'],
    ...rooms.map(({ room, about, allowed }) => [`\`src/${room}\``, about, mayImport(allowed)]),
  ]);
}

const roomOf = (pattern) => /^\^src\/([\w-]+)\//.exec(pattern)[1];

/** Whole rooms first, then single files, then rooms of which there are several. */
function mayImport(allowed) {
  if (allowed === undefined) return 'everything';
  const isWhole = (pattern) => /^\^src\/[\w-]+\/(?:\(\?!\w+\/\))?$/.test(pattern);
  const whole = allowed.filter(isWhole).map((pattern) => {
    const without = /\(\?!(\w+)\//.exec(pattern)?.[1];
    return without === undefined ? roomOf(pattern) : `${roomOf(pattern)} (not its ${without})`;
  });
  const partial = allowed.filter((pattern) => !isWhole(pattern));
  const files = partial.map((pattern) => /^\^src\/([\w-]+\/[\w-]+)\\\.ts\$$/.exec(pattern)?.[1]);
  const parts = [...new Set(partial.filter((_, at) => files[at] === undefined).map(roomOf))];
  const single = files.filter((file) => file !== undefined && !parts.includes(file.split('/')[0]));
  const said = [
    ...whole.sort(),
    ...single.sort(),
    ...(parts.length > 0 ? [`parts of ${parts.sort().join(', ')}`] : []),
  ];
  return said.join(', ') || 'nothing';
}

/** As the formatter wants it. */
function padded(rows) {
  const widths = rows[0].map((_, at) => Math.max(...rows.map((row) => row[at].length)));
  const line = (cells) => `| ${cells.map((cell, at) => cell.padEnd(widths[at])).join(' | ')} |`;
  const [head, ...others] = rows;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...others.map(line)].join('\n');
}
