/** What the walk has tried, and how it ended. */
export class WalkRecord {
  private readonly rows = new Map<string, Map<string, { passed: number; failed: number }>>();

  tried(endpoint: string, kind: string, isPassed: boolean): void {
    const row = this.rows.get(endpoint) ?? new Map<string, { passed: number; failed: number }>();
    const cell = row.get(kind) ?? { passed: 0, failed: 0 };
    if (isPassed) cell.passed++;
    else cell.failed++;
    this.rows.set(endpoint, row.set(kind, cell));
  }

  get total(): number {
    return [...this.rows.values()].flatMap((row) => [...row.values()]).reduce((sum, { passed }) => sum + passed, 0);
  }

  /** A row for each endpoint, a column for each class: how many passed, and `n of m` where some failed. */
  table(endpoints: readonly (readonly [label: string, endpoint: string])[], kinds: readonly string[]): string {
    const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
    const rows = endpoints.map(([label, endpoint]) => {
      const row = this.rows.get(endpoint);
      const cells = kinds.map((kind) => {
        const { passed, failed } = row?.get(kind) ?? { passed: 0, failed: 0 };
        if (passed + failed === 0) return '';
        return failed === 0 ? String(passed) : `${passed} of ${passed + failed}`;
      });
      return line([label, ...cells]);
    });
    return [line(['endpoint', ...kinds]), line(['---', ...kinds.map(() => '---:')]), ...rows].join('\n');
  }
}
