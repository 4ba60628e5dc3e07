/** Injects the frozen settings (`src/config`). */
export const CONFIG = Symbol('Config');
