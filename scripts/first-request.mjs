import './no-arguments.mjs';
/** A first request with the published client, stamped with the root API key; then what was recorded of it. */
import { readFileSync } from 'node:fs';
import { ApiKeyStamper } from '@turnkey/api-key-stamper';
import { TurnkeyClient } from '@turnkey/http';

const folder = process.env.DATA_DIR ?? './data';
const { apiUrl, organizationId, apiPublicKey, apiPrivateKey } = JSON.parse(readFileSync(`${folder}/root.json`, 'utf8'));
const stamper = new ApiKeyStamper({ apiPublicKey, apiPrivateKey });
const client = new TurnkeyClient({ baseUrl: apiUrl }, stamper);

const { username } = await client.getWhoami({ organizationId });
console.log('I am', username);

const { activity } = await client.createUserTag({
  type: 'ACTIVITY_TYPE_CREATE_USER_TAG',
  timestampMs: String(Date.now()),
  organizationId,
  parameters: { userTagName: `Treasury ${new Date().toISOString()}`, userIds: [] },
});
console.log(activity.status, activity.result.createUserTagResult);

// A query that the published client does not know: stamp the body, and post exactly these bytes.
const body = JSON.stringify({ organizationId, activityId: activity.id });
const { stampHeaderName, stampHeaderValue } = await stamper.stamp(body);
const response = await fetch(`${apiUrl}/public/v1/query/list_activity_events`, {
  method: 'POST',
  headers: { [stampHeaderName]: stampHeaderValue },
  body,
});
for (const { revision, type, data } of (await response.json()).events) console.log(revision, type, data);
