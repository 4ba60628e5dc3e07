import { BadUsage } from './bad-usage.js';
import type { Outcome } from './command.js';
import type { Terminal } from './terminal.js';

/** Options of `countersign policies analyze`. */
export interface AnalyzeOptions {
  /** Seconds for one question to the solver. */
  readonly limit: string;
}

/** What the optional package `countersign-analyze` exports. */
interface AnalysisPackage {
  /** Answers the questions of a folder about all requests. */
  analyzeFolder(terminal: Terminal, folder: string, options: AnalyzeOptions): Promise<Outcome>;
}

// Not a literal: the compiler would look for the package, which is built after this one.
const name: string = 'countersign-analyze';

/** Loads the package. @throws {BadUsage} if it is not installed */
export async function analysisPackage(): Promise<AnalysisPackage> {
  try {
    import.meta.resolve(name);
  } catch (cause) {
    throw new BadUsage(
      `analyze needs the package \`${name}\`, which is not installed: pack it with \`npm pack --workspace ${name}\` in a clone of the ` +
        'repository, and run `npm install <tarball>` where countersign is installed',
      { cause },
    );
  }
  return (await import(name)) as AnalysisPackage;
}
