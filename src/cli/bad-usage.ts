/** The command cannot be carried out as it was typed; the message says what to type instead. */
export class BadUsage extends Error {}
