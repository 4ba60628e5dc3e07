import { statSync } from 'node:fs';

/** The file at a path by its device and inode, which no other file gets while it is open; undefined if there is none. */
function identityOf(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev}:${found.ino}`;
}

/** Open files. A path that is deleted or replaced leads elsewhere, while this process would go on with the file it has open. */
export class OpenFiles {
  private readonly known: ReadonlyMap<string, string | undefined>;

  constructor(paths: readonly string[]) {
    this.known = new Map(paths.map((path) => [path, identityOf(path)]));
  }

  /** The first path that no longer leads to the open file; undefined if all do. */
  lost(): string | undefined {
    for (const [path, identity] of this.known) if (identityOf(path) !== identity) return path;
    return undefined;
  }
}
