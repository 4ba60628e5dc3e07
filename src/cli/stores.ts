import { existsSync } from 'node:fs';
import { Option } from 'commander';
import { readConfig, type Config } from '../config/config.js';
import { environment } from '../config/environment.js';
import { eventsFile } from '../ledger/stores/open-event-store.js';
import { BadUsage } from './bad-usage.js';
import type { CliCommand } from './command.js';
import type { Terminal } from './terminal.js';

/** Options of commands that open a store themselves. */
export interface StoreOptions {
  readonly dataDir?: string;
}

/** Adds the options that choose the store. */
export function withStore<SomeCommand extends CliCommand>(command: SomeCommand): SomeCommand {
  return command.option(
    '--data-dir <folder>',
    'data folder of the coordinator, instead of DATA_DIR; other settings come from the environment, as for the coordinator',
  );
}

/** Adds the options of a command that needs the store itself; who names a profile is told what to do with one instead. */
export function withStoreOnly<SomeCommand extends CliCommand>(
  command: SomeCommand,
  insteadWithProfile: string,
): SomeCommand {
  const refused = new Option('--profile <name>').hideHelp().argParser(() => {
    throw new BadUsage(
      `${command.fullName} opens the store, so it takes no --profile: run it where the data of the coordinator is. ` +
        insteadWithProfile,
    );
  });
  return withStore(command.addOption(refused));
}

/** Adds the option to ask a coordinator instead. */
export function orProfile<SomeCommand extends CliCommand>(command: SomeCommand, about: string): SomeCommand {
  return command.option(
    '--profile <name>',
    `ask the coordinator of this profile instead of opening the store: ${about}`,
  );
}

/** @throws {BadUsage} when both a store and a profile are named */
export function checkSource({ dataDir, profile }: StoreOptions & { readonly profile?: string }): void {
  if (dataDir !== undefined && profile !== undefined) {
    throw new BadUsage('use either --data-dir, to open the store, or --profile, to ask a coordinator');
  }
}

/**
 * The settings of the coordinator that owns the store.
 * @throws {BadUsage} if there is no store
 */
export function storeSettings(terminal: Terminal, { dataDir: folder }: StoreOptions): Config {
  const from = environment(terminal.env);
  const config = readConfig({ ...from, DATA_DIR: terminal.path(folder ?? (from['DATA_DIR']?.trim() || './data')) });
  const { eventStore, dataDir } = config;
  if (eventStore === 'memory:') throw new BadUsage('EVENT_STORE=memory: keeps nothing between starts');
  if (eventStore === 'sqlite:' && !existsSync(eventsFile(dataDir))) {
    throw new BadUsage(
      `${eventsFile(dataDir)} does not exist: set --data-dir or DATA_DIR to the data folder of the coordinator`,
    );
  }
  return config;
}
