import type { Rows } from './database.js';
import { readModels } from './index.js';

const modelOfTable = new Map(readModels.flatMap(({ name, tables }) => tables.map((table) => [table, name] as const)));
/** The models whose tables a statement names; statements are constants of the queries, and few. */
const modelsOfStatement = new Map<string, readonly string[]>();
const mostStatements = 1_000;

function modelsOf(sql: string): readonly string[] {
  let models = modelsOfStatement.get(sql);
  if (!models) {
    models = [...new Set((sql.match(/\w+/g) ?? []).flatMap((word) => modelOfTable.get(word) ?? []))];
    if (modelsOfStatement.size >= mostStatements) modelsOfStatement.clear();
    modelsOfStatement.set(sql, models);
  }
  return models;
}

/**
 * Rows that `check` is called for before they are read, with each model whose tables a statement names.
 * @param check throws for a model whose rows must not be read
 */
export function onlyReadyRows(rows: Rows, check: (model: string) => void): Rows {
  const checked = (sql: string): string => {
    modelsOf(sql).forEach(check);
    return sql;
  };
  return {
    run: (sql, ...values) => rows.run(checked(sql), ...values),
    get: (sql, ...values) => rows.get(checked(sql), ...values),
    all: (sql, ...values) => rows.all(checked(sql), ...values),
    lost: (complaint) => rows.lost(complaint),
  };
}
