/** A request older than this is refused (client protocol, section 11): from then on its stamp proves nothing. */
export const submitLifeMs = 60 * 60 * 1000;
