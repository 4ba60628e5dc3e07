import { appendFile, chmod, mkdtemp, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AcceptedMessage, Carrier } from '../../src/delivery/delivery.js';
import { Outbox } from '../../src/delivery/outbox.js';

const now = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const { signal } = new AbortController();

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'countersign-outbox-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const openOutbox = (): Outbox => new Outbox(folder, () => now);
const carry = (outbox: Carrier, message: Partial<AcceptedMessage>): Promise<void> =>
  outbox.carry({ id: 'id', channel: 'sms', to: '+13214567890', text: 'code 123456', ...message }, signal);
const lines = async (): Promise<unknown[]> => {
  const text = await readFile(join(folder, 'outbox.jsonl'), 'utf8');
  expect(text.endsWith('\n')).toBe(true);
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
};

test('a message is one line of JSON with what the reader needs, and nothing else', async () => {
  const outbox = openOutbox();
  await carry(outbox, {
    channel: 'email',
    to: 'zoe@example.com',
    subject: 'Your code',
    text: 'line one\nline "two"\u2028 ✓',
    html: '<p>line one</p>\n',
    from: 'a@example.com',
    fromName: 'A',
    replyTo: 'b@example.com',
    otpId: 'otp-1',
    expiresAt: now,
  });
  await carry(outbox, {});
  const at = '2026-01-02T03:04:05.678Z';
  expect(await lines()).toEqual([
    {
      at,
      channel: 'email',
      to: 'zoe@example.com',
      subject: 'Your code',
      text: 'line one\nline "two"\u2028 ✓',
      html: '<p>line one</p>\n',
      otpId: 'otp-1',
    },
    { at, channel: 'sms', to: '+13214567890', text: 'code 123456' },
  ]);
});

test('only its owner can read it, even where it was open to others before', async () => {
  await writeFile(join(folder, 'outbox.jsonl'), '');
  await chmod(join(folder, 'outbox.jsonl'), 0o644);
  await carry(openOutbox(), {});
  expect((await stat(join(folder, 'outbox.jsonl'))).mode & 0o777).toBe(0o600);
  await rm(join(folder, 'outbox.jsonl'));
  await carry(openOutbox(), {});
  expect((await stat(join(folder, 'outbox.jsonl'))).mode & 0o777).toBe(0o600);
});

test('200 at the same time, by two writers: each is there once, none is torn', async () => {
  const writers = [openOutbox(), openOutbox()];
  for (const writer of writers) await carry(writer, { text: 'first' });
  const texts = Array.from({ length: 200 }, (_, index) => `message ${index} ${'x'.repeat((index * 97) % 5_000)}`);
  await Promise.all(texts.map((text, index) => carry(writers[index % 2]!, { text })));
  const written = (await lines()) as { text: string }[];
  expect(written.map(({ text }) => text).sort()).toEqual([...texts, 'first', 'first'].sort());
});

test('continues after a restart, and removes an incomplete line of a killed process', async () => {
  await carry(openOutbox(), { text: 'before' });
  await appendFile(
    join(folder, 'outbox.jsonl'),
    `{"at":"2026-01-02T03:04:05.678Z","channel":"sms","text":"${'x'.repeat(100_000)}`,
  );
  await carry(openOutbox(), { text: 'after' });
  expect(((await lines()) as { text: string }[]).map(({ text }) => text)).toEqual(['before', 'after']);
});

test('a file with only an incomplete line is started again', async () => {
  await writeFile(join(folder, 'outbox.jsonl'), '{"at":');
  await carry(openOutbox(), {});
  expect(await lines()).toHaveLength(1);
});

test('moving the file away creates a new one', async () => {
  const outbox = openOutbox();
  await carry(outbox, { text: 'first' });
  await rename(join(folder, 'outbox.jsonl'), join(folder, 'old.jsonl'));
  await carry(outbox, { text: 'second' });
  expect(((await lines()) as { text: string }[]).map(({ text }) => text)).toEqual(['second']);
});

test('a missing folder is created, for its owner only', async () => {
  const outbox = new Outbox(join(folder, 'one', 'two'), () => now);
  await carry(outbox, {});
  expect((await stat(join(folder, 'one', 'two'))).mode & 0o777).toBe(0o700);
});

test('a link in its place is not followed, and the failure holds no text', async () => {
  await symlink(join(folder, 'elsewhere'), join(folder, 'outbox.jsonl'));
  await expect(carry(openOutbox(), { text: 'code 123456' })).rejects.toMatchObject({
    name: 'DeliveryFailed',
    message: 'the outbox could not be written (ELOOP)',
    retryable: true,
  });
  await expect(stat(join(folder, 'elsewhere'))).rejects.toMatchObject({ code: 'ENOENT' });
  // And it works again once the link is gone.
  await rm(join(folder, 'outbox.jsonl'));
  const outbox = openOutbox();
  await carry(outbox, {});
  expect(await lines()).toHaveLength(1);
});

test('closing waits for what is being written', async () => {
  const outbox = openOutbox();
  const writing = carry(outbox, {});
  await outbox.close();
  expect(await lines()).toHaveLength(1);
  await writing;
});
