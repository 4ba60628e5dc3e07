import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { apiKeyPairFromPrivate, StampingClient } from '../../src/testing/index.js';
import { refusal, textLike } from '../e2e/exchange.js';
import { countersign, Installation, stop, type Run } from '../e2e/installation.js';
import { until } from '../e2e/until.js';

// Real processes whose system clock is set by a file: what `Date.now()` says is so many milliseconds off.

const patience = 480_000;
const day = 86_400_000;
const minute = 60_000;

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
  setClock(0);
});

afterEach(() => installation.remove());

const clockFile = () => join(installation.dataDir, '..', `clock-${installation.dataDir.split('-').at(-1)}`);
const setClock = (ms: number): void => writeFileSync(clockFile(), String(ms));
const offset = (): number => Number(readFileSync(clockFile(), 'utf8'));

const faked = () => {
  const source =
    `import{readFileSync}from'node:fs';const now=Date.now;let last=0;` +
    `Date.now=()=>{const said=readFileSync(${JSON.stringify(clockFile())},'utf8');if(said!=='')last=Number(said);return now()+last}`;
  return ['--import', `data:text/javascript,${encodeURIComponent(source)}`];
};

const start = () => installation.start({}, faked());
const run = (...args: readonly string[]): Run => installation.run(countersign, {}, args, faked());

async function clientOf(url: string): Promise<StampingClient> {
  const { organizationId, apiPrivateKey } = await installation.root();
  const clock = { now: () => Date.now() + offset() };
  return new StampingClient(url, organizationId!, apiKeyPairFromPrivate(apiPrivateKey!), clock);
}

let tags = 0;
const tag = (client: StampingClient) =>
  client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: `tag ${(tags += 1)}`, userIds: [] });

interface Ready {
  readonly status: string;
  readonly conditions?: readonly { readonly name: string; readonly severity: string; readonly message: string }[];
}

async function ready(url: string): Promise<{ readonly code: number; readonly body: Ready }> {
  const response = await fetch(`${url}/health/ready`);
  return { code: response.status, body: (await response.json()) as Ready };
}

const names = ({ body }: { readonly body: Ready }) => (body.conditions ?? []).map(({ name }) => name);

/** Waits for a state of the conditions. */
async function condition(url: string, wanted: readonly string[]) {
  await until(`conditions are ${wanted.join()}`, async () => String(names(await ready(url))) === String(wanted));
  return ready(url);
}

const lines = ({ stderr, stdout }: Run, text: string) =>
  `${stdout()}${stderr()}`.split('\n').filter((line) => line.includes(text)).length;

/** Ends a process that has warned of its clock. */
async function end(server: Run): Promise<void> {
  server.child.kill('SIGTERM');
  expect(await server.exit).toEqual({ code: 0, signal: null });
}

test(
  'a step of up to 30 minutes is adopted, a larger one refuses decisions, and after a step back time continues',
  async () => {
    const server = await start();
    const client = await clientOf(server.url);
    await tag(client);
    setClock(20 * minute);
    await tag(client);
    await until('the step is told of', () => lines(server, 'has stepped ahead, and is followed') === 1);
    expect((await ready(server.url)).body).toMatchObject({ status: 'ok' });

    setClock(3 * 60 * minute);
    await condition(server.url, ['clock-stepped-ahead']);
    const refused = await refusal(tag(client));
    expect(refused).toMatchObject({ status: 503, message: textLike(/has stepped ahead by 9\d\d\d s/) });
    expect(await client.query('whoami')).toMatchObject({ organizationId: client.organizationId });
    const red = await ready(server.url);
    expect([red.code, red.body.conditions?.[0]?.severity]).toEqual([503, 'failing']);
    expect(await (await fetch(`${server.url}/metrics`)).text()).toMatch(
      /countersign_condition\{name="clock-stepped-ahead",severity="failing"\} 1[^]*countersign_clock_untrusted_seconds 9\d\d\d/,
    );

    setClock(20 * minute);
    await condition(server.url, []);
    await tag(await clientOf(server.url));
    expect(lines(server, 'nothing is decided until it has run steadily')).toBe(1);

    setClock(0);
    const behind = await condition(server.url, ['clock-behind']);
    expect([behind.code, behind.body.status]).toEqual([200, 'degraded']);
    const { createdAt } = await tag(await clientOf(server.url));
    expect(Date.parse(createdAt as string)).toBeGreaterThan(Date.now() + 19 * minute);
    expect(lines(server, 'continues from the last trusted time')).toBe(1);
    await end(server);
    // A new process continues from what was recorded.
    const next = await start();
    const again = await clientOf(next.url);
    await tag(again);
    await condition(next.url, ['clock-behind']);
    await end(next);
  },
  patience,
);

test(
  'an organization that a clock two days ahead has recorded in refuses alone, until it is mended',
  async () => {
    setClock(2 * day);
    const wrong = await start();
    await tag(await clientOf(wrong.url));
    await stop(wrong);
    setClock(0);

    const doctor = run('doctor', '--data-dir', installation.dataDir, '--json');
    await doctor.exit;
    expect(doctor.stdout()).toMatch(/the last event is (2 days|48 hours) ahead/);

    const server = await start();
    const client = await clientOf(server.url);
    const { organizationId } = client;
    const refused = await refusal(tag(client));
    expect(refused).toMatchObject({
      status: 503,
      message: textLike(`run \`countersign clock mend ${organizationId}\``),
    });
    const { code, body } = await condition(server.url, ['organizations-ahead']);
    expect([code, body.status]).toEqual([200, 'degraded']);
    expect(JSON.stringify(body)).not.toContain(organizationId);
    expect(lines(server, `"organizationId":"${organizationId}"`)).toBe(1);
    const locked = run('clock', 'mend', organizationId, '--data-dir', installation.dataDir, '--yes');
    expect((await locked.exit).code).not.toBe(0);
    expect(locked.stderr()).toMatch(/another process|in use|locked/);
    await end(server);

    const unsure = run('clock', 'mend', organizationId, '--data-dir', installation.dataDir);
    expect((await unsure.exit).code).toBe(2);
    const mended = run('clock', 'mend', organizationId, '--data-dir', installation.dataDir, '--yes');
    expect({ code: (await mended.exit).code, stderr: mended.stderr() }).toEqual({ code: 0, stderr: '' });
    expect(mended.stdout()).toContain('is mended');
    const twice = run('clock', 'mend', organizationId, '--data-dir', installation.dataDir, '--yes');
    expect((await twice.exit).code).toBe(1);
    expect(twice.stderr()).toContain('there is nothing to mend');

    const after = await start();
    await tag(await clientOf(after.url));
    await until('it is ready', async () => (await ready(after.url)).body.status === 'ok');
    await end(after);
    const verified = run('verify', '--data-dir', installation.dataDir);
    expect({ code: (await verified.exit).code, stdout: verified.stdout() }).toMatchObject({ code: 0 });
  },
  patience,
);
