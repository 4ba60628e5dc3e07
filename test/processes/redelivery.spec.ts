import { countersign, Installation, type Run } from '../e2e/installation.js';
import { resultOf } from '../e2e/login-world.js';
import { deliveriesLogged, eventIdOf } from '../e2e/webhook-log.js';
import { WebhookReceiver } from '../e2e/webhook-receiver.js';

test('an operator has deliveries made once more: the same events, to where the endpoint is by then', async () => {
  const installation = await Installation.make();
  const receiver = await WebhookReceiver.start();
  const asServer = { ALLOW_PRIVATE_NETWORK: 'true', LOG_LEVEL: 'error' };
  const end = async ({ child, exit, stderr }: Run) => {
    child.kill('SIGTERM');
    expect({ ...(await exit), words: stderr() }).toEqual({ code: 0, signal: null, words: '' });
  };
  const run = async (...args: readonly string[]) => {
    const { exit, stdout, stderr } = installation.run(countersign, {}, ['webhooks', 'redeliver', ...args]);
    const { code } = await exit;
    return { code, said: stdout() + stderr() };
  };
  try {
    const first = await installation.start(asServer);
    const client = await installation.client(first.url);
    const { organizationId } = client;
    receiver.teach('/gone', 410);
    const { endpointId } = resultOf(
      await client.submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', { url: `${receiver.url}/gone`, name: 'x' }),
    );
    await deliveriesLogged(client, endpointId!, 'abandoned');
    const place = ['--organization', organizationId, '--endpoint', endpointId!];
    expect(await run(...place, '--abandoned')).toEqual({ code: 1, said: expect.stringMatching(/in use/) as string });
    await client.submit('ACTIVITY_TYPE_UPDATE_WEBHOOK_ENDPOINT', { endpointId, url: `${receiver.url}/back` });
    const [second] = await receiver.count('/back', 1);
    await deliveriesLogged(client, endpointId!, 'delivered');
    await end(first);

    expect(await run(...place)).toEqual({
      code: 2,
      said: expect.stringMatching(/^error: select one event with --event, or add --abandoned\n/) as string,
    });
    expect(await run(...place, '--event', 'none')).toEqual({
      code: 1,
      said: expect.stringMatching(/no finished delivery of event `none` to endpoint/) as string,
    });
    const made = `1 delivery to endpoint ${endpointId} will be repeated.\n`;
    expect(await run(...place, '--abandoned')).toEqual({ code: 0, said: made });
    expect(await run(...place, '--event', eventIdOf(second!))).toEqual({ code: 0, said: made });

    const again = await installation.start(asServer);
    const all = await receiver.count('/back', 3);
    expect(all.slice(1).map(eventIdOf).toSorted()).toEqual(
      [eventIdOf(receiver.at('/gone')[0]!), eventIdOf(all[0]!)].toSorted(),
    );
    await deliveriesLogged(await installation.client(again.url), endpointId!, 'delivered', 2);
    await end(again);
  } finally {
    await installation.remove();
    await receiver.close();
  }
}, 300_000);
