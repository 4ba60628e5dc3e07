#!/usr/bin/env node
import { run } from './run.js';
import { Terminal } from './terminal.js';

process.exitCode = await run(process.argv.slice(2), Terminal.ofProcess());
