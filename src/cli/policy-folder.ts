import { readdir, writeFile } from 'node:fs/promises';
import { activities } from '../activities/index.js';
import { buildRegistry } from '../decide/registry.js';
import { decidedActivities } from '../audit/lint/decided-activities.js';
import { regularText } from '../files/regular-file.js';
import { readPolicyFile, type IdOf, type PolicyFile } from '../audit/policies/policy-files.js';
import type { PolicySaid } from '../audit/policies/policy-changes.js';
import { reachesUsers } from '../audit/lint/policy-reach.js';
import { runPolicyTests, type PolicyTestResult } from '../audit/policies/policy-tests.js';
import type { Mistake } from '../audit/policies/yaml-file.js';
import { BadUsage } from './bad-usage.js';
import type { Outcome } from './command.js';
import { exitCodes } from './exit-codes.js';
import { unreadable } from './input-files.js';
import { printable, table } from './layout.js';
import type { Terminal } from './terminal.js';

const registry = buildRegistry(activities);
const rules = { environment: registry.policyEnvironment, activities: decidedActivities(registry) };

/** Whether an ALLOW may let somebody change another user. */
export const mayReachUsers = (policy: PolicySaid): boolean => reachesUsers(policy, rules);

/** Checks the policies of a folder. */
export async function checkFolder(terminal: Terminal, folder: string): Promise<Outcome> {
  const { policies, mistakes } = await policiesIn(terminal, folder);
  const said = `${policies.length} ${policies.length === 1 ? 'policy' : 'policies'}: nothing wrong.\n`;
  return {
    text: mistakes.length > 0 ? mistakesShown(mistakes) : said,
    json: { policies: policies.length, mistakes },
    exitCode: mistakes.length > 0 ? exitCodes.failed : exitCodes.done,
  };
}

/** Runs the tests of a folder. */
export async function testFolder(terminal: Terminal, folder: string, junit: string | undefined): Promise<Outcome> {
  const policies = await policiesIn(terminal, folder);
  const names = (await readdir(terminal.path(folder))).filter((name) => name.endsWith('.test.yaml')).sort();
  if (names.length === 0) throw new BadUsage(`\`${folder}\` has no file that ends in .test.yaml`);
  const runs = await Promise.all(
    names.map(async (name) => runPolicyTests(name, await textIn(terminal, folder, name), policies, rules)),
  );
  const mistakes = [...policies.mistakes, ...runs.flatMap((run) => run.mistakes)];
  const results = runs.flatMap((run) => run.results);
  const failed = results.filter(({ expected, got }) => expected !== got).length;
  if (junit !== undefined) await writeFile(terminal.path(junit), junitOf(results));
  const rows = results.map(({ name, expected, got }) =>
    expected === got ? ['ok', name, got] : ['FAILED', name, `${got}; expected ${expected}`],
  );
  const isGood = failed === 0 && mistakes.length === 0;
  const sum = `${results.length - failed} of ${results.length} tests passed.\n`;
  return {
    text: mistakes.length > 0 ? mistakesShown(mistakes) : `${table(terminal, ['', 'TEST', 'OUTCOME'], rows)}\n${sum}`,
    json: { results, mistakes },
    exitCode: isGood ? exitCodes.done : exitCodes.failed,
  };
}

const policyFile = 'policies.yaml';

async function policiesIn(terminal: Terminal, folder: string): Promise<PolicyFile> {
  return readPolicies(await policyText(terminal, folder));
}

/** The text of the file of policies in a folder. @throws {BadUsage} if it cannot be read */
export function policyText(terminal: Terminal, folder: string): Promise<string> {
  return textIn(terminal, folder, policyFile);
}

/** The policies in the text of a file; with `idOf`, names stand for what an organization has. */
export function readPolicies(text: string, idOf?: IdOf): PolicyFile {
  return readPolicyFile(policyFile, text, rules.environment, idOf);
}

/** Somebody else may have written it. */
const mostBytes = 1024 * 1024;

/** The text of a file in a folder. @throws {BadUsage} if it cannot be read */
export async function textIn(terminal: Terminal, folder: string, name: string): Promise<string> {
  try {
    return await regularText(terminal.path(`${folder}/${name}`), mostBytes);
  } catch (error) {
    throw unreadable(`${folder}/${name}`, error);
  }
}

/** Mistakes with their places, as editors and CI servers read them. */
export function mistakesShown(mistakes: readonly Mistake[]): string {
  return mistakes.map(({ file, line, column, text }) => `${file}:${line}:${column}: ${printable(text)}\n`).join('');
}

function junitOf(results: readonly PolicyTestResult[]): string {
  const failed = results.filter(({ expected, got }) => expected !== got).length;
  const cases = results.map(({ file, name, expected, got }) => {
    const failure = expected === got ? '' : `<failure message="${escaped(`${got}; expected ${expected}`)}"/>`;
    return `  <testcase classname="${escaped(file)}" name="${escaped(name)}">${failure}</testcase>\n`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="policies" tests="${results.length}" failures="${failed}">\n${cases.join('')}</testsuite>\n`;
}

function escaped(text: string): string {
  const named: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return printable(text).replace(/[&<>"]/g, (letter) => named[letter]!);
}
