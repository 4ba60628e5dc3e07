/**
 * otp_login through the auth proxy, which finds the account and asks for a stamp, beside the same activity submitted directly
 * with the root user's key: by turns, on one coordinator that serves both, on the durable SQLite store. Codes are verified
 * before any clock runs; each person logs in once each way. `node bench/logins.mjs [people] [at once]`, or `--quick` to see that it
 * runs. The server is a process of its own, and its processor time is that of all its threads.
 */
import { sign } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { generateApiKeyPair } from '../dist/testing/index.js';
import { readArguments } from '../scripts/arguments.mjs';
import { benchFolder, Coordinator, each, post, signer, stamped, submit } from './load/coordinator.mjs';
import { median, printResult } from './load/result.mjs';

const asked = readArguments({ flags: ['quick'], values: { people: 240, atOnce: 16 } });
const people = asked.quick ? 4 : asked.people;
const atOnce = asked.quick ? 2 : asked.atOnce;
const turns = asked.quick ? 1 : 6;

const server = await Coordinator.start(benchFolder(), {
  PROXY_RATE_LIMIT_PER_ADDRESS: '0',
  PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
  PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
  PROXY_RATE_LIMIT_PER_CONTACT: '0',
});
const { root } = server;

function newKey() {
  return generateApiKeyPair((count) => crypto.getRandomValues(new Uint8Array(count)));
}

/** What the holder of the key that a token is for signs to use it. */
function used({ publicKey, key }, verificationToken, type, what) {
  const { id } = JSON.parse(Buffer.from(verificationToken.split('.')[1], 'base64url'));
  const message = JSON.stringify({ ...what, tokenId: id, type });
  const signature = sign('sha256', Buffer.from(message), { key, dsaEncoding: 'ieee-p1363' }).toString('hex');
  return { publicKey, scheme: 'CLIENT_SIGNATURE_SCHEME_API_P256', message, signature };
}

function byProxy(endpoint, body) {
  const headers = { 'content-type': 'application/json', 'x-auth-proxy-config-id': root.authProxyConfigId };
  return post(server.url, { path: `/v1/${endpoint}`, body: JSON.stringify(body), headers });
}

/** Codes by the id of what was asked for, as the outbox has them so far. */
const codes = new Map();
const outbox = join(server.folder, 'outbox.jsonl');

async function codeOf(otpId) {
  for (const end = Date.now() + 30_000; Date.now() < end; await pause(20)) {
    const isThere = !codes.has(otpId) && existsSync(outbox);
    for (const line of isThere ? readFileSync(outbox, 'utf8').split('\n').slice(codes.size, -1) : []) {
      const message = JSON.parse(line);
      codes.set(message.otpId, /^\s*([0-9A-Z]{6,9})(?=\s*$| is your code)/m.exec(message.text)[1]);
    }
    if (codes.has(otpId)) return codes.get(otpId);
  }
  throw new Error(`the code of ${otpId} was not sent within half a minute`);
}

/** A token for the contact, and who may use it. */
async function verified(contact) {
  const holder = signer(newKey());
  const parent = (type, parameters) => submit(server.url, stamped(root, type, parameters));
  const { otpId } = await parent('ACTIVITY_TYPE_INIT_OTP_V2', { otpType: 'OTP_TYPE_EMAIL', contact, appName: 'Bench' });
  const code = { otpId, otpCode: await codeOf(otpId), publicKey: holder.publicKey };
  const { verificationToken } = await parent('ACTIVITY_TYPE_VERIFY_OTP', code);
  return { holder, verificationToken };
}

/** Somebody who has signed up, with a login for each way. */
async function person(contact) {
  const methods = { apiKeys: [], authenticators: [], oauthProviders: [] };
  const { holder, verificationToken } = await verified(contact);
  const signup = { signup: { ...methods, email: contact } };
  const { organizationId } = await byProxy('signup', {
    ...{ userName: contact, userEmail: contact, verificationToken, ...methods },
    clientSignature: used(holder, verificationToken, 'USAGE_TYPE_SIGNUP', signup),
  });
  const login = async () => {
    const token = await verified(contact);
    const publicKey = newKey().publicKey;
    const clientSignature = used(token.holder, token.verificationToken, 'USAGE_TYPE_LOGIN', { login: { publicKey } });
    return { verificationToken: token.verificationToken, publicKey, clientSignature };
  };
  return { organizationId, proxy: await login(), direct: await login() };
}

const ways = {
  proxy: ({ proxy }) => byProxy('otp_login', proxy),
  direct({ organizationId, direct }) {
    return submit(server.url, stamped({ ...root, organizationId }, 'ACTIVITY_TYPE_OTP_LOGIN', direct));
  },
};

/** Logins a second of some people, and the milliseconds of processor time of each. */
async function timed(way, some) {
  const before = server.processorMs();
  const begun = performance.now();
  await each(some, atOnce, ways[way]);
  const seconds = (performance.now() - begun) / 1_000;
  return { rate: some.length / seconds, ms: (server.processorMs() - before) / some.length };
}

try {
  const contacts = Array.from({ length: people }, (_, index) => `person-${index}@example.com`);
  const all = await each(contacts, atOnce, person);
  const share = Math.ceil(people / (turns + 1));
  const turn = (index) => all.slice(index * share, (index + 1) * share);
  for (const way of ['proxy', 'direct']) await timed(way, turn(0));
  const runs = { proxy: [], direct: [] };
  for (let index = 1; turn(index).length > 0; index++) {
    const order = index % 2 === 0 ? ['direct', 'proxy'] : ['proxy', 'direct'];
    for (const way of order) runs[way].push(await timed(way, turn(index)));
  }
  const figures = {};
  console.log(`otp_login, durable, ${atOnce} at once, ${people} people, medians of ${runs.proxy.length} turns`);
  for (const [way, name] of [
    ['direct', 'submitted directly'],
    ['proxy', 'through the proxy'],
  ]) {
    const [rate, ms] = [median(runs[way].map((run) => run.rate)), median(runs[way].map((run) => run.ms))];
    console.log(`${name}: ${rate.toFixed(0)} a second, ${ms.toFixed(2)} ms of processor time each`);
    Object.assign(figures, { [`${way}: /s`]: rate, [`${way}: ms, all threads`]: ms });
  }
  figures['proxy of direct, rate'] = figures['proxy: /s'] / figures['direct: /s'];
  figures['direct of proxy, processor time'] = figures['direct: ms, all threads'] / figures['proxy: ms, all threads'];
  console.log(`the proxy has ${figures['proxy of direct, rate'].toFixed(2)} of the rate`);
  printResult('logins', figures);
} finally {
  await server.remove();
}
