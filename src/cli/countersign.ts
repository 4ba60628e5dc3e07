#!/usr/bin/env node
import { run } from './run.js';
import { Terminal } from './terminal.js';

// Whoever read the output has seen enough, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

process.exitCode = await run(process.argv.slice(2), Terminal.ofProcess());
