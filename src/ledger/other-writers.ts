import { LatestEntries } from '../fairness/latest-entries.js';

/** How long a state is read again before each decision, once another process has written, in milliseconds. */
const rememberedMs = 5_000;
/** Number of organizations remembered; a forgotten one may lose one more append. */
const mostRemembered = 1_000;

/** Which organizations other processes have written to recently. */
export class OtherWriters {
  private readonly lastAt = new LatestEntries<number>(mostRemembered);

  wrote(organizationId: string): void {
    this.lastAt.set(organizationId, performance.now());
  }

  haveWritten(organizationId: string): boolean {
    const at = this.lastAt.get(organizationId);
    return at !== undefined && performance.now() - at < rememberedMs;
  }
}
