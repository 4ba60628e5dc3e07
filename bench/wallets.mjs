/**
 * Many sub-organizations, each with a wallet of its own: how fast they are created, by the first of them and beside 1,000 and 10,000
 * that are there, and how fast 3,000 of them sign once, when the coordinator has just started again and when it has them in
 * memory. Stamped, over HTTP, on the durable SQLite store. `node bench/wallets.mjs [count]`, or `--quick` to see that it runs.
 * The server is a process of its own; its processor time says more than the rates where the machine has other work.
 */
import { createHash } from 'node:crypto';
import { loadavg } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import { readArguments } from '../scripts/arguments.mjs';
import { benchFolder, Coordinator, each, stamped, submit } from './load/coordinator.mjs';
import { printResult } from './load/result.mjs';

const asked = readArguments({ flags: ['quick'], values: { count: 10_500 } });
const count = asked.quick ? 40 : asked.count;
/** How many are created in a row of the table, and beside how many. */
const [few, places] = asked.quick ? [10, [10, 30]] : [500, [1_000, 10_000]];
const mostInAMinute = 10_000;
/** How many of them sign, at most. */
const mostSigners = 3_000;
/** Requests under way at once: while creating, and while signing. */
const connections = { creating: 16, signing: 32 };
const folder = benchFolder();
const figures = {};

/** Sends every request, so many at once; prints a row; gives the results in order. */
async function measure(name, requests, atOnce) {
  const before = [false, true].map((ofMain) => server.processorMs(ofMain));
  const begun = performance.now();
  const results = await each(requests, atOnce, (request) => submit(server.url, request));
  const seconds = (performance.now() - begun) / 1_000;
  const [all, main] = [false, true].map((ofMain, at) => (server.processorMs(ofMain) - before[at]) / requests.length);
  const rate = requests.length / seconds;
  console.log(`| ${name} | ${rate.toFixed(0)} | ${all.toFixed(2)} | ${main.toFixed(2)} |`);
  Object.assign(figures, {
    [`${name}: /s`]: rate,
    [`${name}: ms, all threads`]: all,
    [`${name}: ms, main thread`]: main,
  });
  return results;
}

let server = await Coordinator.start(folder);
try {
  const { root } = server;
  const caller = (organizationId) => ({ ...root, organizationId });
  const creations = Array.from({ length: count }, (_, at) =>
    stamped(caller(root.organizationId), 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: `Bench ${at}`,
      rootQuorumThreshold: 1,
      rootUsers: [
        {
          userName: 'Bench',
          apiKeys: [{ apiKeyName: 'Bench', publicKey: root.publicKey, curveType: 'API_KEY_CURVE_P256' }],
          authenticators: [],
          oauthProviders: [],
        },
      ],
      wallet: {
        walletName: 'Bench',
        accounts: [
          {
            curve: 'CURVE_SECP256K1',
            pathFormat: 'PATH_FORMAT_BIP32',
            path: "m/44'/60'/0'/0/0",
            addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
          },
        ],
      },
    }),
  );
  console.log(`${count} sub-organizations; load ${loadavg()[0].toFixed(1)}, Node ${process.versions.node}`);
  console.log('| each | a second | ms of processor time, all threads | main thread |');
  console.log('| --- | ---: | ---: | ---: |');
  const created = [];
  const create = async (name, upTo) => {
    // A user may found so many in a minute, however that is set: those before may all have been in the last one.
    if (upTo > mostInAMinute) await setTimeout(61_000);
    created.push(...(await measure(name, creations.slice(created.length, upTo), connections.creating)));
  };
  for (const place of places.filter((each) => each + few <= count)) {
    await create(`is created, with a wallet, up to ${place.toLocaleString('en')}`, place);
    await create(`the same beside ${place.toLocaleString('en')}`, place + few);
  }
  if (created.length < count) await create(`is created, with a wallet, up to ${count.toLocaleString('en')}`, count);
  const signers = created.slice(0, mostSigners).map(({ subOrganizationId, wallet }) => ({
    organizationId: subOrganizationId,
    signWith: wallet.addresses[0],
  }));
  let round = 0;
  const signatures = () => {
    round += 1;
    return signers.map(({ organizationId, signWith }) =>
      stamped(caller(organizationId), 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
        signWith,
        payload: createHash('sha256').update(`${round} ${signWith}`).digest('hex'),
        encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
        hashFunction: 'HASH_FUNCTION_NO_OP',
      }),
    );
  };
  await server.stop();
  server = await Coordinator.start(folder);
  await measure('signs once, just restarted', signatures(), connections.signing);
  await measure('signs once, in memory', signatures(), connections.signing);
} finally {
  await server.remove();
}
printResult('wallets', figures);
