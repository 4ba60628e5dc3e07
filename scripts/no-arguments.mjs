/** Imported first by programs that take no arguments. */
import { readArguments } from './arguments.mjs';

readArguments();
