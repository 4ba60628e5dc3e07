/** `@jest/globals`, of the spec that asks for it. */
export const jest = globalThis[Symbol.for('countersign.jest')];
