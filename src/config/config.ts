import { SettingValues } from './setting-values.js';
import { readLimitSettings, type LimitSettings } from './limits.js';
import { readLogins, type LoginSettings } from './logins.js';
import { readMessages, type MessageSettings } from './messages.js';
import { readProxy, type ProxySettings } from './proxy.js';
import { readServer, type ServerSettings } from './server.js';
import { readStorage, type StorageSettings } from './storage.js';

/** Every setting of the process, checked once. Frozen. */
export interface Config
  extends ServerSettings, StorageSettings, ProxySettings, LimitSettings, LoginSettings, MessageSettings {}

/**
 * Reads the settings.
 * @throws {BadSetting} that names the setting, its value and the rule
 */
export function readConfig(from: Readonly<Record<string, string | undefined>>): Config {
  const input = new SettingValues(from);
  return Object.freeze({
    ...readServer(input),
    ...readProxy(input),
    ...readLimitSettings(input),
    ...readStorage(input),
    ...readLogins(input),
    ...readMessages(input),
  });
}
