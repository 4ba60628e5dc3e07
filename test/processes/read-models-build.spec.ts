import Database from 'libsql';
import { existsSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { countersign, Installation, stop } from '../e2e/installation.js';

const patience = 120_000;
let installation: Installation;
let file: string;

beforeEach(async () => {
  installation = await Installation.make();
  file = join(installation.dataDir, 'read-models.db');
});

afterEach(() => installation.remove());

const tagNames = async (url: string): Promise<readonly string[]> => {
  const client = await installation.client(url);
  const { userTags } = await client.query<{ userTags: readonly { tagName: string }[] }>('list_user_tags');
  return userTags.map(({ tagName }) => tagName).sort();
};

const createTag = async (url: string, userTagName: string): Promise<void> => {
  const client = await installation.client(url);
  await client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName, userIds: [] });
};

/** As if a release with other rows had written the file. */
function ofAnotherRelease(path: string): void {
  const database = new Database(path);
  database.exec('UPDATE checkpoints SET version = version + 1');
  database.close();
}

async function build(): Promise<string> {
  const command = installation.run(countersign, {}, ['read-models', 'build', '--data-dir', installation.dataDir]);
  expect(await command.exit).toEqual({ code: 0, signal: null });
  return command.stdout();
}

test(
  'read models are built while the coordinator serves, and the next start adopts them instead of rebuilding',
  async () => {
    const server = await installation.start();
    await createTag(server.url, 'before');
    expect(await build()).toMatch(
      /^Built up to position \d+\. The next start of this release adopts the read models\.\n$/,
    );
    await createTag(server.url, 'after');
    expect(await tagNames(server.url)).toEqual(['after', 'before']);
    await stop(server);

    ofAnotherRelease(file);
    const next = await installation.start({ LOG_LEVEL: 'info' });
    expect(next.stderr()).toContain('"outcome":"adopted"');
    expect(existsSync(`${file}.built`)).toBe(false);
    expect(await tagNames(next.url)).toEqual(['after', 'before']);
    next.child.kill('SIGTERM');
    expect(await next.exit).toEqual({ code: 0, signal: null });
  },
  patience,
);

test(
  'what was built is left out where the read models are of this release already, and where it is of another one',
  async () => {
    const server = await installation.start();
    await createTag(server.url, 'one');
    await build();
    await stop(server);
    const copy = join(installation.dataDir, 'copy.db');
    await copyFile(`${file}.built`, copy);

    const same = await installation.start({ LOG_LEVEL: 'info' });
    expect(same.stderr()).toContain('"outcome":"not-needed"');
    expect(await tagNames(same.url)).toEqual(['one']);
    same.child.kill('SIGTERM');
    await same.exit;

    ofAnotherRelease(copy);
    ofAnotherRelease(file);
    await copyFile(copy, `${file}.built`);
    const other = await installation.start({ LOG_LEVEL: 'info' });
    expect(other.stderr()).toContain('"outcome":"of-another-release"');
    expect(existsSync(`${file}.built`)).toBe(false);
    expect(await tagNames(other.url)).toEqual(['one']);
    other.child.kill('SIGTERM');
    await other.exit;
  },
  patience,
);
