/**
 * Ethereum accounts of one wallet, derived as the coordinator does (BIP-32, secp256k1, Keccak), beside `@scure/bip32` and noble
 * alone on the same seed: in one process, by turns, by its processor time. Then wallets with so many accounts, created over
 * HTTP on the durable SQLite store, by the processor time of all threads of the server. `node bench/addresses.mjs [accounts]
 * [turns]`, or `--quick` to see that it runs; ends with 1 where the two derive another address.
 */
import { createHash } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { HDKey } from '@scure/bip32';
import { addressOf } from '../dist/keyring/addresses.js';
import { publicKeyOf } from '../dist/keyring/curves.js';
import { Derivation } from '../dist/keyring/derivation.js';
import { readArguments } from '../scripts/arguments.mjs';
import { benchFolder, Coordinator, each, stamped, submit } from './load/coordinator.mjs';
import { median, printResult } from './load/result.mjs';

const asked = readArguments({ flags: ['quick'], values: { accounts: 100, turns: 15 } });
const accounts = asked.quick ? 5 : asked.accounts;
const turns = asked.quick ? 1 : asked.turns;
const account = "m/44'/60'/0'/0";
const curve = 'CURVE_SECP256K1';
const addressFormat = 'ADDRESS_FORMAT_ETHEREUM';
const indexes = Array.from({ length: accounts }, (_, index) => index);

function byOurs(seed) {
  const derivation = new Derivation(seed);
  const addresses = indexes.map((index) => {
    const privateKey = derivation.privateKey(curve, `${account}/${index}`);
    return addressOf(addressFormat, curve, publicKeyOf(curve, privateKey));
  });
  derivation.forget();
  return addresses;
}

/** The node of the account once, then each of its children. */
function byNoble(seed) {
  const node = HDKey.fromMasterSeed(seed).derive(account);
  return indexes.map((index) => {
    const point = secp256k1.Point.fromBytes(node.deriveChild(index).publicKey).toBytes(false);
    const hex = Buffer.from(keccak_256(point.subarray(1)).subarray(-20)).toString('hex');
    const digest = Buffer.from(keccak_256(Buffer.from(hex))).toString('hex');
    return `0x${Array.from(hex, (digit, at) => (Number.parseInt(digest[at], 16) > 7 ? digit.toUpperCase() : digit)).join('')}`;
  });
}

const figures = {};
let counter = 0;
const times = { ours: [], noble: [] };
const ways = { ours: byOurs, noble: byNoble };
for (let turn = -1; turn < turns; turn++) {
  const seed = createHash('sha512').update(String(counter++)).digest();
  const made = {};
  for (const [name, derive] of Object.entries(ways)) {
    const before = process.cpuUsage();
    made[name] = derive(seed);
    const { user, system } = process.cpuUsage(before);
    // The first one is for the compiler.
    if (turn >= 0) times[name].push((user + system) / accounts);
  }
  if (JSON.stringify(made.ours) !== JSON.stringify(made.noble)) {
    console.error(`different addresses: ${made.ours[0]} and ${made.noble[0]}`);
    process.exitCode = 1;
  }
}
const [ours, noble] = [median(times.ours), median(times.noble)];
const ratio = median(times.noble.map((time, turn) => time / times.ours[turn]));
console.log(`${accounts} Ethereum accounts of a wallet, µs of processor time each, median of ${turns} turns`);
console.log(`derived here ${ours.toFixed(0)}, by noble alone ${noble.toFixed(0)}: ${ratio.toFixed(1)} times as fast`);
Object.assign(figures, { 'µs each': ours, 'noble: µs each': noble, 'times as fast as noble': ratio });

const server = await Coordinator.start(benchFolder());
try {
  const { root } = server;
  const wallets = () =>
    Array.from({ length: turns }, () =>
      stamped(root, 'ACTIVITY_TYPE_CREATE_WALLET', {
        walletName: `Bench ${counter++}`,
        accounts: indexes.map((index) => ({
          ...{ curve, pathFormat: 'PATH_FORMAT_BIP32', path: `${account}/${index}`, addressFormat },
        })),
      }),
    );
  const create = (requests) => each(requests, 4, (request) => submit(server.url, request));
  await create(wallets());
  const before = server.processorMs();
  await create(wallets());
  const spent = ((server.processorMs() - before) * 1_000) / (turns * accounts);
  console.log(`in a wallet created over HTTP, with everything else: ${spent.toFixed(0)} µs each`);
  figures['over HTTP: µs each'] = spent;
} finally {
  await server.remove();
}
printResult('addresses', figures);
