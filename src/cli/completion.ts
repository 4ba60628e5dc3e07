import type { Command, Option } from 'commander';
import { activityNames, queryNames } from './wire-names.js';

/** What may be typed at one place in the tree. */
interface Place {
  /** The commands that lead here, each with a space before it. */
  readonly typed: string;
  readonly words: readonly Word[];
  /** Values of its only argument: not offered again once one is given. */
  readonly values: readonly Word[];
}

interface Word {
  readonly word: string;
  readonly about: string;
}

/** The shells that have a completion script. */
const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

/** A script that completes everything in the tree: commands, options, and the names of activities and queries. */
export function completionScript(tree: Command, shell: Shell): string {
  const places = [...placesOf(tree)];
  const options = [...optionsOf(tree)];
  const taking = (value: RegExp): readonly string[] => [
    ...new Set(options.filter(({ flags }) => value.test(flags)).map(({ long }) => long!)),
  ];
  const parts = { places, files: taking(/<file>/), folders: taking(/<folder>/) };
  return { bash, zsh, fish }[shell](parts);
}

interface Parts {
  readonly places: readonly Place[];
  readonly files: readonly string[];
  readonly folders: readonly string[];
}

/** The possible values of a command's first argument, if they are a list. */
const argumentWords: Readonly<Record<string, () => readonly string[]>> = {
  ' submit': activityNames,
  ' query': queryNames,
  ' completion': () => shells,
};

function* placesOf(command: Command, typed = ''): Generator<Place> {
  const commands = command.commands.map((one) => ({ word: one.name(), about: one.summary() }));
  // A group without a subcommand takes the arguments of its list.
  const taken = [command, ...command.commands.filter((one) => typed !== '' && one.name() === 'list')];
  const options = taken
    .flatMap((one) => one.options.filter(({ hidden }) => !hidden))
    .map(({ long, description }) => ({ word: long!, about: description }));
  const values = (argumentWords[typed]?.() ?? []).map((word) => ({ word, about: '' }));
  yield { typed, words: [...commands, ...options, { word: '--help', about: 'how to use it' }], values };
  for (const one of command.commands) yield* placesOf(one, `${typed} ${one.name()}`);
}

function* optionsOf(command: Command): Generator<Option> {
  yield* command.options;
  for (const one of command.commands) yield* optionsOf(one);
}

const folderOfProfiles = '"${XDG_CONFIG_HOME:-$HOME/.config}"/countersign/profiles';

const listed = (words: readonly Word[]): string => words.map(({ word }) => word).join(' ');

const withValues = (places: readonly Place[], line: (place: Place) => string): string =>
  places
    .filter(({ values }) => values.length > 0)
    .map(line)
    .join('\n');

function bash({ places, files, folders }: Parts): string {
  return `# Completes countersign in bash: source <(countersign completion bash)
_countersign() {
  local current=\${COMP_WORDS[COMP_CWORD]} typed= given= words= profile
  local -i at
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "$typed \${COMP_WORDS[at]}" in
      ${places
        .slice(1)
        .map(({ typed }) => `"${typed}"`)
        .join(' | ')}) typed="$typed \${COMP_WORDS[at]}" ;;
      *" -"*) ;;
      *) [[ \${COMP_WORDS[at - 1]} == --* ]] || given=1 ;;
    esac
  done
  case \${COMP_WORDS[COMP_CWORD - 1]} in
    ${files.join(' | ')}) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;
    ${folders.join(' | ')}) compopt -o filenames; COMPREPLY=($(compgen -d -- "$current")); return ;;
    --profile)
      for profile in ${folderOfProfiles}/*.json; do
        profile=\${profile##*/}
        words="$words \${profile%.json}"
      done
      COMPREPLY=($(compgen -W "$words" -- "$current"))
      return
      ;;
  esac
  case $typed in
${places.map(({ typed, words }) => `    "${typed}") words="${listed(words)}" ;;`).join('\n')}
  esac
  if [[ -z $given ]]; then
    case $typed in
${withValues(places, ({ typed, values }) => `      "${typed}") words="$words ${listed(values)}" ;;`)}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _countersign countersign
`;
}

function zsh({ places, files, folders }: Parts): string {
  return `#compdef countersign
# Completes countersign in zsh: source <(countersign completion zsh)
_countersign() {
  local typed= given=
  local -i at
  for ((at = 2; at < CURRENT; at++)); do
    case "$typed \${words[at]}" in
      ${places
        .slice(1)
        .map(({ typed }) => `"${typed}"`)
        .join(' | ')}) typed="$typed \${words[at]}" ;;
      *" -"*) ;;
      *) [[ \${words[at - 1]} == --* ]] || given=1 ;;
    esac
  done
  case \${words[CURRENT - 1]} in
    ${files.join(' | ')}) _files; return ;;
    ${folders.join(' | ')}) _files -/; return ;;
    --profile) compadd -- ${folderOfProfiles}/*.json(N:t:r); return ;;
  esac
  case $typed in
${places.map(({ typed, words }) => `    "${typed}") compadd -- ${listed(words)} ;;`).join('\n')}
  esac
  if [[ -z $given ]]; then
    case $typed in
${withValues(places, ({ typed, values }) => `      "${typed}") compadd -- ${listed(values)} ;;`)}
    esac
  fi
}
compdef _countersign countersign
`;
}

function fish({ places, files, folders }: Parts): string {
  const quoted = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;
  const rule = (typed: string, { word, about }: Word, at = '__countersign_at'): string => {
    const what = word.startsWith('--') ? `-l ${word.slice(2)}${takes(word)}` : `-a ${word}`;
    return `complete -c countersign -n ${quoted(`${at} ${quoted(typed)}`)} ${what}${about ? ` -d ${quoted(about)}` : ''}`;
  };
  const takes = (word: string): string =>
    files.includes(word) ? ' -r -F' : folders.includes(word) ? " -x -a '(__fish_complete_directories)'" : '';
  return `# Completes countersign in fish: countersign completion fish | source
function __countersign_at
  set -l typed ''
  for word in (commandline -opc)[2..]
    contains -- "$typed $word" ${places
      .slice(1)
      .map(({ typed }) => quoted(typed))
      .join(' ')}
    and set typed "$typed $word"
  end
  test "$typed" = "$argv[1]"
end
# Nothing but options has been typed after the command.
function __countersign_before
  __countersign_at $argv[1]; or return 1
  set -l last (commandline -opc)[-1]
  test (string split -r -m 1 ' ' -- $argv[1])[-1] = $last; or string match -q -- '-*' $last
end
complete -c countersign -f
${places.flatMap(({ typed, words }) => words.map((word) => rule(typed, word))).join('\n')}
${places.flatMap(({ typed, values }) => values.map((word) => rule(typed, word, '__countersign_before'))).join('\n')}
`;
}
