import type { StampingClient } from '../../src/testing/index.js';
import { until } from './until.js';

interface Logged {
  readonly eventId: string;
  readonly activityId: string;
  readonly state: string;
  readonly attempts: number;
  readonly httpStatus?: number;
  readonly reason?: string;
  readonly retryAt?: { readonly seconds: string };
}

/** What the API says of the deliveries of an endpoint. */
export async function deliveryLog(client: StampingClient, endpointId: string): Promise<readonly Logged[]> {
  const asked = { endpointId, paginationOptions: { limit: '100' } };
  return (await client.query<{ webhookDeliveries: Logged[] }>('list_webhook_deliveries', asked)).webhookDeliveries;
}

/** The same, once so many deliveries are in that state. */
export async function deliveriesLogged(
  client: StampingClient,
  endpointId: string,
  state: string,
  count = 1,
): Promise<readonly Logged[]> {
  let entries: readonly Logged[] = [];
  await until(`${count} deliveries are ${state}`, async () => {
    entries = await deliveryLog(client, endpointId);
    return entries.filter((one) => one.state === state).length >= count;
  });
  return entries;
}

/** The id of the event that a delivery tells of. */
export const eventIdOf = ({ headers }: { readonly headers: object }): string =>
  (headers as Readonly<Record<string, string>>)['x-turnkey-event-id']!;
