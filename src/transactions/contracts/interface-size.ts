import { invalidField } from '../../domain/errors.js';
import { limitTable } from '../../domain/organization/limits.js';
import type { Steps } from '../../domain/steps.js';
import { quoted } from '../refusals.js';

/** Names of functions, instructions, parameters, fields, types, variants and accounts; real ones have fewer than 60. */
export const MAX_NAME_LENGTH = 128;
/** Functions of a contract or instructions of a program; the largest that are known have about 300. */
const MAX_FUNCTIONS = limitTable.smartContractInterfaceFunctions.value;
/** Types made of other types, each instance of a generic one counted; the largest IDLs that are known make about 600. */
const MAX_TYPES = limitTable.smartContractInterfaceTypes.value;
/** Parameters, fields, variants and accounts in all, counted in each instance of a generic type. */
const MAX_PARTS = 16_384;
/** Types in types, lists in lists and groups in groups. */
export const MAX_NESTING = 32;

/** Counts what an interface is made of, before it is made: a text of 8 kB could say a million types. */
export class InterfaceSize {
  #types = 0;
  #parts = 0;

  constructor(readonly steps: Steps) {}

  type(): void {
    this.steps.take('typeInstantiated');
    this.#types += 1;
    if (this.#types > MAX_TYPES) {
      throw bad(
        `makes more than ${MAX_TYPES} types, with each instance of a generic one; leave out what is not needed`,
      );
    }
  }

  part(): void {
    this.steps.take('nameBuilt');
    this.#parts += 1;
    if (this.#parts > MAX_PARTS) {
      throw bad(`has more than ${MAX_PARTS} parameters, fields and accounts in all; leave out what is not needed`);
    }
  }
}

export function checkName(name: string, place: string): string {
  if (name.length <= MAX_NAME_LENGTH) return name;
  throw bad(`${place} is ${quoted(name)}, of \`${name.length}\` characters; a name has at most ${MAX_NAME_LENGTH}`);
}

export function checkCount(count: number, what: string): void {
  if (count > MAX_FUNCTIONS) throw bad(`has \`${count}\` ${what}; at most ${MAX_FUNCTIONS} are taken`);
}

/** What is wrong with an interface, and where in it. */
export function bad(what: string): Error {
  return invalidField('smartContractInterface', what);
}
