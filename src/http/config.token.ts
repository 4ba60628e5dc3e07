/** Injects the frozen settings (`config.ts`). */
export const CONFIG = Symbol('Config');
