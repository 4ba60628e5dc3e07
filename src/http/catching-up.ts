/** How long the read models may take to reach what was recorded at the time of a check, in milliseconds. */
const graceMs = 5_000;

/**
 * Whether read models are too far behind what is recorded. Positions say which is further, not by how much: what counts is how
 * long the read models have not reached one. At first they have to reach what there was at the first check, however
 * much is recorded meanwhile.
 */
export class CatchingUp {
  /** What the read models still have to reach, and since when; undefined once they have reached everything. */
  private goal: { readonly position: bigint; readonly since: number | undefined } | undefined;

  /**
   * @param head the last position that is recorded
   * @param reached the last one that the read models have
   * @param now milliseconds since the epoch
   */
  isBehind(head: bigint, reached: bigint, now: number): boolean {
    const goal = (this.goal ??= { position: head, since: -Infinity });
    if (reached >= head) this.goal = { position: head, since: undefined };
    else if (reached >= goal.position) this.goal = { position: head, since: now };
    const { since } = this.goal;
    return since !== undefined && now - since > graceMs;
  }
}
