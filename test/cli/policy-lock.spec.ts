import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { Treasury } from './treasury.js';

/* Names in a folder of policies are bound to ids: whoever may create users cannot give a new one the rights of another. */

const page = new URL('../../docs/how-to/policies-as-code.md', import.meta.url);
const folder = 'examples/policies/treasury';
const plan = ['policies', 'plan', folder];
const apply = ['policies', 'apply', folder, '--yes'];
const same = 'The organization is as the folder says.\n';
const like = (pattern: RegExp) => expect.stringMatching(pattern) as string;

let treasury: Treasury;
const lock = () => treasury.user.path(folder, 'policies.lock.json');
const lockText = () => readFile(lock(), 'utf8');
const policies = async () => (await treasury.coordinator.client.query('list_policies')).policies.length;
const idOf = (name: string): string => treasury.people[name]!.userId;
const deleteUsers = (...userIds: readonly string[]) =>
  treasury.coordinator.client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds: [...userIds] });
const rename = (userId: string, userName: string) =>
  treasury.coordinator.client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId, userName });

const open = async () => {
  treasury = await Treasury.open('policies lock');
  // So that the root user can apply it alone.
  await treasury.edit('quorum:\n  threshold: 2\n  members: [Ann, Ben]\n', '');
};
const close = () => treasury.close();

/** Applies the folder; returns the text of its lock file. */
async function applied(): Promise<string> {
  expect(await treasury.user.types(apply)).toMatchObject({ code: 0 });
  return lockText();
}

describe('a folder that is applied', () => {
  beforeEach(open);
  afterEach(close);

  test('apply binds names to ids in a file, which plan shows and does not write', async () => {
    const { coordinator, user, walletId } = treasury;
    const planned = await user.types([...plan, '--exit-code']);
    expect(planned).toMatchObject({ code: 7, error: '' });
    expect(planned.out).toContain(`\nNames to bind to ids\n  user Ann         ${idOf('Ann')}\n  user Ben         `);
    expect(planned.out).not.toMatch(/^ {2}tag treasurer/m);
    expect(await user.json<{ newNames: object[] }>(plan)).toMatchObject({
      newNames: expect.arrayContaining([{ kind: 'wallet', name: 'Treasury', id: walletId }]) as unknown,
    });
    await expect(lockText()).rejects.toThrow('ENOENT');

    const { error } = await user.types(apply);
    expect(error.match(/^wrote {3}policies\.lock\.json: commit it with the folder$/gm)).toHaveLength(2);
    const [tag] = (await coordinator.client.query('list_user_tags')).userTags;
    const names = {
      'tag: treasurer': tag!.tagId,
      ...Object.fromEntries(['Ann', 'Ben', 'Otto', 'Theo', 'Tina', 'Tom'].map((name) => [`user: ${name}`, idOf(name)])),
      'wallet: Treasury': walletId,
    };
    const text = await lockText();
    expect(text).toBe(`${JSON.stringify({ [coordinator.organizationId]: names }, undefined, 2)}\n`);
    expect(await user.types(apply)).toEqual({ code: 0, out: same, error: '' });
    expect(await user.types(plan)).toEqual({ code: 0, out: same, error: '' });
    expect([await lockText(), await readdir(user.path(folder))]).toEqual([
      text,
      ['policies.lock.json', 'policies.yaml', 'treasury.analysis.yaml', 'treasury.test.yaml'],
    ]);
  });

  test('where nothing but names is new, apply asks before it binds them', async () => {
    const { user } = treasury;
    const text = await applied();
    await rm(lock());
    const asked = ['policies', 'apply', folder];
    const refused = await user.types(asked, { input: 'n\n' });
    expect([refused.code, refused.out.slice(0, same.length)]).toEqual([0, same]);
    expect(refused.out).toMatch(/\nNames to bind to ids\n[^]*\nNothing was changed\.\n$/);
    await expect(lockText()).rejects.toThrow('ENOENT');
    expect(await user.types(plan)).toMatchObject({ code: 0, out: like(/\nNames to bind to ids\n/) });
    expect(await user.types(asked, { input: 'y\n' })).toMatchObject({ code: 0 });
    expect(await lockText()).toBe(text);
  });

  test('a name that now means another user is refused, until it is bound again', async () => {
    const { coordinator, user } = treasury;
    const text = await applied();
    await deleteUsers(idOf('Tom'));
    const other = await coordinator.createUser('Tom');
    await treasury.edit('> 1000000', '> 2000000');
    const before = await policies();
    const refused =
      `policies.yaml:2:19: user \`Tom\` was ${idOf('Tom')} when this folder was applied, and is now ${other.userId}: ` +
      'if this is intended, add --rebind with this name, or delete its line in policies.lock.json\n';
    for (const words of [plan, [...plan, '--exit-code'], apply]) {
      expect(await user.types(words)).toEqual({ code: 1, out: refused, error: '' });
    }
    const inGuide = refused.replace(/^\S+ /, '').replaceAll(/[0-9a-f-]{36}/g, '…');
    expect(await readFile(page, 'utf8')).toContain(inGuide);
    expect([await lockText(), await policies()]).toEqual([text, before]);
    const unknown = await user.types([...apply, '--rebind', 'Nobody']);
    expect(unknown).toMatchObject({ code: 2, error: like(/--rebind Nobody: policies\.lock\.json has no such name/) });

    const rebound = await user.types([...plan, '--rebind', 'Tom']);
    expect(rebound.out).toContain(`\nNames to bind to ids\n  user Tom  ${idOf('Tom')} → ${other.userId}\n`);
    let third = '';
    const swapped = await user.types(['policies', 'apply', folder, '--rebind', 'Tom'], {
      reply: async () => {
        if (third !== '') return '';
        third = 'being created';
        await rename(other.userId, 'Thomas');
        third = (await coordinator.createUser('Tom')).userId;
        return 'y';
      },
    });
    expect([swapped.code, swapped.out]).toEqual([1, like(new RegExp(`was ${other.userId} when.*is now ${third}`))]);
    await deleteUsers(third);
    await rename(other.userId, 'Tom');
    await writeFile(lock(), text);
    expect(await user.types([...apply, '--rebind', 'Tom'])).toMatchObject({ code: 0, out: like(/as the folder says/) });
    expect(await lockText()).toBe(text.replace(idOf('Tom'), other.userId));
    expect(await user.types(plan)).toMatchObject({ code: 0, out: same });
  });

  test('names that two have, or nobody any more, are refused with the id that they had', async () => {
    const { coordinator, user } = treasury;
    await applied();
    const second = await coordinator.createUser('Tom');
    const has = `policies.lock.json has ${idOf('Tom')}`;
    for (const words of [plan, apply]) {
      const { code, out } = await user.types(words);
      expect([code, out]).toEqual([1, like(/2 have the name user `Tom`: /)]);
      for (const part of [idOf('Tom'), second.userId, has]) expect(out).toContain(part);
    }
    await deleteUsers(second.userId);
    await rename(idOf('Tom'), 'Thomas');
    expect((await user.types(plan)).out).toBe(`policies.yaml:2:19: the organization has no user \`Tom\`; ${has}\n`);
  });

  test('a tag that is gone is created again only if its line is deleted', async () => {
    const { coordinator, user } = treasury;
    const text = await applied();
    const [tag] = (await coordinator.client.query('list_user_tags')).userTags;
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_USER_TAGS', { userTagIds: [tag!.tagId] });
    const gone = await user.types(apply);
    expect([gone.code, gone.out]).toEqual([
      1,
      like(/tag `treasurer` was \S+ when this folder was applied, and no longer/),
    ]);
    await writeFile(lock(), text.replace(/.*"tag: treasurer".*\n/, ''));
    expect(await user.types(apply)).toMatchObject({ code: 0 });
    const [created] = (await coordinator.client.query('list_user_tags')).userTags;
    expect(await lockText()).toBe(text.replace(tag!.tagId, created!.tagId));
  });

  test('a user whose name is the id of another is never meant by it', async () => {
    const { coordinator, user } = treasury;
    await treasury.edit('Tom, Tina', `${idOf('Tom')}, Tina`);
    expect(await applied()).not.toContain('user: Tom');
    await deleteUsers(idOf('Tom'));
    await coordinator.createUser(idOf('Tom'));
    const { code, out } = await user.types(apply);
    expect([code, out]).toEqual([1, `policies.yaml:2:19: the organization has no user \`${idOf('Tom')}\`\n`]);
  });

  test('other organizations keep their names, and names that are no longer in the folder go', async () => {
    const other = { '00000000-0000-4000-8000-000000000000': { 'user: Ann': '00000000-0000-4000-8000-000000000001' } };
    await writeFile(lock(), JSON.stringify(other));
    expect(JSON.parse(await applied())).toMatchObject(other);
    await treasury.edit('Tom, Tina, ', '');
    const names = Object.values(JSON.parse(await applied()) as object)[1] as object;
    expect(Object.keys(names).filter((name) => name.startsWith('user: '))).toEqual([
      'user: Ann',
      'user: Ben',
      'user: Otto',
      'user: Theo',
    ]);
  });
});

describe('a lock file', () => {
  beforeAll(open);
  afterEach(() => rm(lock(), { recursive: true }));
  afterAll(close);

  test.each<readonly [string, () => unknown, RegExp]>([
    ['a device', () => symlink('/dev/zero', lock()), /it is not a file/],
    ['a pipe nobody writes to', () => execFileSync('mkfifo', [lock()]), /it is not a file/],
    ['a folder', () => mkdir(lock()), /it is (?:not a file|a folder)/],
    ['a large file', () => writeFile(lock(), '#'.repeat(1024 * 1024 + 1)), /it has 1048577 bytes; at most 1048576/],
    ['not JSON', () => writeFile(lock(), '<<<<<<< HEAD'), /policies\.lock\.json cannot be read: it is not JSON/],
    ['a list', () => writeFile(lock(), '[]'), /cannot be read: it must be a JSON object/],
    [
      'twice about one name',
      () => writeFile(lock(), '{"a":{"user: b":"","user: b":""}}'),
      /has the member `user: b` twice/,
    ],
    ['without ids', () => writeFile(lock(), '{"a":{"user: b":7}}'), /`user: b` of organization a must be an id/],
    ['without names', () => writeFile(lock(), '{"a":7}'), /`` of organization a must be an id/],
  ])('that is %s is refused at once', async (_what, make, reason) => {
    await make();
    for (const words of [plan, apply]) {
      const { code, out, error } = await treasury.user.types(words);
      expect([code, out, error]).toEqual([2, '', like(reason)]);
    }
  });
});
