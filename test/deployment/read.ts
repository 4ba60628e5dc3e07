import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export const root = fileURLToPath(new URL('../../', import.meta.url));
export const read = (file: string): string => readFileSync(new URL(file, new URL('../../', import.meta.url)), 'utf8');

/** What the tests look at of a service, in the short forms of the Compose specification that our file keeps to. */
export interface Service {
  readonly image: string;
  readonly build?: string;
  readonly profiles?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly environment?: Readonly<Record<string, string>>;
  readonly healthcheck?: { readonly test: readonly string[]; readonly retries: number };
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly volumes?: readonly string[];
  readonly secrets?: readonly string[];
  readonly ports?: readonly string[];
  readonly networks?: readonly string[];
  readonly read_only?: boolean;
  readonly tmpfs?: readonly string[];
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly network_mode?: string;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean } | null>>;
  readonly volumes: Readonly<Record<string, null>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
}

/** docker-compose.yml, with `${NAME:-default}` filled in as Compose does: in each value, after YAML was read. */
export function readCompose(variables: Readonly<Record<string, string>> = {}): Compose {
  const filledIn = (_: unknown, value: unknown): unknown =>
    typeof value === 'string'
      ? value.replace(/\$\{(\w+):-([^}]*)\}/g, (_, name: string, otherwise: string) => variables[name] ?? otherwise)
      : value;
  // Compose knows merge keys (`<<`), which YAML 1.2 has no longer.
  return parse(read('docker-compose.yml'), filledIn, { merge: true }) as Compose;
}

/** One instruction of a Dockerfile, such as `COPY`, with its words as one line. */
interface Instruction {
  readonly name: string;
  readonly words: string;
}

/** A stage, from its FROM on. */
interface Stage {
  readonly from: string;
  readonly name: string | undefined;
  readonly instructions: readonly Instruction[];
}

/** The Dockerfile, by stages. Knows comments and continued lines, and no here-documents or ONBUILD. */
export function readDockerfile(): readonly Stage[] {
  const lines = read('Dockerfile')
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '');
  const stages: { from: string; name: string | undefined; instructions: Instruction[] }[] = [];
  for (const line of lines) {
    const [, name = '', words = ''] = /^([A-Z]+) +(.+)$/.exec(line) ?? [];
    if (name === '') throw new Error(`not an instruction: \`${line}\``);
    if (name === 'FROM') {
      const [, from = '', stage] = /^(\S+)(?: AS (\S+))?$/.exec(words) ?? [];
      stages.push({ from, name: stage, instructions: [] });
    } else {
      stages.at(-1)!.instructions.push({ name, words });
    }
  }
  return stages;
}
