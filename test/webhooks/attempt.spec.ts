import type { GuardedRequest } from '../../src/http-client/guarded-request.js';
import { attempt, contentOf } from '../../src/webhooks/attempt.js';

test('an endpoint is waited for ten seconds in all, and only its status is read', async () => {
  const signer = { jwk: { kid: 'key' }, sign: () => Promise.resolve(new Uint8Array(64)) };
  const asked: (GuardedRequest | undefined)[] = [];
  const ended = await attempt(
    {
      url: 'https://hooks.example/',
      endpointId: 'endpoint',
      eventId: 'event',
      eventType: 'ACTIVITY_UPDATES',
      organizationId: 'organization',
      content: await contentOf({}, { signer, eventId: 'event', at: 0, turn: () => undefined }),
    },
    {
      fetch: (_url, request) => {
        asked.push(request);
        return Promise.resolve({ status: 204, headers: {}, body: new Uint8Array() });
      },
      signer,
      signal: new AbortController().signal,
    },
  );
  expect(ended).toEqual({ kind: 'delivered', status: 204 });
  expect(asked).toMatchObject([{ method: 'POST', timeoutMs: 10_000, statusOnly: true, keepFor: 'endpoint' }]);
});
