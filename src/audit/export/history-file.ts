import { createHash } from 'node:crypto';
import { isNativeError } from 'node:util/types';
import { CoordinatorError, errorMessage } from '../../domain/errors.js';
import { openRegularFile } from '../../files/regular-file.js';
import { GENESIS_HASH, verifyChain } from '../../ledger/chain.js';
import type { RecordedEvent } from '../../ledger/event-store.js';
import { unchainedProblem } from '../../ledger/unchained.js';
import { parseWholeJson } from '../../wire/strict-json.js';
import { asJson } from '../../wire/terminal-json.js';
import { isRecordedId } from '../../domain/uuid.js';

/**
 * The file of a history: lines of JSON. The first describes it, the last has the number of events and the SHA-256 of
 * all lines before; each line between them is an event, as it was recorded, in the order of the store
 * (docs/how-to/production-bugs.md).
 */

/** Contents of the first line. */
export interface HistoryHeader {
  readonly format: typeof historyFormat;
  readonly version: typeof historyVersion;
  /** The organization of the history. */
  readonly organizationId: string;
  /** The parent, if its stream is included because the organization's decisions read it. */
  readonly parentOrganizationId?: string;
  /** Milliseconds since the epoch. */
  readonly exportedAt: number;
  /**
   * `none`; `tokens`: tokens that were live at the export lack their signature; `personal-data`: also, all personal
   * data is replaced.
   */
  readonly redacted: 'none' | 'tokens' | 'personal-data';
}

/** An event in the file. Positions belong to the store. */
export type HistoryEvent = Omit<RecordedEvent, 'position'>;

const historyFormat = 'countersign history';
const historyVersion = 1;

/** Limits of a file, which may come from a stranger. */
export interface HistoryLimits {
  readonly bytes: number;
  readonly lineBytes: number;
  readonly events: number;
  /** In all lines: a file of small values takes many times its size when it is read. */
  readonly values: number;
}

export const historyLimits: HistoryLimits = {
  bytes: 512 * 1024 * 1024,
  lineBytes: 8 * 1024 * 1024,
  events: 1_000_000,
  values: 5_000_000,
};

/** Values in one line: an event has more than its request, such as the outcome of each policy for each payload. */
const mostValues = 1_000_000;
/** Deeper than any request may be, because an event contains one. */
const deepest = 40;

/** A file that is not a complete history. */
export class NotAHistory extends Error {
  constructor(file: string, problem: string) {
    super(`${file} cannot be imported as a history: ${problem}`);
    this.name = 'NotAHistory';
  }
}

/** Writes the lines of a file; the last one summarizes all before. */
export class HistoryLines {
  private readonly hash = createHash('sha256');
  private events = 0;

  header(header: Omit<HistoryHeader, 'format' | 'version'>): string {
    return this.line({ format: historyFormat, version: historyVersion, ...header });
  }

  event({ stream, revision, id, type, data, metadata }: HistoryEvent): string {
    this.events++;
    return this.line({ stream, revision, id, type, data, metadata });
  }

  end(): string {
    return `${JSON.stringify({ events: this.events, sha256: this.hash.digest('hex') })}\n`;
  }

  private line(value: object): string {
    // Also written to terminals, which must not change a line that the hash covers.
    const line = `${asJson(value)}\n`;
    this.hash.update(line);
    return line;
  }
}

const hashPattern = /^[0-9a-f]{64}$/;

/**
 * Reads a whole file, trusting nothing: every line is plain JSON of the required shape, streams are those of the
 * organization and its parent, in order from their first event, and nothing exceeds its limit.
 * @throws {NotAHistory}
 */
export async function readHistory(
  file: string,
  limits = historyLimits,
): Promise<{ readonly header: HistoryHeader; readonly events: readonly HistoryEvent[] }> {
  const wrong = (problem: string) => new NotAHistory(file, problem);
  const hash = createHash('sha256');
  const next = new Map<string, number>();
  const hashes = new Map<string, string>();
  const events: HistoryEvent[] = [];
  let values = limits.values;
  let header: HistoryHeader | undefined;
  let ending: Readonly<Record<string, unknown>> | undefined;
  let count = 0;
  for await (const line of linesOf(file, limits, wrong)) {
    const place = `line ${++count}`;
    if (ending) throw wrong(`${place} comes after its last line`);
    const { value, values: read } = jsonOf(line, place, Math.min(mostValues, values), wrong);
    values -= read;
    if (!header) {
      header = headerOf(value, wrong);
      hash.update(line).update('\n');
    } else if ('sha256' in value) {
      ending = value;
    } else {
      if (events.length >= limits.events) throw wrong(`it has more than ${limits.events} events`);
      const event = eventOf(value, header, place, wrong);
      const expected = next.get(event.stream) ?? 0;
      if (event.revision !== expected) {
        throw wrong(`${place} has revision ${event.revision} of ${event.stream}, but revision ${expected} comes next`);
      }
      next.set(event.stream, expected + 1);
      // Before the next line is read: nothing else of a forged file costs memory.
      hashes.set(event.stream, linkAfter(hashes.get(event.stream) ?? GENESIS_HASH, event, wrong));
      events.push(event);
      hash.update(line).update('\n');
    }
  }
  if (!header) throw wrong('it is empty');
  if (!ending) throw wrong('its last line is missing: it was cut off');
  if (ending['events'] !== events.length || ending['sha256'] !== hash.digest('hex')) {
    throw wrong('its last line does not match its events: it was changed or cut off');
  }
  if (!next.has(`organization-${header.organizationId}`)) throw wrong('the stream of its organization is missing');
  if (header.parentOrganizationId && !next.has(`organization-${header.parentOrganizationId}`)) {
    throw wrong('the stream of the parent is missing');
  }
  return { header, events };
}

type Wrong = (problem: string) => NotAHistory;

/** Lines as bytes, read in pieces: neither the file nor a line may exceed its limit. */
async function* linesOf(file: string, limits: HistoryLimits, wrong: Wrong): AsyncGenerator<Buffer> {
  const handle = await openRegularFile(file, limits.bytes).catch((error: unknown) => {
    const said = errorMessage(error);
    throw wrong(isNativeError(error) && 'code' in error ? `it cannot be read (${said})` : said);
  });
  try {
    let read = 0;
    let parts: Buffer[] = [];
    let length = 0;
    for await (const chunk of handle.createReadStream({ autoClose: false }) as AsyncIterable<Buffer>) {
      read += chunk.length;
      // It may grow while it is being read.
      if (read > limits.bytes) throw wrong(`it has more than ${limits.bytes} bytes`);
      let from = 0;
      for (let to = chunk.indexOf(0x0a); to !== -1; to = chunk.indexOf(0x0a, from)) {
        parts.push(chunk.subarray(from, to));
        if (length + to - from > limits.lineBytes) throw wrong(`a line has more than ${limits.lineBytes} bytes`);
        yield Buffer.concat(parts);
        parts = [];
        length = 0;
        from = to + 1;
      }
      parts.push(chunk.subarray(from));
      length += chunk.length - from;
      if (length > limits.lineBytes) throw wrong(`a line has more than ${limits.lineBytes} bytes`);
    }
    if (length > 0) throw wrong('its last line is incomplete: it was cut off');
  } finally {
    await handle.close();
  }
}

function linkAfter(before: string, event: HistoryEvent, wrong: Wrong): string {
  try {
    return verifyChain(before, { ...event, position: 0n });
  } catch (error) {
    const problem = errorMessage(error);
    throw wrong(`revision ${event.revision} of ${event.stream} cannot be folded: ${problem}`);
  }
}

function jsonOf(line: Buffer, place: string, most: number, wrong: Wrong): ReturnType<typeof parseWholeJson> {
  try {
    return parseWholeJson(line, most, deepest);
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    throw wrong(`${place}: ${error.message.replace(/^request body /, 'it ')}`);
  }
}

function headerOf(value: Readonly<Record<string, unknown>>, wrong: Wrong): HistoryHeader {
  const { format, version, organizationId, parentOrganizationId, exportedAt, redacted } = value;
  if (format !== historyFormat) throw wrong(`its first line does not say \`"format":"${historyFormat}"\``);
  if (version !== historyVersion) {
    throw wrong(`it has version ${JSON.stringify(version)} of the format, but this release reads ${historyVersion}`);
  }
  if (!isUuid(organizationId)) throw wrong('its organizationId is not a lower-case UUID');
  if (
    parentOrganizationId !== undefined &&
    (!isUuid(parentOrganizationId) || parentOrganizationId === organizationId)
  ) {
    throw wrong('its parentOrganizationId is not the UUID of another organization');
  }
  if (!Number.isSafeInteger(exportedAt)) throw wrong('its exportedAt is not a time in milliseconds');
  if (redacted !== 'none' && redacted !== 'tokens' && redacted !== 'personal-data') {
    throw wrong('its redacted is neither none, tokens nor personal-data');
  }
  return value as unknown as HistoryHeader;
}

/** Streams in an export. */
export function streamsOf({
  organizationId,
  parentOrganizationId,
}: Pick<HistoryHeader, 'organizationId' | 'parentOrganizationId'>): readonly string[] {
  return [
    ...(parentOrganizationId ? [`organization-${parentOrganizationId}`] : []),
    `organization-${organizationId}`,
    `denials-${organizationId}`,
    `claims-${parentOrganizationId ?? organizationId}`,
  ];
}

function eventOf(
  value: Readonly<Record<string, unknown>>,
  header: HistoryHeader,
  place: string,
  wrong: Wrong,
): HistoryEvent {
  const { stream, revision, id, type, data, metadata, ...rest } = value;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw wrong(`${place} has a member \`${unknown.slice(0, 64)}\`, which no event has`);
  if (typeof stream !== 'string' || !streamsOf(header).includes(stream)) {
    throw wrong(`${place} belongs to a stream of another organization: ${JSON.stringify(stream)?.slice(0, 128)}`);
  }
  if (typeof revision !== 'number' || !Number.isSafeInteger(revision)) throw wrong(`${place} has no revision`);
  if (!isUuid(id)) throw wrong(`${place} has no id`);
  if (typeof type !== 'string' || !/^[A-Z]\w{0,63}$/.test(type)) throw wrong(`${place} has no type`);
  if (!isObject(data)) throw wrong(`${place} has no data`);
  if (!isObject(metadata)) throw wrong(`${place} has no metadata`);
  const { at, schemaVersion, $correlationId, $causationId, redacted, hash, unchained, ...more } = metadata;
  const isWhole =
    Number.isSafeInteger(at) &&
    Number.isSafeInteger(schemaVersion) &&
    typeof $correlationId === 'string' &&
    typeof $causationId === 'string' &&
    typeof hash === 'string' &&
    hashPattern.test(hash) &&
    (redacted === undefined || redacted === true) &&
    (unchained === undefined || unchainedProblem(unchained) === undefined) &&
    Object.keys(more).length === 0;
  if (!isWhole) throw wrong(`${place} has metadata that no event has`);
  if (redacted && header.redacted === 'none')
    throw wrong(`${place} is redacted, but the first line says that nothing is`);
  return { stream, revision, id, type, data, metadata };
}

function isUuid(value: unknown): value is string {
  return typeof value === 'string' && isRecordedId(value);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
