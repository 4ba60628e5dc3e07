import { CoordinatorError } from '../domain/errors.js';
import { isUuid } from '../domain/uuid.js';
import { replaceSharedFile } from '../files/private-file.js';
import type { IdOf } from '../audit/policies/policy-files.js';
import { parseWholeJson } from '../wire/strict-json.js';
import { BadUsage } from './bad-usage.js';
import { nameKey, type Named } from './organization-policies.js';
import { textIn } from './policy-folder.js';
import type { Terminal } from './terminal.js';

const lockFile = 'policies.lock.json';

/** Ids by `nameKey`. */
type Ids = ReadonlyMap<string, string>;

/** A name that has not been bound yet, or is bound to another id. */
export interface NewName extends Named {
  readonly was?: string;
}

/**
 * The ids that the names in a folder of policies stood for when it was applied to an organization. Whoever may create or rename users
 * could otherwise give a new user the rights of another.
 */
export class PolicyLock {
  private constructor(
    private readonly terminal: Terminal,
    private readonly folder: string,
    private readonly organizationId: string,
    private ids: Ids,
    private rebound: ReadonlySet<string>,
  ) {}

  /** @throws {BadUsage} if the lock file is invalid, or does not have a name that is to be bound again */
  static async read(
    terminal: Terminal,
    folder: string,
    organizationId: string,
    rebind: readonly string[] = [],
  ): Promise<PolicyLock> {
    const ids = (await readLock(terminal, folder)).get(organizationId) ?? new Map<string, string>();
    for (const name of rebind) {
      if ([...ids.keys()].some((key) => key.slice(key.indexOf(': ') + 2) === name)) continue;
      throw new BadUsage(`--rebind ${name}: ${lockFile} has no such name for organization ${organizationId}`);
    }
    return new PolicyLock(terminal, folder, organizationId, ids, new Set(rebind));
  }

  /** What was found for a name, unless it was bound to something else; `isMissing` if it is still to be created. */
  checked({ kind, name }: Omit<Named, 'id'>, found: ReturnType<IdOf>, isMissing: boolean): ReturnType<IdOf> {
    const was = this.ids.get(nameKey({ kind, name }));
    if (was === undefined || was === found || this.rebound.has(name)) return found;
    if (typeof found !== 'string') return { wrong: `${found.wrong}; ${lockFile} has ${was}` };
    const now = isMissing ? 'no longer exists' : `is now ${found}`;
    const remedy = `if this is intended, add --rebind with this name, or delete its line in ${lockFile}`;
    return { wrong: `${kind} \`${name}\` was ${was} when this folder was applied, and ${now}: ${remedy}` };
  }

  /** Those that would be bound. */
  newNames(names: readonly Named[]): readonly NewName[] {
    return names.flatMap((name) => {
      const was = this.ids.get(nameKey(name));
      return was === name.id ? [] : [{ ...name, ...(was === undefined ? {} : { was }) }];
    });
  }

  /** Binds these names and no others, and writes the file if that changes it. @throws {Error} if it cannot be written */
  async bind(names: readonly Named[]): Promise<void> {
    this.rebound = new Set();
    const ids = new Map(names.map((name) => [nameKey(name), name.id]));
    if (ids.size === this.ids.size && this.newNames(names).length === 0) return;
    const all = new Map(await readLock(this.terminal, this.folder)).set(this.organizationId, ids);
    const value = sorted(new Map(Array.from(all, ([organization, one]) => [organization, sorted(one)])));
    const file = this.terminal.path(`${this.folder}/${lockFile}`);
    await replaceSharedFile(file, `${JSON.stringify(value, undefined, 2)}\n`);
    this.ids = ids;
    this.terminal.error(`wrote   ${lockFile}: commit it with the folder\n`);
  }
}

function sorted<Value>(entries: ReadonlyMap<string, Value>): Readonly<Record<string, Value>> {
  return Object.fromEntries([...entries].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Ids by organization; none if there is no file yet. */
async function readLock(terminal: Terminal, folder: string): Promise<ReadonlyMap<string, Ids>> {
  let text: string;
  try {
    text = await textIn(terminal, folder, lockFile);
  } catch (error) {
    const cause = error instanceof BadUsage ? (error.cause as NodeJS.ErrnoException | undefined) : undefined;
    if (cause?.code === 'ENOENT') return new Map();
    throw error;
  }
  try {
    const { value } = parseWholeJson(Buffer.from(text), Infinity);
    return new Map(Object.entries(value).map(([organizationId, ids]) => [organizationId, idsIn(organizationId, ids)]));
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    throw new BadUsage(`${folder}/${lockFile} cannot be read: ${error.message.replace(/^request body /, 'it ')}`);
  }
}

function idsIn(organizationId: string, value: unknown): Ids {
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [['', value] as const];
  const wrong = entries.find(([, id]) => typeof id !== 'string' || !isUuid(id));
  if (!wrong) return new Map(entries as [string, string][]);
  throw new BadUsage(`${lockFile}: \`${wrong[0]}\` of organization ${organizationId} must be an id`);
}
