#!/usr/bin/env node
import { run } from './run.js';
import { Terminal } from './terminal.js';

// The reader of the output has seen enough, like `head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

process.exitCode = await run(process.argv.slice(2), Terminal.ofProcess());
