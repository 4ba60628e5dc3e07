import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

/**
 * Reads the arguments of a benchmark, script or example. `--help` prints the comment that the program's file begins with. An
 * argument it does not know, or a number that is none, ends it with 2, so that nothing starts by a slip.
 *
 * @param flags names without `--`, each true or false in the result
 * @param options names of options that take a value, with their defaults: `--minutes 5`; numbers as with `values`
 * @param values names of arguments without `--`, in their order, with their defaults; where the default is a number, so is the
 * argument, and above 0
 */
export function readArguments({ flags = [], options = {}, values = {} } = {}) {
  const known = ['help', ...flags];
  const taken = Object.fromEntries([
    ...known.map((name) => [name, { type: 'boolean' }]),
    ...Object.keys(options).map((name) => [name, { type: 'string' }]),
  ]);
  const { tokens } = parseArgs({ options: taken, strict: false, allowPositionals: true, tokens: true });
  const read = { ...Object.fromEntries(known.map((name) => [name, false])), ...options, ...values };
  const names = Object.keys(values);
  for (const token of tokens) {
    if (token.kind === 'option' && Object.hasOwn(options, token.name)) {
      if (!token.value) refuse(`\`${token.rawName}\` needs a value`);
      read[token.name] = valueOf(token.name, token.value, options[token.name]);
    } else if (token.kind === 'option') read[flagOf(token, known)] = true;
    if (token.kind !== 'positional') continue;
    const name = names.shift();
    if (name === undefined) refuse(`unexpected argument \`${token.value}\``);
    read[name] = valueOf(name, token.value, values[name]);
  }
  if (!read.help) return read;
  console.log(about());
  process.exit(0);
}

/** Ends the program with 2 and a sentence. */
export function refuse(reason) {
  console.error(`${reason}; see --help`);
  process.exit(2);
}

function flagOf({ name, rawName, value }, known) {
  if (!known.includes(name)) refuse(`unknown option \`${rawName}\``);
  if (value !== undefined) refuse(`\`${rawName}\` takes no value`);
  return name;
}

function valueOf(name, text, usual) {
  return typeof usual === 'number' ? positive(name, text) : text;
}

function positive(name, text) {
  const number = Number(text);
  if (!(number > 0 && number < Infinity)) refuse(`${name} must be a number above 0, not \`${text}\``);
  return number;
}

function about() {
  const [, comment] = /\/\*\*([^]*?)\*\//.exec(readFileSync(process.argv[1], 'utf8'));
  return comment.replace(/^ *\* ?/gm, '').trim();
}
