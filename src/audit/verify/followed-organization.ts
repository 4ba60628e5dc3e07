import { isMap } from 'node:util/types';
import { deserialize, serialize } from 'node:v8';
import { bytesOf } from '../../ledger/fold-cache.js';
import { nothingLoaded, type LoadedOrganization } from '../../ledger/loaded-organization.js';
import type { RecordedEvent } from '../../ledger/event-store.js';
import type { Redeciding } from './decide-again.js';
import { SpilledMap, type Spill } from './spill.js';

/** Where an event is recorded. */
export type Place = Pick<RecordedEvent, 'stream' | 'revision' | 'position'>;

/** One organization while its stream is read. */
export interface Followed {
  readonly redeciding: Redeciding;
  /** Its first broken event was found: nothing can be said about what follows. */
  isLost: boolean;
  /** Its stream, not cut out of an event. */
  readonly stream: string;
  last: Place | undefined;
  /** The last event that recorded a decision, while its effects are collected. */
  deciding: Place | undefined;
  /** That decision was verified before. */
  isKnown: boolean;
  /** With how many events it begins that none of its decisions has recorded; undefined until that is needed. */
  beginning: number | undefined;
  /** Recorded time of its last event. */
  lastTime: number;
  /** Revision at which its size is measured again. */
  measureAt: number;
}

/** Of organizations in memory, in bytes. */
const mostBytes = 48 * 1024 * 1024;

/** The organizations of a store, between two decisions of each. @param make one without events, of a stream */
export function followedOrganizations(spill: Spill, make: (stream: string) => Followed): SpilledMap<Followed> {
  return new SpilledMap(spill, {
    name: 'organizations',
    most: mostBytes,
    sizeOf: (followed) => {
      const { revision } = followed.redeciding;
      followed.measureAt = revision + Math.max(4, revision >> 3);
      return bytesOf(followed.redeciding.soFar());
    },
    write: ({ redeciding, stream, isLost, last, beginning, lastTime }) =>
      serialize({ loaded: withoutEmpty(redeciding.soFar()), stream, rest: { isLost, last, beginning, lastTime } }),
    read: (bytes) => {
      const { loaded, stream, rest } = deserialize(bytes) as {
        readonly loaded: LoadedOrganization;
        readonly stream: string;
        readonly rest: Partial<Followed>;
      };
      const followed = make(stream);
      const { organization } = nothingLoaded();
      followed.redeciding.goOn({ ...loaded, organization: Object.assign(organization, loaded.organization) });
      return Object.assign(followed, rest);
    },
  });
}

/** Empty slices are those of every new organization. */
function withoutEmpty(loaded: LoadedOrganization): object {
  const slices = Object.entries(loaded.organization).filter(([, value]) => !isMap(value) || value.size > 0);
  return { ...loaded, organization: Object.fromEntries(slices) };
}
