/** A request older than this is refused (client protocol, section 11): its stamp no longer proves anything. */
export const submitLifeMs = 60 * 60 * 1000;
