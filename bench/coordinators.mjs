/**
 * Several coordinators on one EventStoreDB: 1, 2 and 4 processes, each with read models of its own, on the tests' double. Renames
 * over HTTP of many organizations, each sent to one coordinator as the load balancer does by X-Organization-Id (`routed`); of many
 * organizations, sent to all in turn (`spread`); and of one organization, sent to all in turn (`contended`). Reads the rate, the
 * processor time of all coordinators for a submit, appends that reached the store, and decisions made again after another
 * coordinator was first. `node bench/coordinators.mjs [seconds] [organizations] [connections]`, or `--quick` to see that it runs. On a
 * machine with few cores the rate cannot grow with the processes: read the processor time.
 */
import { randomBytes } from 'node:crypto';
import { readArguments } from '../scripts/arguments.mjs';
import { benchFolder, Coordinator, each, stamped, submit } from './load/coordinator.mjs';
import { startDouble } from './load/double.mjs';
import { printResult } from './load/result.mjs';
import { connection, stampedRename } from './load/stamped-renames.mjs';

const asked = readArguments({ flags: ['quick'], values: { seconds: 3, organizations: 16, connections: 32 } });
const seconds = asked.quick ? 0.3 : asked.seconds;
const organizations = asked.quick ? 4 : asked.organizations;
const { connections } = asked;
const counts = asked.quick ? [1, 2] : [1, 2, 4];
const path = '/public/v1/submit/update_user_name';

/** Which organizations a coordinator is asked about: those of an index that is its own, all of them, or the first. */
const ways = {
  routed: (places, coordinator, all) => places.filter((_, index) => index % all === coordinator),
  spread: (places) => places,
  contended: (places) => places.slice(0, 1),
};

const double = await startDouble();
const settings = { EVENT_STORE: double.connectionString, KEK: randomBytes(32).toString('hex') };
const running = [];
const figures = {};
console.log(
  '| coordinators | requests | submits/s | µs of processor time each | appends each | decided again, of 1,000 |',
);
console.log('| ---: | --- | ---: | ---: | ---: | ---: |');
try {
  running.push(await Coordinator.start(benchFolder(), settings));
  const { root, url } = running[0];
  const places = await each(Array.from({ length: organizations }), 4, async (_, index) => {
    const apiKeys = [{ apiKeyName: 'Bench', publicKey: root.publicKey, curveType: 'API_KEY_CURVE_P256' }];
    const { subOrganizationId, rootUserIds } = await submit(
      url,
      stamped(root, 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
        subOrganizationName: `Bench ${index}`,
        rootQuorumThreshold: 1,
        rootUsers: [{ userName: 'Bench', apiKeys, authenticators: [], oauthProviders: [] }],
      }),
    );
    return { organizationId: subOrganizationId, userId: rootUserIds[0] };
  });
  for (const count of counts) {
    while (running.length < count) running.push(await Coordinator.start(benchFolder(), settings));
    for (const [name, way] of Object.entries(ways)) {
      if (count === 1 && name === 'spread') continue;
      await measure(places, way, Math.min(seconds, 1));
      const found = await measure(places, way, seconds);
      const { rate, micros, appends, again } = found;
      console.log(
        `| ${count} | ${name} | ${rate.toFixed(0)} | ${micros.toFixed(0)} | ${appends.toFixed(3)} | ${again.toFixed(1)} |`,
      );
      const place = `${count} coordinator${count > 1 ? 's' : ''}, ${name}`;
      figures[`${place}: /s`] = rate;
      figures[`${place}: µs`] = micros;
      figures[`${place}: appends/submit`] = appends;
      figures[`${place}: decided again/1000`] = again;
    }
  }
  printResult('coordinators', figures);
} finally {
  for (const one of running) await one.remove();
  await double.stop();
}

async function measure(places, shareOf, during) {
  const { publicKey, key: privateKey } = running[0].root;
  const before = await soFar();
  let number = 0;
  let answered = 0;
  const begun = performance.now();
  const isOver = () => performance.now() - begun > during * 1_000;
  const lane = (_, index) => {
    const server = running[index % running.length];
    const { host } = new URL(server.url);
    const own = shareOf(places, index % running.length, running.length);
    const next = () => {
      if (isOver()) return undefined;
      const place = own[number++ % own.length];
      return stampedRename({ path, host, ...place, publicKey, privateKey });
    };
    return connection(server.url, next, () => (answered += 1));
  };
  await Promise.all(Array.from({ length: connections }, lane));
  const elapsed = (performance.now() - begun) / 1_000;
  await new Promise((later) => setTimeout(later, 500));
  const after = await soFar();
  const perSubmit = (name) => (after[name] - before[name]) / answered;
  return {
    rate: answered / elapsed,
    micros: perSubmit('ms') * 1_000,
    appends: perSubmit('appends'),
    again: perSubmit('conflicts') * 1_000,
  };
}

/** Of all coordinators: processor time and conflicts; of the store: appends. */
async function soFar() {
  const { appends } = await double.counts();
  const conflicts = await Promise.all(running.map(conflictsOf));
  const ms = running.reduce((sum, one) => sum + one.processorMs(), 0);
  return { appends, ms, conflicts: conflicts.reduce((sum, one) => sum + one, 0) };
}

async function conflictsOf({ url }) {
  const text = await (await fetch(`${url}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith('countersign_append_conflicts_total'));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}
