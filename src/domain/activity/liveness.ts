/** A request older than this is refused (docs/protocol.md, limits): its stamp no longer proves anything. */
export const submitLifeMs = 60 * 60 * 1000;

/** A request from further in the future than this is refused. */
export const maxAheadMs = 5 * 60 * 1000;
