import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../src/config/config.js';
import type { DeliveryReport } from '../../src/delivery/delivery.js';
import { openDelivery } from '../../src/delivery/open-delivery.js';
import { openInbox } from './smtp-inbox.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'countersign-delivery-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const email = {
  channel: 'email',
  to: 'zoe@example.com',
  subject: 'Your code',
  text: '4xk92mtq7',
  otpId: 'otp-1',
} as const;
const sms = { channel: 'sms', to: '+13214567890', text: '123456', otpId: 'otp-2' } as const;

test('without settings everything goes to the outbox, and reports say that it was sent', async () => {
  const reports: DeliveryReport[] = [];
  const now = Date.UTC(2026, 0, 2);
  const opened = openDelivery(
    readConfig({ DATA_DIR: folder }),
    (report) => void reports.push(report),
    () => now,
  );
  expect(opened.destinations).toEqual({ email: undefined, sms: undefined });
  expect(opened.outboxFile).toBe(join(folder, 'outbox.jsonl'));
  expect(await opened.delivery.send(email)).toMatchObject({ status: 'sent' });
  expect(await opened.delivery.send(sms)).toMatchObject({ status: 'sent' });
  await opened.delivery.close();
  const lines = (await readFile(opened.outboxFile, 'utf8')).trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    { at: '2026-01-02T00:00:00.000Z', ...email },
    { at: '2026-01-02T00:00:00.000Z', ...sms },
  ]);
  expect(reports).toMatchObject([{ outcome: 'sent' }, { outcome: 'sent' }]);
});

test('with SMTP_URL alone e-mail is sent, and text messages are still written to the outbox', async () => {
  const inbox = await openInbox();
  const config = readConfig({ DATA_DIR: folder, SMTP_URL: `smtp://127.0.0.1:${inbox.port}` });
  const { delivery, destinations, outboxFile } = openDelivery(config, () => undefined);
  expect(destinations).toEqual({ email: `127.0.0.1:${inbox.port}`, sms: undefined });
  expect(await delivery.send(email)).toMatchObject({ status: 'sent' });
  expect(await delivery.send(sms)).toMatchObject({ status: 'sent' });
  await delivery.close();
  await inbox.close();
  expect(inbox.received.map(({ mail }) => mail.text?.trim())).toEqual(['4xk92mtq7']);
  expect((await readFile(outboxFile, 'utf8')).trimEnd().split('\n')).toHaveLength(1);
});

test('where messages go is told without what opens the door', () => {
  const destinationsOf = (SMS_WEBHOOK_URL: string) =>
    openDelivery(
      readConfig({ DATA_DIR: folder, SMTP_URL: 'smtps://user:hunter2@smtp.example.com', SMS_WEBHOOK_URL }),
      () => undefined,
    ).destinations;
  expect(destinationsOf('https://user:hunter2@sms.example.com/hunter2?key=hunter2')).toEqual({
    email: 'smtp.example.com:465',
    sms: 'sms.example.com',
  });
  expect(destinationsOf('twilio://AC1:hunter2@api.twilio.com?from=+13214567890').sms).toBe('api.twilio.com');
});
