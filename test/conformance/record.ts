/** What the walk has tried, and how it ended. */
export class WalkRecord {
  private readonly rows = new Map<string, Map<string, { passed: number; failed: number }>>();
  private readonly planned: string[] = [];
  private readonly ended = new Set<string>();
  /** Answers by the hundreds of their statuses: 2, 4, 5. */
  private readonly answers = new Map<number, number>();
  /** Requests that were refused and looked for in what is recorded, and those of them that were found there. */
  private readonly refused = { sought: 0, found: 0 };

  /** Takes note of a piece of the walk that is still to come. */
  plan(piece: string): void {
    this.planned.push(piece);
  }

  /** That piece was walked to its end, however it went. */
  end(piece: string): void {
    this.ended.add(piece);
  }

  /** Pieces that broke off, or were never begun: what they would have tried is in no count. */
  get missing(): readonly string[] {
    return this.planned.filter((piece) => !this.ended.has(piece));
  }

  answered(status: number): void {
    const hundreds = Math.floor(status / 100);
    this.answers.set(hundreds, (this.answers.get(hundreds) ?? 0) + 1);
  }

  soughtInRecords(sought: number, found: number): void {
    this.refused.sought += sought;
    this.refused.found += found;
  }

  tried(endpoint: string, kind: string, isPassed: boolean): void {
    const row = this.rows.get(endpoint) ?? new Map<string, { passed: number; failed: number }>();
    const cell = row.get(kind) ?? { passed: 0, failed: 0 };
    if (isPassed) cell.passed++;
    else cell.failed++;
    this.rows.set(endpoint, row.set(kind, cell));
  }

  /** What was counted, in sentences. */
  get summary(): string {
    const cells = [...this.rows.values()].flatMap((row) => [...row.values()]);
    const total = (of: 'passed' | 'failed') => cells.reduce((sum, cell) => sum + cell[of], 0);
    const statuses = [...this.answers].sort(([a], [b]) => a - b).map(([hundreds, count]) => `${count} ${hundreds}xx`);
    const { sought, found } = this.refused;
    return [
      `${total('passed') + total('failed')} cases; ${total('failed')} of them got another response than required.`,
      `Responses: ${statuses.join(', ')}${this.answers.has(5) ? '' : ', no 5xx'}.`,
      `Of ${sought} refused requests, ${found === 0 ? 'none' : found} left anything in the recorded data.`,
    ].join('\n');
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
