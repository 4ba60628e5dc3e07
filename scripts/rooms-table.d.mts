/** docs/architecture.md, with the table of who may import whom as the rules have it. */
export function architecturePage(): string;
