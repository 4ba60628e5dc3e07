import { organizationStream, type OrganizationEvent } from '../../src/domain/organization/organization.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { ReadModelDatabase, type Row, type Rows } from '../../src/read-models/database.js';
import type { QueryContext } from '../../src/read-models/define-query.js';
import type { QueryPorts } from '../../src/read-models/index.js';
import { pageWriter } from '../../src/read-models/pages.js';
import { Projector } from '../../src/read-models/projector.js';
import type { ReadModel } from '../../src/read-models/read-model.js';
import { id } from '../activities/given.js';

/** Recorded time of the event at a position, milliseconds since the epoch. */
export const timeOf = (position: number): number => Date.UTC(2026, 0, 1) + position * 1_000;

/** Events as a store hands them out, each at the next position. */
export function recorded(organizationId: string, events: readonly OrganizationEvent[], first = 0): RecordedEvent[] {
  return events.map(({ type, data }, index) => ({
    stream: organizationStream(organizationId),
    revision: index,
    position: BigInt(first + index),
    id: `event-${first + index}`,
    type,
    data,
    metadata: { at: timeOf(first + index), schemaVersion: 1 },
  }));
}

/** The rows of a model, made from batches of events. */
export function rowsOf(model: ReadModel, ...batches: readonly (readonly RecordedEvent[])[]): ReadModelDatabase {
  const database = new ReadModelDatabase(':memory:');
  const projector = new Projector(database, [model], { identity: 'test', head: 1_000_000n });
  for (const batch of batches) {
    for (const { failure } of projector.project(batch)) if (failure !== undefined) throw new Error(failure);
  }
  return database;
}

/** Everything that a model's tables hold. */
export function contents({ tables }: ReadModel, rows: Rows): Readonly<Record<string, readonly Row[]>> {
  return Object.fromEntries(tables.map((table) => [table, rows.all(`SELECT * FROM ${table} ORDER BY 1, 2, 3`)]));
}

/** The same rows; `plans` tells how SQLite finds what each read asks for. */
export function explained(rows: Rows): { readonly rows: Rows; plans(): readonly string[] } {
  const plans: string[] = [];
  const explain = (sql: string, values: Parameters<Rows['all']>[1][]) => {
    const steps = rows.all(`EXPLAIN QUERY PLAN ${sql}`, ...values);
    plans.push(...steps.map(({ detail }) => String(detail)));
  };
  return {
    plans: () => plans,
    rows: {
      run: (sql, ...values) => rows.run(sql, ...values),
      get(sql, ...values) {
        explain(sql, values);
        return rows.get(sql, ...values);
      },
      all(sql, ...values) {
        explain(sql, values);
        return rows.all(sql, ...values);
      },
      lost: (complaint) => rows.lost(complaint),
    },
  };
}

/** What a query may look at besides what it is asked: the rows, and nothing else. Its caller is a user of `organizationId`. */
export function rowsAlone(rows: Rows, organizationId: string): QueryContext & QueryPorts {
  const never = (): never => {
    throw new Error('this answer comes from rows alone');
  };
  return {
    rows,
    now: 0,
    callerOrganizationId: organizationId,
    callerUserId: id(1),
    limits: never,
    verifyOidc: never,
    history: never,
    events: never,
    states: never,
    approvers: never,
    lint: never,
    whatIf: never,
    reasons: never,
    proofs: never,
    dryRun: never,
    envelopes: never,
    explained: never,
    turn: () => undefined,
    saysNow: never,
    page: pageWriter({ room: () => undefined, turn: () => undefined }),
  };
}
