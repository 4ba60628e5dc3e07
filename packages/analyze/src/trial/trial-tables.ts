import { type PolicyValue, solanaLookedUp, type SolanaTable } from 'countersign/internal';
import type { Addresses } from './trial-addresses.js';
import { NotExecuted, recordsIn, saidIn, textIn, unsignedIn, type Facts } from './trial-facts.js';

/** What an instruction takes from address tables: places among all that is looked up, and facts of `address_table_lookups`. */
interface TakenFromTables {
  readonly lookedUp: readonly number[];
  readonly facts: readonly Facts[];
}

const path = 'solana.tx.address_table_lookups';

/** The address tables of an example: those of its transaction or, if nothing is said of them, those of its instructions. */
export class TrialTables {
  readonly tables: readonly SolanaTable[];

  /** @throws {NotExecuted} */
  constructor(
    requested: PolicyValue | undefined,
    ofInstructions: readonly (PolicyValue | undefined)[],
    private readonly keys: Addresses,
  ) {
    const own = () =>
      new Map(ofInstructions.flatMap(read).map((one) => [JSON.stringify(this.tableOf(one)), one])).values();
    this.tables = (requested === undefined ? [...own()] : read(requested)).map((one) => this.tableOf(one));
  }

  /** Of `solana.tx`. */
  get facts(): readonly Facts[] {
    return this.tables.map(factsOf);
  }

  /** What an instruction takes, each entry from another table. @throws {NotExecuted} */
  taken(requested: PolicyValue | undefined): TakenFromTables {
    const free = new Set(this.tables.keys());
    const entries = read(requested).map((input) => {
      const one = this.tableOf(input);
      const isOpen =
        indexesIn(input, 'writable_indexes') === undefined && indexesIn(input, 'readonly_indexes') === undefined;
      const at = [...free].find((place) =>
        has(this.tables[place]!, input['address_table_key'] === undefined, isOpen, one),
      );
      if (at === undefined)
        throw new NotExecuted('an instruction takes accounts of a table that its transaction has not');
      free.delete(at);
      const table = this.tables[at]!;
      return { at, table: isOpen ? table : { ...one, tableKey: table.tableKey } };
    });
    const all = solanaLookedUp(this.tables);
    const placeOf = (at: number, isWritable: boolean, index: number): number =>
      all.findIndex((one) => one.table === at && one.isWritable === isWritable && one.index === index);
    return {
      lookedUp: entries.flatMap(({ at, table }) => [
        ...table.writableIndexes.map((index) => placeOf(at, true, index)),
        ...table.readonlyIndexes.map((index) => placeOf(at, false, index)),
      ]),
      facts: [...entries].sort((a, b) => a.at - b.at).map(({ table }) => factsOf(table)),
    };
  }

  /** A table of which nothing is said gives its first account, to be read. */
  private tableOf(input: Facts): SolanaTable {
    const [writable, readonly] = [indexesIn(input, 'writable_indexes'), indexesIn(input, 'readonly_indexes')];
    const first = [0];
    const readonlyIndexes = readonly ?? ((writable ?? []).length === 0 ? first : []);
    const writableIndexes = writable ?? (readonlyIndexes.length === 0 ? first : []);
    if (writableIndexes.length + readonlyIndexes.length === 0)
      throw new NotExecuted('no transaction has an address table from which it takes nothing');
    const requested = textIn(input['address_table_key'], `${path}.address_table_key`);
    return { tableKey: this.keys.of(requested ?? 'an address table', path), writableIndexes, readonlyIndexes };
  }
}

function has(table: SolanaTable, isOfAny: boolean, isOpen: boolean, one: SolanaTable): boolean {
  if (!isOfAny && table.tableKey !== one.tableKey) return false;
  const all = (mine: readonly number[], requested: readonly number[]) =>
    requested.every((index) => mine.includes(index));
  return isOpen || (all(table.writableIndexes, one.writableIndexes) && all(table.readonlyIndexes, one.readonlyIndexes));
}

const read = (requested: PolicyValue | undefined): readonly Facts[] => (recordsIn(requested, path) ?? []).map(saidIn);

function indexesIn(input: Facts, name: string): readonly number[] | undefined {
  const value = input[name];
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) throw new NotExecuted(`${path}.${name} is of an unexpected type`);
  return (value as readonly PolicyValue[]).map((one) => Number(unsignedIn(one, `${path}.${name}`, 8) ?? 0n));
}

const factsOf = ({ tableKey, writableIndexes, readonlyIndexes }: SolanaTable): Facts => ({
  address_table_key: tableKey,
  writable_indexes: writableIndexes.map(BigInt),
  readonly_indexes: readonlyIndexes.map(BigInt),
});
