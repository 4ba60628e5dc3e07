import { checkExpression } from './check.js';
import { CoordinatorError } from '../errors.js';
import type { PolicyEnvironment } from './namespaces.js';
import { parsePolicy } from './parse.js';
import { PolicyError, type CheckedExpression } from './syntax.js';
import type { Clause } from './types.js';

export { checkExpression, parsePolicy };

/** Most characters of clause texts whose compiled form is kept, per environment: a few tens of megabytes. */
const maxKeptCharacters = 1_000_000;

class CompiledClauses {
  private readonly byClause: Readonly<Record<Clause, Map<string, CheckedExpression | PolicyError>>> = {
    condition: new Map(),
    consensus: new Map(),
    time: new Map(),
  };
  private characters = 0;

  get(text: string, clause: Clause): CheckedExpression | PolicyError | undefined {
    return this.byClause[clause].get(text);
  }

  set(text: string, clause: Clause, compiled: CheckedExpression | PolicyError): void {
    if (this.characters + text.length > maxKeptCharacters) {
      for (const texts of Object.values(this.byClause)) texts.clear();
      this.characters = 0;
    }
    this.characters += text.length;
    this.byClause[clause].set(text, compiled);
  }
}

/**
 * Only remembers results of a pure function of (text, clause, environment): whether an entry is there can be told by
 * the clock and by nothing else. Its size is bounded.
 */
const memory = new WeakMap<PolicyEnvironment, CompiledClauses>();

/**
 * A clause ready to be evaluated. Texts repeat from request to request, so each is compiled once.
 * @throws {PolicyError}
 */
export function compileClause(text: string, clause: Clause, environment: PolicyEnvironment): CheckedExpression {
  let compiledClauses = memory.get(environment);
  if (!compiledClauses) {
    compiledClauses = new CompiledClauses();
    memory.set(environment, compiledClauses);
  }
  let compiled = compiledClauses.get(text, clause);
  if (!compiled) {
    compiled = compile(text, clause, environment);
    compiledClauses.set(text, clause, compiled);
  }
  if (compiled instanceof PolicyError) throw compiled;
  return compiled;
}

/**
 * Refuses a clause that could not be evaluated, when a policy is written.
 * @throws {CoordinatorError} INVALID_ARGUMENT, with the message that policy authors know (client protocol 3.4)
 */
export function checkPolicyText(text: string, clause: Clause, environment: PolicyEnvironment): void {
  const compiled = compile(text, clause, environment);
  if (!(compiled instanceof PolicyError)) return;
  throw new CoordinatorError(
    'INVALID_ARGUMENT',
    `invalid policy ${clause}: Expression cannot be evaluated: ${compiled.message}`,
    { category: 'REQUEST_INVALID', cause: compiled },
  );
}

function compile(text: string, clause: Clause, environment: PolicyEnvironment): CheckedExpression | PolicyError {
  try {
    return checkExpression(parsePolicy(text), environment, clause);
  } catch (error) {
    if (error instanceof PolicyError) return error;
    throw error;
  }
}
