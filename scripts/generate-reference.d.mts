/** Every generated page: file name under docs/reference to its text. */
export function referencePages(): Readonly<Record<string, string>>;
