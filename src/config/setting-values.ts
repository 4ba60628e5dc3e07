import { BadSetting } from './bad-setting.js';
import { settings, type SettingName } from './settings.js';

/** The value of each setting: from the environment, else the default. */
export class SettingValues {
  private readonly defaults = Object.fromEntries(settings.map(([name, value]) => [name, value])) as Record<
    SettingName,
    string
  >;

  constructor(private readonly from: Readonly<Record<string, string | undefined>>) {}

  text(name: SettingName): string {
    return this.from[name]?.trim() || this.defaults[name];
  }

  /** Undefined if it is not set and has no default. */
  optional(name: SettingName): string | undefined {
    return this.text(name) || undefined;
  }

  /** The parsed form of a value that is set, frozen. */
  read<Value>(name: SettingName, read: (value: string) => Value): Readonly<Value> | undefined {
    const value = this.optional(name);
    return value === undefined ? undefined : Object.freeze(read(value));
  }

  oneOf<Value extends string>(name: SettingName, values: readonly Value[]): Value {
    const value = values.find((one) => one === this.text(name));
    if (value === undefined) throw new BadSetting(name, this.text(name), `must be one of ${values.join(', ')}`);
    return value;
  }

  flag(name: SettingName): boolean {
    return this.oneOf(name, ['true', 'false']) === 'true';
  }

  /** Values separated by commas or spaces. */
  list(name: SettingName): readonly string[] {
    return this.text(name)
      .split(/[\s,]+/)
      .filter(Boolean);
  }
}
