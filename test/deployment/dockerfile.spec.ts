import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig } from '../../src/config/config.js';
import { settings } from '../../src/config/settings.js';
import { read, readDockerfile, root } from './read.js';

const { version, engines, scripts } = JSON.parse(read('package.json')) as {
  readonly version: string;
  readonly engines: { readonly node: string };
  readonly scripts: Readonly<Record<string, string>>;
};
const stages = readDockerfile();
const final = stages.at(-1)!;
const all = (name: string, of = stages): string[] =>
  of.flatMap(({ instructions }) => instructions.filter((one) => one.name === name).map(({ words }) => words));
const inherited = (): typeof stages => {
  const base = stages.find(({ name }) => name === final.from);
  return base ? [base, final] : [final];
};
const only = (name: string): string => {
  const found = all(name, inherited());
  if (found.length !== 1) throw new Error(`the final stage has ${found.length} ${name}, not one`);
  return found[0]!;
};
const execForm = (words: string): string[] => JSON.parse(words) as string[];
const environment = Object.fromEntries(
  all('ENV', inherited()).flatMap((words) => words.split(/ +/).map((one) => one.split('=') as [string, string])),
);

/** What COPY takes from the working folder, and not from another stage. */
const fromContext = all('COPY')
  .filter((words) => !words.startsWith('--from='))
  .flatMap((words) => words.split(/ +/).slice(0, -1));

describe('the stages', () => {
  test('there are several, and every base is a stage above or Node of one exact version that we support', () => {
    expect(stages.length).toBeGreaterThan(2);
    const outside = stages.filter(({ from }, at) => !stages.slice(0, at).some(({ name }) => name === from));
    expect(outside).toHaveLength(1);
    const [, node] = /^node:(24\.\d+\.\d+)-bookworm-slim$/.exec(outside[0]!.from) ?? [];
    expect(node).toBeDefined();
    // The build is started on that very version, and on the oldest one in the checks themselves.
    expect(read('.ci/smoke-node.mjs')).toContain(`'${node}'];`);
    expect(engines.node).toBe('>=20.19.0');
  });

  test('what is copied from the working folder exists, and .dockerignore lets it through', () => {
    expect(fromContext).toEqual(expect.arrayContaining(['package-lock.json', '.npmrc', 'src']));
    expect(fromContext.filter((file) => !existsSync(join(root, file)))).toEqual([]);
    const rules = read('.dockerignore')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    expect(rules[0]).toBe('*');
    expect(rules.slice(1).sort()).toEqual([...new Set(fromContext)].map((file) => `!${file}`).sort());
  });

  test('what is copied from another stage is built there', () => {
    const copied = all('COPY', [final]).filter((words) => words.startsWith('--from='));
    for (const words of copied) {
      const [, stage, path] = /^--from=(\S+) \/app\/(\S+) /.exec(words)!;
      const runs = all('RUN', [stages.find(({ name }) => name === stage)!]).join('\n');
      expect(runs).toContain({ node_modules: 'npm ci --omit=dev', dist: 'npm run build' }[path!]);
    }
    expect(copied).toHaveLength(2);
  });

  test('everything the build reads is copied', () => {
    const { compilerOptions } = JSON.parse(read('nest-cli.json')) as { compilerOptions: { tsConfigPath: string } };
    const { extends: parent } = JSON.parse(read(compilerOptions.tsConfigPath)) as { extends: string };
    for (const file of ['nest-cli.json', compilerOptions.tsConfigPath, parent.replace('./', '')])
      expect(fromContext).toContain(file);
  });

  test('npm runs scripts that exist, installs from the lock file, and runs no install script', () => {
    const runs = all('RUN').filter((words) => words.startsWith('npm'));
    expect(runs).toHaveLength(3);
    for (const words of runs) {
      const [, script] = /^npm run ([\w:-]+)$/.exec(words) ?? [];
      if (script === undefined) expect(words).toMatch(/^npm ci (--omit=dev )?--ignore-scripts$/);
      else expect(Object.keys(scripts)).toContain(script);
    }
  });
});

describe('the image', () => {
  test('starts what `npm start` starts, without npm and without a build', () => {
    expect(execForm(only('CMD'))).toEqual(['sh', '-c', scripts['start']]);
    expect(all('ENTRYPOINT', inherited())).toEqual([]);
    expect(all('RUN', [final]).filter((words) => words.includes('npm'))).toEqual([]);
  });

  test('runs as a numbered user that is not root, who owns the folders that are written', () => {
    expect(only('USER')).toBe('1000:1000');
    expect(only('VOLUME')).toBe('/data');
    expect(all('RUN', [final])).toEqual(['install -d -o node -g node -m 0700 /data /proxy-secret /kek']);
    const names = final.instructions.map(({ name }) => name);
    expect(names.lastIndexOf('RUN')).toBeLessThan(names.indexOf('USER'));
    expect(names.indexOf('VOLUME')).toBeGreaterThan(names.lastIndexOf('RUN'));
  });

  test('has settings that the server knows and takes', () => {
    const { NODE_ENV, ...ours } = environment;
    expect(NODE_ENV).toBe('production');
    const known: readonly string[] = settings.map(([name]) => name);
    expect(Object.keys(ours).filter((name) => !known.includes(name))).toEqual([]);
    expect(readConfig(ours)).toMatchObject({ host: '0.0.0.0', port: 8080, dataDir: '/data' });
    expect(only('EXPOSE')).toBe(environment['PORT']);
  });

  test('has the version of the package in docker-compose.yml', () => {
    expect(read('docker-compose.yml')).toContain(`\n  image: countersign:${version}\n`);
  });
});
