import { hash } from 'node:crypto';
import { derivedId } from '../../src/ledger/ids.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { ReadModelDatabase } from '../../src/read-models/database.js';
import { readModels } from '../../src/read-models/index.js';
import { Projector } from '../../src/read-models/projector.js';
import type { ReadModel } from '../../src/read-models/read-model.js';

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** The same event about other things: every id that is not `kept` is another one, and so is every fingerprint. */
export function renamed(event: RecordedEvent, copy: string, isKept: (id: string) => boolean): RecordedEvent {
  const { position, ...rest } = event;
  const text = JSON.stringify(rest)
    .replace(uuid, (id) => (isKept(id) ? id : derivedId(copy, id)))
    .replace(/sha256:[0-9a-f]{64}/g, (fingerprint) => `sha256:${hash('sha256', copy + fingerprint)}`);
  return { ...(JSON.parse(text) as Omit<RecordedEvent, 'position'>), position };
}

/** Rows of read models, of all if none are given, that count what SQLite does for them. */
export class CountedRows {
  readonly rows = new ReadModelDatabase(':memory:');
  private readonly projector: Projector;
  private position = 0n;

  constructor(models: readonly ReadModel[] = readModels) {
    this.projector = new Projector(this.rows, models, { identity: 'test', head: 1n << 60n });
  }

  /** Takes events in, at the next positions. */
  project(events: readonly RecordedEvent[]): void {
    const placed = events.map((event) => ({ ...event, position: this.position++ }));
    for (let from = 0; from < placed.length; from += 2_000) {
      for (const { model, failure } of this.projector.project(placed.slice(from, from + 2_000))) {
        if (failure !== undefined) throw new Error(`${model}: ${failure}`);
      }
    }
  }

  /** Instructions that SQLite's virtual machine has run for each statement so far: some for each row that it visits. */
  steps(): ReadonlyMap<string, number> {
    const statements = this.rows.all(
      `SELECT sql, sum(nstep) AS steps FROM sqlite_stmt WHERE sql NOT LIKE '%sqlite_stmt%' GROUP BY sql`,
    );
    return new Map(statements.map((row) => [String(row['sql']), Number(row['steps'])]));
  }

  /** How often each statement was run so far. */
  private runs(): number {
    const row = this.rows.get(`SELECT sum(run) AS runs FROM sqlite_stmt WHERE sql NOT LIKE '%sqlite_stmt%'`);
    return Number(row!['runs']);
  }

  /** The instructions that some work takes, in all and for each of its statements, and how many it runs. */
  async counted(
    work: () => unknown,
  ): Promise<{ readonly steps: number; readonly by: ReadonlyMap<string, number>; readonly runs: number }> {
    const before = this.steps();
    const runsBefore = this.runs();
    await work();
    const runs = this.runs() - runsBefore;
    const by = new Map(
      [...this.steps()]
        .map(([sql, steps]) => [sql, steps - (before.get(sql) ?? 0)] as const)
        .filter(([, steps]) => steps > 0),
    );
    return { steps: [...by.values()].reduce((sum, steps) => sum + steps, 0), by, runs };
  }
}
