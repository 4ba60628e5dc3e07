import { createServer } from 'node:http';
import { writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { TypingUser } from './typed.js';

/* What a coordinator shows, replayed and verified by somebody who has a profile and not the store. */

let coordinator: TestCoordinator;
let user: TypingUser;

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'shown history', at: new Date() });
  user = await TypingUser.sitDown();
  await login(coordinator.url);
  await coordinator.createUser('Alice');
  await coordinator.createPolicy({
    policyName: 'nobody signs',
    effect: 'EFFECT_DENY',
    condition: "activity.action == 'SIGN'",
  });
});

afterAll(async () => {
  await user.leaves();
  await coordinator.close();
});

async function login(apiUrl: string, ...more: readonly string[]): Promise<void> {
  await writeFile(user.path('root.json'), JSON.stringify({ ...coordinator.root, apiUrl }));
  await user.json(['login', '--data-dir', '.', ...more]);
}

const ofProfile = ['--profile', 'default'] as const;

test('states, changes and events are those that the coordinator shows', async () => {
  const events = await coordinator.events();
  const last = String(events.at(-1)!.revision);
  const state = await user.types(['replay', ...ofProfile, '--no-tty']);
  expect({ code: state.code, error: state.error }).toEqual({ code: 0, error: '' });
  expect(state.out).toMatch(new RegExp(`^organization ${coordinator.organizationId} at ${last}, after `));
  expect(state.out).toContain('userName: Alice');
  type State = { at: number; eventId: string; users: { userId: string; userName: string }[]; organization: object };
  const shape = await user.json<State>(['replay', ...ofProfile, '--at', 'end']);
  // As `replay` on the store has it.
  expect(shape).toMatchObject({ at: Number(last), eventId: events.at(-1)!.id, organization: {} });
  expect(shape.users.map(({ userName }) => userName)).toContain('Alice');

  const { out } = await user.types(['replay', ...ofProfile, '--diff', events.at(-3)!.id]);
  expect(out).toMatch(new RegExp(`^organization \\S+ from ${Number(last) - 2} to ${last}\\n`));
  expect(out).toContain("policy 'nobody signs' was created");
  const changes = await user.json(['replay', ...ofProfile, '--diff', events.at(-3)!.id]);
  expect(changes).toMatchObject({ from: Number(last) - 2, to: Number(last) });

  const stepped = await user.types(['replay', ...ofProfile, '--step', '--from', events.at(-3)!.id]);
  expect([...stepped.out.matchAll(/^\d+ {2}(\w+)/gm)].map(([, type]) => type)).toEqual([
    'ActivitySubmitted',
    'PolicyCreated',
    'ActivityCompleted',
  ]);
  expect(stepped.out).toContain('stamp     verified');
  const { events: shown } = await user.json<{ events: { id: string }[] }>(['replay', ...ofProfile, '--step']);
  expect(shown.map(({ id }) => id)).toEqual(events.map(({ id }) => id));
});

test('the events of one activity are listed, and none for one that is not there', async () => {
  const { id } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'x', userIds: [] });
  const asked = ['replay', ...ofProfile, '--activity'];
  const { code, out } = await user.types([...asked, id.toUpperCase()]);
  expect(code).toBe(0);
  expect([...out.matchAll(/^\d+ {2}(\w+)/gm)].map(([, type]) => type)).toEqual([
    'ActivitySubmitted',
    'UserTagCreated',
    'ActivityCompleted',
  ]);
  expect(out).toContain(`activity  ${id}`);
  expect(out).toContain('stamp     verified');
  const { events } = await user.json<{ events: { activityId: string }[] }>([...asked, id]);
  expect(events.map(({ activityId }) => activityId)).toEqual([id, id, id]);

  const nobody = await user.types([...asked, coordinator.organizationId]);
  expect(nobody).toMatchObject({ code: 2, out: '' });
  expect(nobody.error).toContain(`has no events of activity \`${coordinator.organizationId}\``);
});

test('what requires the store is refused, and so is an invalid point', async () => {
  expect(await user.types(['replay', ...ofProfile, '--decisions'])).toMatchObject({
    code: 2,
    error: 'error: --decisions makes decisions again, which takes the store: leave out --profile\n',
  });
  expect((await user.types(['replay', ...ofProfile, '--at', 'noon'])).error).toContain(
    '`noon` is not a point in history',
  );
  expect((await user.types(['replay', ...ofProfile, '--data-dir', 'x'])).code).toBe(2);
  expect((await user.types(['verify', ...ofProfile, '--progress', 'x'])).code).toBe(2);
});

test('verify says what it has checked, and what it could not', async () => {
  const events = await coordinator.events();
  const { code, out } = await user.types(['verify', ...ofProfile]);
  expect(code).toBe(0);
  expect(out).toMatch(
    new RegExp(
      `^OK: what the coordinator shows of organization ${coordinator.organizationId}: ${events.length} events; \\d+ stamps verified`,
    ),
  );
  expect(out).toContain(
    'Checked by the coordinator only: the links between events. Not checked: decisions, read models',
  );
  const stamped = events.filter(({ data }) => 'vote' in (data as object));
  expect(await user.json(['verify', ...ofProfile])).toMatchObject({
    events: events.length,
    stamps: stamped.length,
    redacted: 0,
    findings: [],
    last: { revision: String(events.at(-1)!.revision), hash: (events.at(-1)!.metadata as { hash: string }).hash },
  });
});

test.each([
  ['another request under a stamp', (text: string) => text.replace('Alice', 'Alise'), /its stamp does not verify/],
  [
    'an event left out',
    (text: string) =>
      text
        .replace(/\{"id":"[^"]+","revision":"1",.*?\}(?=,\{"id":)/, '')
        .replace('[,', '[')
        .replace(',,', ','),
    /revision 1 is missing/,
  ],
  [
    'another link at the end',
    (text: string) => text.replace(/"hash":"[0-9a-f]{64}"(?!.*"hash")/s, `"hash":"${'0'.repeat(64)}"`),
    /is not that of the state/,
  ],
])('a coordinator that shows %s is found out', async (_what, change, problem) => {
  // In front of the coordinator, as whoever controls it could be.
  const server = createServer((request, response) => {
    void (async () => {
      const body: Buffer[] = [];
      for await (const chunk of request) body.push(chunk as Buffer);
      const headers = { 'x-stamp': String(request.headers['x-stamp']), 'content-type': 'application/json' };
      const answer = await fetch(coordinator.url + request.url, { method: 'POST', headers, body: Buffer.concat(body) });
      const text = await answer.text();
      response.writeHead(answer.status, { 'content-type': 'application/json' });
      response.end(request.url?.endsWith('/list_events') ? change(text) : text);
    })();
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  try {
    await login(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, '--profile', 'liar', '--yes');
    const { code, out } = await user.types(['verify', '--profile', 'liar']);
    expect(out).toMatch(problem);
    expect(code).toBe(1);
  } finally {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  }
});
