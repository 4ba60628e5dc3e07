import type { LoadedOrganization } from './loaded-organization.js';
import { keptUnrecorded } from './store-refusals.js';

/** How long appends may fail while someone waits for one to be taken, in milliseconds. */
const patienceMs = 5_000;

/** Has those who wait for the append on its way continue, by the state that has its events already. */
const waiting = new WeakMap<LoadedOrganization, (() => void)[]>();

/** The append of the pending events was taken, or the state was dropped. */
export function settle(loaded: LoadedOrganization): void {
  for (const goOn of waiting.get(loaded) ?? []) goOn();
  waiting.delete(loaded);
}

/**
 * The state once everything in it is recorded.
 * @param isHeld whether a state was not dropped: nothing settles one that was
 * @throws {CoordinatorError} UNAVAILABLE if appends keep failing; what `load` throws
 */
export async function onceRecorded(
  latest: LoadedOrganization,
  isHeld: (loaded: LoadedOrganization) => boolean,
  load: () => Promise<LoadedOrganization>,
): Promise<LoadedOrganization> {
  const begun = performance.now();
  let loaded = latest;
  while (loaded.pending.length > 0) {
    if (performance.now() - begun > patienceMs) throw keptUnrecorded(loaded.organization.organizationId);
    if (isHeld(loaded)) await settled(loaded);
    // An append that was taken proves that it was the newest.
    if (loaded.pending.length > 0) loaded = await load();
  }
  return loaded;
}

function settled(loaded: LoadedOrganization): Promise<void> {
  return new Promise((resolve) => {
    const before = waiting.get(loaded);
    if (before) before.push(resolve);
    else waiting.set(loaded, [resolve]);
  });
}
