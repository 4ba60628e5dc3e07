import { createWebhookEndpoint } from '../../../src/activities/webhooks/create-webhook-endpoint.js';
import { deleteWebhookEndpoint } from '../../../src/activities/webhooks/delete-webhook-endpoint.js';
import { updateWebhookEndpoint } from '../../../src/activities/webhooks/update-webhook-endpoint.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import {
  wantsActivityUpdate,
  type WebhookEndpoint,
  type WebhookSubscription,
} from '../../../src/domain/organization/webhook-endpoints.js';
import { guardedTarget } from '../../../src/http-client/guarded-fetch.js';
import { webhookTargets } from '../../../src/http-client/webhook-targets.js';
import { anOrganization } from '../facts.js';
import { validate } from '../../../src/wire/validate.js';
import { given, id } from '../given.js';

const url = 'https://app.example.com/hooks?tenant=1';
const toActivities: WebhookSubscription = { eventType: 'ACTIVITY_UPDATES', isActive: true };
const endpoint: WebhookEndpoint = {
  endpointId: id(1),
  url,
  name: 'Main',
  isActive: true,
  subscriptions: [toActivities],
};
const resource = { organizationId: id(700), ...endpoint };
const created = (number = 1): OrganizationEvent => ({
  type: 'WebhookEndpointCreated',
  data: { ...endpoint, endpointId: id(number) },
});
const aSubOrganization = anOrganization({ parentOrganizationId: id(701) });
const many = (count: number) => Array.from({ length: count }, (_, index) => created(100 + index));

describe('create webhook endpoint', () => {
  it.each([
    ['without subscriptions, to activity updates', undefined, [toActivities]],
    ['with none, to activity updates', [], [toActivities]],
    ['with one that rests', [{ ...toActivities, isActive: false }], undefined],
    ['with filters', [{ ...toActivities, filtersJson: '{"types":["A"],"statuses":["B","C"]}' }], undefined],
  ])('makes one %s', (_how, asked, subscriptions = asked?.map((one): WebhookSubscription => ({ ...one }))) =>
    given(anOrganization())
      .when(createWebhookEndpoint, { url, name: 'Main', ...(asked ? { subscriptions: asked } : {}) })
      .then([{ type: 'WebhookEndpointCreated', data: { ...endpoint, subscriptions: subscriptions! } }], {
        endpointId: id(1),
        webhookEndpoint: { ...resource, subscriptions: subscriptions!.map((one) => ({ ...one })) },
      }),
  );

  const refused: readonly (readonly [what: string, more: object, message: RegExp])[] = [
    ['no URL', { url: 'hooks' }, /parameters\.url: must be an absolute URL such as https:/],
    ['another scheme', { url: 'ftp://app.example.com' }, /must be an absolute URL/],
    [
      'a password',
      { url: 'https://ann:secret@app.example.com' },
      /must not contain a user or password: leave them out$/,
    ],
    ['a fragment', { url: `${url}#part` }, /must not have a fragment/],
    ['a long URL', { url: `${url}${'x'.repeat(2048)}` }, /must have 1 to 2048 characters/],
    ['no name', { name: '' }, /parameters\.name: must have 1 to 255 characters/],
    ['an unknown event', { subscriptions: [{ eventType: 'WEATHER' }] }, /eventType: must be one of ACTIVITY_UPDATES/],
    ['one event twice', { subscriptions: [toActivities, toActivities] }, /list `ACTIVITY_UPDATES` more than once/],
    ...['{', '[]', 'null', '"x"'].map(
      (filtersJson) =>
        [
          `filters that are ${filtersJson}`,
          { subscriptions: [{ ...toActivities, filtersJson }] },
          /filtersJson: must be a JSON object/,
        ] as const,
    ),
    ...['{"types":[]}', '{"statuses":"x"}', '{"types":[1]}'].map(
      (filtersJson) =>
        [
          `filters that are ${filtersJson}`,
          { subscriptions: [{ ...toActivities, filtersJson }] },
          /which must be a non-empty list of strings/,
        ] as const,
    ),
    [
      'a filter that nobody goes by',
      { subscriptions: [{ ...toActivities, filtersJson: '{"wallets":["x"]}' }] },
      /has `wallets`: ACTIVITY_UPDATES has only `types` and `statuses`/,
    ],
  ];

  it.each(refused)('refuses %s', (_what, more, message) =>
    given(anOrganization())
      .when(createWebhookEndpoint, { url, name: 'Main', ...more })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('notifies an endpoint of a sub-organization of its activities', () =>
    given(aSubOrganization)
      .when(createWebhookEndpoint, { url, name: 'Main', subscriptions: [toActivities] })
      .then([created()], {
        endpointId: id(1),
        webhookEndpoint: { ...resource, subscriptions: [{ ...toActivities }] },
      }));

  it.each(['BALANCE_CONFIRMED_UPDATES', 'BALANCE_FINALIZED_UPDATES', 'SEND_TRANSACTION_STATUS_UPDATES'])(
    'refuses %s, which never happens here',
    (eventType) =>
      expect(() =>
        validate(
          createWebhookEndpoint.intent,
          { url, name: 'Main', subscriptions: [toActivities, { eventType }] },
          'parameters',
        ),
      ).toThrow(/parameters\.subscriptions\[1\]\.eventType: must be one of ACTIVITY_UPDATES/),
  );

  it('has room for ten, and no more', () => {
    given(anOrganization(), ...many(9))
      .when(createWebhookEndpoint, { url, name: 'Main' })
      .then([created()], { endpointId: id(1), webhookEndpoint: { ...resource, subscriptions: [{ ...toActivities }] } });
    given(anOrganization(), ...many(10))
      .when(createWebhookEndpoint, { url, name: 'Main' })
      .thenRefused('RESOURCE_EXHAUSTED', /has 10 webhook endpoints, which is the limit: delete one/);
  });
});

describe('update webhook endpoint', () => {
  it.each([
    { url: 'https://other.example.com/' },
    { name: 'Other' },
    { isActive: false },
    { name: 'All', isActive: true, url },
  ])('applies the update %j', (changes) =>
    given(anOrganization(), created())
      .when(updateWebhookEndpoint, { endpointId: id(1), ...changes })
      .then([{ type: 'WebhookEndpointUpdated', data: { endpointId: id(1), ...changes } }], {
        endpointId: id(1),
        webhookEndpoint: { ...resource, ...changes, subscriptions: [{ ...toActivities }] },
      }),
  );

  it('leaves an endpoint behind that can be changed again', () =>
    given(anOrganization(), created(), {
      type: 'WebhookEndpointUpdated',
      data: { endpointId: id(1), name: 'Other', isActive: false },
    })
      .when(updateWebhookEndpoint, { endpointId: id(1), isActive: true })
      .then([{ type: 'WebhookEndpointUpdated', data: { endpointId: id(1), isActive: true } }], {
        endpointId: id(1),
        webhookEndpoint: { ...resource, name: 'Other', subscriptions: [{ ...toActivities }] },
      }));

  it('changes nothing if nothing is sent', () =>
    given(anOrganization(), created())
      .when(updateWebhookEndpoint, { endpointId: id(1) })
      .then([], {
        endpointId: id(1),
        webhookEndpoint: { ...resource, subscriptions: [{ ...toActivities }] },
      }));

  it('refuses an invalid URL, and an unknown endpoint', () => {
    const update = (intent: object, ...history: OrganizationEvent[]) =>
      given(anOrganization(), ...history).when(updateWebhookEndpoint, { endpointId: id(1), ...intent });
    update({ url: 'x' }, created()).thenRefused('INVALID_ARGUMENT', /must be an absolute URL/);
    update({ name: 'x' }, created(2)).thenRefused('NOT_FOUND', /no webhook endpoint `.*1` in organization/);
  });
});

describe('delete webhook endpoint', () => {
  it('deletes it once', () => {
    given(anOrganization(), created())
      .when(deleteWebhookEndpoint, { endpointId: id(1) })
      .then([{ type: 'WebhookEndpointDeleted', data: { endpointId: id(1) } }], { endpointId: id(1) });
    given(anOrganization(), created(), { type: 'WebhookEndpointDeleted', data: { endpointId: id(1) } })
      .when(deleteWebhookEndpoint, { endpointId: id(1) })
      .thenRefused('NOT_FOUND', /see list_webhook_endpoints/);
  });
});

test.each([
  [true, {}],
  [false, { isActive: false }],
  [false, { subscriptions: [] }],
  [false, { subscriptions: [{ ...toActivities, isActive: false }] }],
  [false, { subscriptions: [{ ...toActivities, eventType: 'BALANCE_CONFIRMED_UPDATES' as const }] }],
  [true, { subscriptions: [{ ...toActivities, filtersJson: '{}' }] }],
  [true, { subscriptions: [{ ...toActivities, filtersJson: '{"types":["U","T"]}' }] }],
  [false, { subscriptions: [{ ...toActivities, filtersJson: '{"types":["U"]}' }] }],
  [true, { subscriptions: [{ ...toActivities, filtersJson: '{"types":["T"],"statuses":["S"]}' }] }],
  [false, { subscriptions: [{ ...toActivities, filtersJson: '{"types":["T"],"statuses":["R"]}' }] }],
])('wants an update: %s for %j', (wants, more) => {
  expect(wantsActivityUpdate({ ...endpoint, ...more }, { type: 'T', status: 'S' })).toBe(wants);
});

describe('where deliveries may go', () => {
  const resolve = async (host: string): Promise<string[]> => {
    const addresses: Readonly<Record<string, string[]>> = {
      localhost: ['127.0.0.1', '::1'],
      'public.example': ['93.184.215.14'],
      'half.example': ['93.184.215.14', '10.0.0.1'],
    };
    const found = addresses[host];
    if (!found) throw Object.assign(new Error(), { code: 'ENOTFOUND' });
    return found;
  };
  const outside = webhookTargets(guardedTarget({ allowPrivateNetwork: false, resolve }));
  const inside = webhookTargets(guardedTarget({ allowPrivateNetwork: true, resolve }));

  it.each([
    'http://public.example/',
    ...['127.0.0.1', '10.0.0.1', '192.168.1.1', '169.254.169.254', '100.100.100.200', '0x7f000001', '2130706433'],
    ...['0177.0.0.1', '127.1', '[::1]', '[::ffff:127.0.0.1]', '[::ffff:a9fe:a9fe]', '[fd00:ec2::254]', '[fe80::1]'],
  ])('is not %s', async (place) => {
    const asked = place.includes('//') ? place : `https://${place}/hooks`;
    await expect(outside.check(asked)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('parameters.url') as string,
    });
  });

  it.each(['https://half.example/', 'https://localhost/hooks', 'https://lost.example/'])(
    'is not %s, which is told like a name that does not exist',
    async (place) => {
      const { host } = new URL(place);
      await expect(outside.check(place)).rejects.toMatchObject({
        code: 'FAILED_PRECONDITION',
        message:
          `parameters.url: host \`${host}\` does not resolve to an address that this server calls: use a public one (for development, ` +
          'the setting ALLOW_PRIVATE_NETWORK=true allows http and private addresses): check the name, or try again once it resolves',
      });
    },
  );

  it('is a public address, and a private one for development only', async () => {
    await outside.check('https://public.example/hooks');
    await inside.check('http://127.0.0.1:8080/hooks');
    await expect(inside.check('http://169.254.169.254/latest')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
});
