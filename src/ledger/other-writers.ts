/** How long a state is read before it is decided on, once another has written, in milliseconds. */
const rememberedMs = 5_000;
/** Organizations that are remembered; who is forgotten may lose one append more. */
const mostRemembered = 1_000;

/** Which organizations others than this process have written to lately. */
export class OtherWriters {
  private readonly lastAt = new Map<string, number>();

  wrote(organizationId: string): void {
    this.lastAt.delete(organizationId);
    this.lastAt.set(organizationId, performance.now());
    if (this.lastAt.size > mostRemembered) this.lastAt.delete(this.lastAt.keys().next().value!);
  }

  haveWritten(organizationId: string): boolean {
    const at = this.lastAt.get(organizationId);
    return at !== undefined && performance.now() - at < rememberedMs;
  }
}
