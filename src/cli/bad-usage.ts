/** The command cannot be executed as typed; the message says what to type instead. */
export class BadUsage extends Error {}
