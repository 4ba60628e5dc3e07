import { thisThread } from '../../src/fairness/turns.js';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { resultOf } from './login-world.js';
import { until } from './until.js';
import { WebhookReceiver } from './webhook-receiver.js';

// What is large is read, parsed, told, written and signed in turns, with those of others in between.

const large = 'x'.repeat(300_000);
let receiver: WebhookReceiver;
let coordinator: TestCoordinator;
let address: string;

beforeAll(async () => {
  receiver = await WebhookReceiver.start();
  coordinator = await startCoordinator({ settings: { ALLOW_PRIVATE_NETWORK: 'true' } });
  [address] = (await coordinator.createWallet('Wallet')).addresses as [string];
});
afterAll(async () => {
  await coordinator.close();
  await receiver.close();
});

const sign = (payload: string) =>
  coordinator.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
    signWith: address,
    payload,
    encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
    hashFunction: 'HASH_FUNCTION_SHA256',
  });

/** The turns that some work asks for, while somebody else always waits for one; all have to come after one of theirs. */
async function turnsOf(work: () => Promise<unknown>): Promise<string> {
  const { next } = thisThread;
  const seen: string[] = [];
  let isOver = false;
  const others = async () => {
    while (!isOver) {
      await next.call(thisThread, ['others'], { alone: true });
      if (seen.at(-1) !== 'others') seen.push('others');
    }
  };
  thisThread.next = (path, wanted) => {
    seen.push(wanted?.alone ? 'alone' : 'any');
    return next.call(thisThread, path, wanted);
  };
  const running = others();
  try {
    await work();
  } finally {
    thisThread.next = next;
    isOver = true;
    await running;
  }
  const asked = seen.filter((one) => one !== 'others');
  expect(seen.filter((one, at) => one === 'others' && at > 0)).toHaveLength(asked.length);
  return asked.join(' ');
}

test('a large activity is read, parsed, told and written in turns of its own by a query', async () => {
  const [{ id: activityId }, { id: smallId }] = [await sign(large), await sign('small')];
  const query = (asked: { activityId: string }) => () => coordinator.client.query('get_activity', asked);
  expect(await turnsOf(query({ activityId: smallId }))).toBe('any');
  expect(await turnsOf(query({ activityId }))).toMatch(/^any alone alone alone alone( any){5,}$/);
});

test('a webhook that is told of it is told in turns of its own', async () => {
  const filtersJson = JSON.stringify({ types: ['ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2'] });
  const created = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
    url: `${receiver.url}/told`,
    name: 'told',
    subscriptions: [{ eventType: 'ACTIVITY_UPDATES', filtersJson }],
  });
  const { endpointId } = resultOf(created);
  const attempts = async () => {
    const asked = { endpointId, paginationOptions: { limit: '1' } };
    const log = await coordinator.client.query<{ webhookDeliveries: { attempts: number }[] }>(
      'list_webhook_deliveries',
      asked,
    );
    return log.webhookDeliveries[0]?.attempts;
  };
  receiver.teach('/told', 503, 204, 503, 204);
  let deliveries = 0;
  // The first attempt is part of the submit as far as can be seen; the second is not.
  const again = async (payload: string) => {
    await sign(payload);
    await receiver.count('/told', ++deliveries);
    await until('the failure is known', async () => (await attempts()) === 1);
    return turnsOf(async () => {
      coordinator.clock.advance('5s');
      await receiver.count('/told', ++deliveries);
    });
  };
  expect(await again('small')).toBe('any');
  expect(await again(`${large}!`)).toMatch(/^any alone alone alone alone( any){5,} alone$/);
});
