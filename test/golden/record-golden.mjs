/*
 * Records the golden streams: `npm run build && node test/golden/record-golden.mjs [name [folder]]`.
 *
 * Plays fixed stories against the built coordinator, over real HTTP with real stamps, with seeded keys, ids and a steered
 * clock: the same build records the same bytes. For each story it writes, compressed with brotli,
 *   <name>.v<n>.jsonl.br       the organization's stream, one event a line
 *   <name>.v<n>.state.json.br  what it folds into, maps as lists of [key, value]
 * From release 0.1.0 on, a recorded version is never recorded again, because organizations like it exist: this script leaves
 * existing files alone. When a release records something in a new way, raise `version` and record beside what is there.
 */
import {
  createCipheriv,
  createECDH,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  sign,
} from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { p256 } from '@noble/curves/nist.js';
import { apply, nothingLoaded } from '../../dist/ledger/loaded-organization.js';
import { sealMessage, sealTextBundle } from '../../dist/keyring/hpke.js';
import { apiKeyPairFromPrivate, send, stampBody, startCoordinator, submitPath } from '../../dist/testing/index.js';

const version = 1;

const sha256 = (data) => createHash('sha256').update(data).digest();
const base64url = (data) => Buffer.from(data).toString('base64url');

/** An Ed25519 key that follows from a seed. */
function ed25519(seed) {
  // PKCS #8 of an Ed25519 key (RFC 8410, section 7): a fixed head, then the 32 bytes.
  const pkcs8 = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), sha256(seed)]);
  return createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
}

/** An EdDSA passkey that follows from a seed. */
class Passkey {
  #signCount = 0;

  constructor(seed) {
    this.key = ed25519(`passkey ${seed}`);
    this.credentialId = sha256(`credential ${seed}`);
    this.origin = 'https://wallet.example.com';
  }

  #authenticatorData(flags) {
    const tail = Buffer.alloc(5);
    tail.writeUInt8(flags, 0);
    tail.writeUInt32BE(this.#signCount, 1);
    return Buffer.concat([sha256('wallet.example.com'), tail]);
  }

  #clientData(type, challenge) {
    return Buffer.from(JSON.stringify({ type, challenge, origin: this.origin, crossOrigin: false }));
  }

  register(authenticatorName) {
    const x = Buffer.from(createPublicKey(this.key).export({ format: 'jwk' }).x, 'base64url');
    // CBOR: { 1: 1, 3: -8, -1: 6, -2: x }
    const coseKey = Buffer.concat([Buffer.from('a4010103272006215820', 'hex'), x]);
    const idLength = Buffer.from([0, this.credentialId.length]);
    const attested = Buffer.concat([Buffer.alloc(16), idLength, this.credentialId, coseKey]);
    const authData = Buffer.concat([this.#authenticatorData(0x5d), attested]);
    // CBOR: { 'fmt': 'none', 'attStmt': {}, 'authData': bytes }
    const head = Buffer.from('a363666d74646e6f6e656761747453746d74a0686175746844617461', 'hex');
    const challenge = base64url(sha256(`challenge ${base64url(this.credentialId)}`));
    return {
      authenticatorName,
      challenge,
      attestation: {
        credentialId: base64url(this.credentialId),
        clientDataJson: base64url(this.#clientData('webauthn.create', challenge)),
        attestationObject: base64url(Buffer.concat([head, Buffer.from([0x58, authData.length]), authData])),
        transports: ['AUTHENTICATOR_TRANSPORT_INTERNAL'],
      },
    };
  }

  assert(body) {
    this.#signCount += 1;
    const clientData = this.#clientData('webauthn.get', base64url(sha256(body).toString('hex')));
    const authenticatorData = this.#authenticatorData(0x1d);
    return JSON.stringify({
      authenticatorData: base64url(authenticatorData),
      clientDataJson: base64url(clientData),
      credentialId: base64url(this.credentialId),
      signature: base64url(sign(null, Buffer.concat([authenticatorData, sha256(clientData)]), this.key)),
    });
  }
}

const type = (name) => `ACTIVITY_TYPE_${name}`;
const keyOf = ({ publicKey, curve }, apiKeyName = 'key') => ({ apiKeyName, publicKey, curveType: curve });
const refused = (promise, status) =>
  promise.then(
    () => Promise.reject(new Error('was not refused')),
    (error) => {
      if (error.status !== status) throw error;
    },
  );

/** Everybody who votes, and every way in which an activity ends. */
async function consensus(coordinator) {
  const { client, clock } = coordinator;
  const ann = await coordinator.createUser('Ann');
  const bob = await coordinator.createUser('Bob', { userEmail: 'bob@example.com' });
  const eve = await coordinator.createUser('Eve');
  const { result } = await client.submit(type('CREATE_USER_TAG'), {
    userTagName: 'finance',
    userIds: [ann.userId, bob.userId],
  });
  const tagId = result.createUserTagResult.userTagId;
  const twoOfFinance = `approvers.filter(user, user.tags.contains('${tagId}')).count() >= 2`;
  const policyId = await coordinator.createPolicy({
    policyName: 'Two of finance change users',
    condition: "activity.resource == 'USER' && activity.action == 'UPDATE'",
    consensus: twoOfFinance,
  });
  const anybody = await coordinator.createPolicy({
    policyName: 'Two of anybody do the rest',
    condition: "activity.resource in ['POLICY', 'CREDENTIAL']",
    consensus: 'approvers.count() >= 2',
  });

  clock.advance('1m');
  const renamed = await ann.client.submit(type('UPDATE_USER_NAME'), { userId: eve.userId, userName: 'Eva' });
  clock.advance('1m');
  await refused(eve.client.approve(renamed.fingerprint), 403);
  await bob.client.approve(renamed.fingerprint);

  const rejected = await ann.client.submit(type('UPDATE_USER_EMAIL'), { userId: bob.userId, userEmail: '' });
  await bob.client.reject(rejected.fingerprint);

  const lapsing = await ann.client.submit(type('UPDATE_USER_PHONE_NUMBER'), {
    userId: bob.userId,
    userPhoneNumber: '+41446681800',
  });
  clock.advance('25h');
  await bob.client.approve(lapsing.fingerprint);
  await ann.client.approve(lapsing.fingerprint);

  const failing = await bob.client.submit(type('DELETE_POLICY'), { policyId });
  await client.submit(type('UPDATE_POLICY'), { policyId, policyNotes: 'Changed in the first version of the verb' });
  await client.submit(type('DELETE_POLICIES'), { policyIds: [policyId] });
  await ann.client.approve(failing.fingerprint);

  await refused(ann.client.submit(type('DELETE_USERS'), { userIds: [bob.userId] }), 403);
  await client.submit(type('CREATE_POLICIES'), {
    policies: [
      { policyName: 'Nobody deletes tags', effect: 'EFFECT_DENY', condition: "activity.kind == 'DELETE_USER_TAGS'" },
      {
        policyName: 'Before the new year',
        effect: 'EFFECT_ALLOW',
        condition: "activity.kind == 'UPDATE_USER'",
        time: "time.now < Timestamp('2027-01-01T00:00:00Z')",
        notes: 'A policy with a time',
      },
    ],
  });
  await eve.client.submit(type('UPDATE_USER'), { userId: eve.userId, userName: 'Evelyn', userTagIds: [tagId] });

  await client.submit(type('DELETE_USERS'), { userIds: [bob.userId] });
  await client.submit(type('UPDATE_ROOT_QUORUM'), { threshold: 2, userIds: [coordinator.root.userId, ann.userId] });
  const named = await client.submit(type('UPDATE_ORGANIZATION_NAME'), { organizationName: 'Golden organization' });
  await ann.client.approve(named.fingerprint);
  const tags = await client.submit(type('DELETE_USER_TAGS'), { userTagIds: [tagId] });
  await ann.client.approve(tags.fingerprint);
  // Left waiting, with votes on it.
  const waiting = await eve.client.submit(type('DELETE_POLICY'), { policyId: anybody });
  await refused(eve.client.approve(waiting.fingerprint), 400);
}

/** Every kind of credential, coming and going; older versions of verbs; features. */
async function credentials(coordinator) {
  const { client, clock } = coordinator;
  const passkey = new Passkey('phone');
  const keys = [coordinator.newKey(), coordinator.newKey(), coordinator.newKey(), coordinator.newKey()];
  const { result } = await client.submit(type('CREATE_USERS_V4'), {
    users: [
      {
        userName: 'Ann',
        apiKeys: [keyOf(keys[0])],
        authenticators: [passkey.register('phone')],
        oauthProviders: [],
        userTags: [],
      },
      {
        userName: 'Bob',
        userEmail: 'bob@example.com',
        apiKeys: [keyOf(keys[1])],
        authenticators: [],
        oauthProviders: [],
        userTags: [],
      },
    ],
  });
  const [annId, bobId] = result.createUsersResult.userIds;
  const { curveType: _curve, ...firstKey } = keyOf(keys[2]);
  await client.submit(type('CREATE_USERS'), {
    users: [
      { userName: 'Old Joe', accessType: 'ACCESS_TYPE_ALL', apiKeys: [firstKey], authenticators: [], userTags: [] },
    ],
  });
  const byPasskey = async (name, parameters) => {
    const body = client.submitBody(type(name), parameters);
    const url = `${coordinator.url}${submitPath(type(name))}`;
    return (await send(url, body, { 'x-stamp-webauthn': passkey.assert(body) })).body.activity;
  };

  clock.advance('1m');
  const own = await byPasskey('CREATE_API_KEYS_V2', {
    userId: annId,
    apiKeys: [{ ...keyOf(keys[3], 'for an hour'), expirationSeconds: '3600' }],
  });
  await byPasskey('DELETE_API_KEYS', { userId: annId, apiKeyIds: own.result.createApiKeysResult.apiKeyIds });

  await coordinator.createPolicy({ policyName: 'Two', consensus: 'approvers.count() >= 2' });
  const bob = coordinator.clientFor(keys[1]);
  const tablet = new Passkey('tablet');
  const asked = await bob.submit(type('CREATE_AUTHENTICATORS_V2'), {
    userId: annId,
    authenticators: [tablet.register('tablet')],
  });
  const added = await byPasskey('APPROVE_ACTIVITY', { fingerprint: asked.fingerprint });
  const { authenticatorIds } = added.result.createAuthenticatorsResult;
  const twice = await bob.submit(type('CREATE_AUTHENTICATORS_V2'), {
    userId: annId,
    authenticators: [tablet.register('again')],
  });
  await byPasskey('APPROVE_ACTIVITY', { fingerprint: twice.fingerprint });
  await client.submit(type('DELETE_AUTHENTICATORS'), { userId: annId, authenticatorIds });

  const features = [
    ['FEATURE_NAME_WEBAUTHN_ORIGINS', 'https://wallet.example.com'],
    ['FEATURE_NAME_EMAIL_AUTH', ''],
  ];
  for (const [name, value] of features) await client.submit(type('SET_ORGANIZATION_FEATURE'), { name, value });
  await client.submit(type('REMOVE_ORGANIZATION_FEATURE'), { name: 'FEATURE_NAME_EMAIL_AUTH' });
  const tag = await client.submit(type('CREATE_USER_TAG'), { userTagName: 'staff', userIds: [annId] });
  const { userTagId } = tag.result.createUserTagResult;
  await client.submit(type('UPDATE_USER_TAG'), { userTagId, newUserTagName: 'everybody', addUserIds: [bobId] });
}

/** A secret for an import, sealed as a client does but with a seed. */
async function sealedTo(importBundle, secret) {
  const { targetPublic } = JSON.parse(Buffer.from(JSON.parse(importBundle).data, 'hex').toString());
  return JSON.stringify(await sealMessage(targetPublic, secret, undefined, sha256(`ephemeral ${targetPublic}`)));
}

const account = (chain, index, name) => ({
  ...{
    ethereum: {
      curve: 'CURVE_SECP256K1',
      path: `m/44'/60'/0'/0/${index}`,
      addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
    },
    solana: { curve: 'CURVE_ED25519', path: `m/44'/501'/${index}'/0'`, addressFormat: 'ADDRESS_FORMAT_SOLANA' },
    bitcoin: {
      curve: 'CURVE_SECP256K1',
      path: `m/86'/0'/0'/0/${index}`,
      addressFormat: 'ADDRESS_FORMAT_BITCOIN_MAINNET_P2TR',
    },
  }[chain],
  pathFormat: 'PATH_FORMAT_BIP32',
  ...(name ? { name } : {}),
});

/** `transfer(address,uint256)` of the token at an address: an unsigned transaction (EIP-1559) in hex, and its ABI. */
const token = {
  address: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
  abi: JSON.stringify([
    {
      type: 'function',
      name: 'transfer',
      inputs: [
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
      ],
    },
  ]),
  transfer:
    '02f86e0180843b9aca00850ba43b740083015f9094a0b86991c6218b36c1d19d4a2e9eb0ce3606eb4880b844a9059cbb' +
    '000000000000000000000000f39fd6e51aad88f6f4ce6ab8827279cfffb92266' +
    '00000000000000000000000000000000000000000000000000000000000f4240c0',
};

/** Wallets and private keys: made, imported, tagged, signed with, exported and deleted. */
async function keys(coordinator) {
  const { client, clock, newKey } = coordinator;
  const ann = await coordinator.createUser('Ann');
  const bob = await coordinator.createUser('Bob');
  const submit = async (name, parameters, by = client) => (await by.submit(type(name), parameters)).result;
  const targetPublicKey = () => newKey().publicKey;

  const made = await submit('CREATE_WALLET', {
    walletName: 'Treasury',
    accounts: [account('ethereum', 0, 'main'), account('solana', 0), account('bitcoin', 0)],
    mnemonicLength: 24,
  });
  const { walletId, addresses } = made.createWalletResult;
  const [ethereum, solana, bitcoin] = addresses;
  await submit('CREATE_WALLET_ACCOUNTS', { walletId, accounts: [account('ethereum', 1), account('ethereum', 2)] });
  await submit('CREATE_WALLET_ACCOUNTS', { walletId, accounts: [account('ethereum', 3)], persist: false });
  await submit('UPDATE_WALLET', { walletId, walletName: 'Cold treasury' });
  clock.advance('1m');

  const keyOptions = (privateKeyName, privateKeyTags = []) => ({
    privateKeyName,
    curve: 'CURVE_SECP256K1',
    privateKeyTags,
    addressFormats: ['ADDRESS_FORMAT_ETHEREUM', 'ADDRESS_FORMAT_COMPRESSED'],
  });
  const old = await submit('CREATE_PRIVATE_KEYS', { privateKeys: [keyOptions('first version')] });
  const [oldKey] = old.createPrivateKeysResult.privateKeyIds;
  const { privateKeyTagId: hot } = (
    await submit('CREATE_PRIVATE_KEY_TAG', { privateKeyTagName: 'hot', privateKeyIds: [oldKey] })
  ).createPrivateKeyTagResult;
  const { privateKeyTagId: spare } = (
    await submit('CREATE_PRIVATE_KEY_TAG', { privateKeyTagName: 'spare', privateKeyIds: [oldKey] })
  ).createPrivateKeyTagResult;
  const { privateKeys } = (
    await submit('CREATE_PRIVATE_KEYS_V2', {
      privateKeys: [
        keyOptions('hot', [hot]),
        { privateKeyName: 'plain', curve: 'CURVE_P256', privateKeyTags: [], addressFormats: [] },
      ],
    })
  ).createPrivateKeysResultV2;
  const [hotKey, plainKey] = privateKeys.map(({ privateKeyId }) => privateKeyId);
  await submit('UPDATE_PRIVATE_KEY_TAG', {
    privateKeyTagId: hot,
    newPrivateKeyTagName: 'warm',
    addPrivateKeyIds: [plainKey],
    removePrivateKeyIds: [oldKey],
  });
  await submit('DELETE_PRIVATE_KEY_TAGS', { privateKeyTagIds: [spare] });

  clock.advance('1m');
  const walletImport = async () => (await submit('INIT_IMPORT_WALLET', { userId: ann.userId })).initImportWalletResult;
  await walletImport();
  const mnemonic = Buffer.from('test test test test test test test test test test test junk');
  const imported = await submit('IMPORT_WALLET', {
    userId: ann.userId,
    walletName: 'Imported',
    encryptedBundle: await sealedTo((await walletImport()).importBundle, mnemonic),
    accounts: [account('ethereum', 0)],
  });
  const keyImport = (await submit('INIT_IMPORT_PRIVATE_KEY', { userId: ann.userId })).initImportPrivateKeyResult;
  const unreadable = { userId: ann.userId, curve: 'CURVE_ED25519', addressFormats: ['ADDRESS_FORMAT_SOLANA'] };
  await refused(submit('IMPORT_PRIVATE_KEY', { ...unreadable, privateKeyName: 'no', encryptedBundle: '{}' }), 400);
  const importedKey = await submit('IMPORT_PRIVATE_KEY', {
    ...unreadable,
    privateKeyName: 'imported',
    encryptedBundle: await sealedTo(keyImport.importBundle, sha256('imported key')),
  });
  // Left waiting.
  await submit('INIT_IMPORT_PRIVATE_KEY', { userId: bob.userId });

  const { smartContractInterfaceId } = (
    await submit('CREATE_SMART_CONTRACT_INTERFACE', {
      smartContractAddress: token.address,
      smartContractInterface: token.abi,
      type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
      label: 'A token',
      notes: 'Its transfers only',
    })
  ).createSmartContractInterfaceResult;
  await submit('CREATE_SMART_CONTRACT_INTERFACE', {
    smartContractAddress: 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
    smartContractInterface: JSON.stringify({
      version: '0.1.0',
      name: 'token',
      instructions: [{ name: 'close', accounts: [], args: [] }],
    }),
    type: 'SMART_CONTRACT_INTERFACE_TYPE_SOLANA',
    label: 'A program',
  });

  clock.advance('1m');
  const payload = { payload: 'ab'.repeat(32), encoding: 'PAYLOAD_ENCODING_HEXADECIMAL' };
  const digest = { ...payload, hashFunction: 'HASH_FUNCTION_NO_OP' };
  await submit('SIGN_RAW_PAYLOAD', { privateKeyId: plainKey, ...digest });
  await submit('SIGN_RAW_PAYLOAD_V2', { signWith: bitcoin, ...digest });
  await submit('SIGN_RAW_PAYLOADS', {
    signWith: solana,
    payloads: ['00', 'ff'],
    encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
    hashFunction: 'HASH_FUNCTION_NOT_APPLICABLE',
  });
  await coordinator.createPolicy({
    policyName: 'Small transfers of the token take two',
    condition:
      "activity.kind == 'SIGN_TRANSACTION' && eth.tx.function_name == 'transfer' && " +
      "eth.tx.contract_call_args['value'] <= 1000000 && wallet.label == 'Cold treasury'",
    consensus: 'approvers.count() >= 2',
  });
  const transaction = { type: 'TRANSACTION_TYPE_ETHEREUM', unsignedTransaction: token.transfer };
  const transfer = await ann.client.submit(type('SIGN_TRANSACTION_V2'), { signWith: ethereum, ...transaction });
  await bob.client.approve(transfer.fingerprint);
  await submit('DELETE_SMART_CONTRACT_INTERFACE', { smartContractInterfaceId });
  await refused(ann.client.submit(type('SIGN_TRANSACTION_V2'), { signWith: ethereum, ...transaction }), 403);

  await coordinator.createPolicy({
    policyName: 'Warm keys and the imported wallet are exported by two',
    condition: "activity.action == 'EXPORT' && activity.kind != 'EXPORT_WALLET_ACCOUNT'",
    consensus: 'approvers.count() >= 2',
  });
  const exporting = (privateKeyId) =>
    ann.client.submit(type('EXPORT_PRIVATE_KEY'), { privateKeyId, targetPublicKey: targetPublicKey() });
  const first = await exporting(hotKey);
  await bob.client.approve(first.fingerprint);
  const late = await exporting(oldKey);
  await submit('DELETE_PRIVATE_KEYS', { privateKeyIds: [oldKey], deleteWithoutExport: true });
  await bob.client.approve(late.fingerprint);
  await submit('DELETE_PRIVATE_KEYS', { privateKeyIds: [hotKey] });

  await submit('EXPORT_WALLET_ACCOUNT', { address: ethereum, targetPublicKey: targetPublicKey() });
  const importedWallet = imported.importWalletResult.walletId;
  await submit('EXPORT_WALLET', { walletId: importedWallet, targetPublicKey: targetPublicKey() });
  await submit('DELETE_WALLETS', { walletIds: [importedWallet] });
  const ids = (await client.query('list_wallet_accounts', { walletId })).accounts;
  const gone = ids.filter(({ address }) => address === ethereum || address === solana);
  await submit('DELETE_WALLET_ACCOUNTS', {
    walletAccountIds: gone.map(({ walletAccountId }) => walletAccountId),
    deleteWithoutExport: true,
  });
  // Left waiting, and what was imported stays.
  await exporting(importedKey.importPrivateKeyResult.privateKeyId);
}

/** Endpoints of webhooks: made, changed, stopped and deleted. Nothing is delivered: their subscriptions rest. */
async function webhooks({ client, createUser, createPolicy, clock }) {
  const ann = await createUser('Ann');
  const subscriptions = [
    { eventType: 'ACTIVITY_UPDATES', filtersJson: '{"statuses":["ACTIVITY_STATUS_FAILED"]}', isActive: false },
  ];
  const create = async (name) => {
    const asked = { url: 'https://93.184.215.14/hooks', name, subscriptions };
    const { result } = await client.submit(type('CREATE_WEBHOOK_ENDPOINT'), asked);
    return result.createWebhookEndpointResult.endpointId;
  };
  const update = (endpointId, changes, by = client) =>
    by.submit(type('UPDATE_WEBHOOK_ENDPOINT'), { endpointId, ...changes });
  const [main, spare, old] = [await create('main'), await create('spare'), await create('old')];
  await update(main, { url: 'https://93.184.215.14/other' });
  clock.advance('1m');
  await update(spare, { isActive: false });
  await createPolicy({
    policyName: 'Ann looks after one of them',
    condition: `activity.resource == 'WEBHOOK_ENDPOINT' && activity.params.endpoint_id == '${main}'`,
    consensus: `approvers.any(user, user.id == '${ann.userId}')`,
  });
  await update(main, { name: 'first', isActive: false }, ann.client);
  await update(main, { isActive: true }, ann.client);
  await refused(update(spare, { isActive: true }, ann.client), 403);
  await client.submit(type('DELETE_WEBHOOK_ENDPOINT'), { endpointId: old });
  await create('new');
}

/** The port of the provider below: its address is in the events, so that it must not be another at each recording. */
const issuerPort = 41_873;

/** An OpenID provider whose key follows from a seed. It signs whatever claims it is given. */
async function startIssuer() {
  const issuer = `http://127.0.0.1:${issuerPort}`;
  const key = ed25519('issuer');
  const jwk = { ...createPublicKey(key).export({ format: 'jwk' }), kid: 'k', alg: 'EdDSA', use: 'sig' };
  const server = createServer((request, response) => {
    const isKeys = request.url === '/jwks';
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isKeys ? { keys: [jwk] } : { issuer, jwks_uri: `${issuer}/jwks` }));
  });
  await new Promise((listening, failed) => server.once('error', failed).listen(issuerPort, '127.0.0.1', listening));
  const token = (claims, now) => {
    const iat = Math.floor(now / 1000);
    const payload = { iss: issuer, iat, exp: iat + 600, ...claims };
    const text = [{ alg: 'EdDSA', kid: 'k' }, payload].map((part) => base64url(JSON.stringify(part))).join('.');
    return `${text}.${base64url(sign(null, Buffer.from(text), key))}`;
  };
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { issuer, token, close };
}

/** The message that is wanted, once it was sent. */
async function messageOf({ messages }, isWanted) {
  for (let attempt = 0; attempt < 1000; attempt++) {
    const found = messages().find(isWanted);
    if (found) return found;
    await sleep(10);
  }
  throw new Error('no such message was sent');
}

const claimsOf = (token) => JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString());
/** A code of digits that is another one. */
const wrong = (code, by = 1) => String((Number(code) + by) % 1_000_000).padStart(6, '0');

/** What a client signs to use a verification token (docs/protocol.md, client signatures). */
function clientSignature({ privateKey, publicKey }, verificationToken, usage, asked) {
  const message = JSON.stringify({ ...asked, tokenId: claimsOf(verificationToken).id, type: usage });
  const signature = Buffer.from(p256.sign(Buffer.from(message), Buffer.from(privateKey, 'hex'))).toString('hex');
  return { publicKey, scheme: 'CLIENT_SIGNATURE_SCHEME_API_P256', message, signature };
}

/** Has codes sent and reads them, by type of activity. */
function codes(coordinator, submit) {
  return async (name, contact, more = {}) => {
    const otpType = contact.startsWith('+') ? 'OTP_TYPE_SMS' : 'OTP_TYPE_EMAIL';
    const looks = { appName: 'Acme', otpLength: 6, alphanumeric: false };
    const { otpId, otpEncryptionTargetBundle } = await submit(name, { otpType, contact, ...looks, ...more });
    const { text } = await messageOf(coordinator, (message) => message.otpId === otpId);
    const [, otpCode] = /^\s*([0-9A-Z]{6,9})(?=\s*$| is your code)/m.exec(text);
    return { otpId, otpCode, otpEncryptionTargetBundle };
  };
}

const submitting =
  ({ client }) =>
  async (name, parameters, by = client, options = {}) =>
    Object.values((await by.submit(type(name), parameters, options)).result)[0];

/** How people prove who they are: codes, verification tokens, identities at providers, invitations. */
async function people(coordinator) {
  const { clock, newKey } = coordinator;
  const submit = submitting(coordinator);
  const send = codes(coordinator, submit);
  const ann = await coordinator.createUser('Ann', { userEmail: 'ann@example.com' });
  const bob = await coordinator.createUser('Bob', { userEmail: 'bob@example.com' });
  const auth = ({ otpId, otpCode }, more = {}) =>
    submit('OTP_AUTH', { otpId, otpCode, targetPublicKey: newKey().publicKey, ...more });

  const locked = await send('INIT_OTP_AUTH_V3', 'ann@example.com');
  for (const by of [1, 2, 3]) await refused(auth({ ...locked, otpCode: wrong(locked.otpCode, by) }), 400);
  await refused(auth(locked), 400);
  const guessed = await send('INIT_OTP_AUTH_V3', 'ann@example.com', { expirationSeconds: '600' });
  await refused(auth({ ...guessed, otpCode: wrong(guessed.otpCode) }), 400);
  await auth(guessed);
  await auth(await send('INIT_OTP_AUTH_V2', 'ann@example.com', { appName: undefined }), {
    apiKeyName: 'for an hour',
    expirationSeconds: '3600',
    invalidateExisting: true,
  });
  clock.advance('3m');
  // The oldest of four is pushed out, and all have ended when the next is sent.
  for (const more of [{}, {}, {}, { userIdentifier: 'another device' }]) {
    await send('INIT_OTP_AUTH_V3', 'ann@example.com', more);
  }
  clock.advance('10m');
  await send('INIT_OTP_AUTH', 'ann@example.com', {
    appName: undefined,
    otpLength: undefined,
    alphanumeric: undefined,
  });

  const phone = '+13214567890';
  const device = newKey();
  const proof = await send('INIT_OTP_V2', phone);
  const verify = (otpCode) => submit('VERIFY_OTP', { otpId: proof.otpId, otpCode, publicKey: device.publicKey });
  await refused(verify(wrong(proof.otpCode)), 400);
  const { verificationToken } = await verify(proof.otpCode);
  const change = () =>
    submit('UPDATE_USER_PHONE_NUMBER', { userId: ann.userId, userPhoneNumber: phone, verificationToken });
  await change();
  await refused(change(), 400);
  const login = { publicKey: device.publicKey };
  await submit('OTP_LOGIN_V2', {
    verificationToken,
    ...login,
    clientSignature: clientSignature(device, verificationToken, 'USAGE_TYPE_LOGIN', { login }),
  });
  const sealed = await send('INIT_OTP_V3', 'bob@example.org', { expirationSeconds: '60' });
  const bundle = JSON.stringify({ otp_code: sealed.otpCode, public_key: bob.key.publicKey });
  const proved = await submit('VERIFY_OTP_V2', {
    otpId: sealed.otpId,
    encryptedOtpBundle: await sealedTo(sealed.otpEncryptionTargetBundle, Buffer.from(bundle)),
    expirationSeconds: '600',
  });
  await coordinator.createPolicy({
    policyName: 'Two change an address',
    condition: "activity.kind == 'UPDATE_USER_EMAIL'",
    consensus: 'approvers.count() >= 2',
  });
  const { verificationToken: address } = proved;
  const asked = await bob.client.submit(type('UPDATE_USER_EMAIL'), {
    userId: bob.userId,
    userEmail: 'bob@example.org',
    verificationToken: address,
  });
  await ann.client.approve(asked.fingerprint);
  clock.advance('1m');
  await submit('EMAIL_AUTH_V3', {
    email: 'bob@example.org',
    targetPublicKey: newKey().publicKey,
    emailCustomization: { appName: 'Acme' },
  });

  const provider = await startIssuer();
  try {
    const token = (claims) => provider.token({ aud: 'app', sub: 'ann', ...claims }, clock.now());
    const given = await submit('CREATE_OAUTH_PROVIDERS_V2', {
      userId: ann.userId,
      oauthProviders: [
        { providerName: 'web', oidcToken: token({}) },
        { providerName: 'phone', oidcToken: token({ aud: 'phone app' }) },
      ],
    });
    await submit('CREATE_OAUTH_PROVIDERS', {
      userId: bob.userId,
      oauthProviders: [{ providerName: 'web', oidcToken: token({ sub: 'bob' }) }],
    });
    clock.advance('1m');
    const nonceOf = (key) => sha256(key).toString('hex');
    const key = newKey().publicKey;
    await submit('OAUTH_LOGIN', { publicKey: key, oidcToken: token({ nonce: nonceOf(key) }), expirationSeconds: '600' });
    const target = newKey().publicKey;
    await submit('OAUTH', { targetPublicKey: target, oidcToken: token({ nonce: nonceOf(target), sub: 'bob' }) });
    await submit('DELETE_OAUTH_PROVIDERS', { userId: ann.userId, providerIds: given.providerIds.slice(1) });
    const gone = newKey().publicKey;
    const lost = token({ nonce: nonceOf(gone), aud: 'phone app' });
    await refused(submit('OAUTH_LOGIN', { publicKey: gone, oidcToken: lost }), 400);
  } finally {
    provider.close();
  }
  await submit('STAMP_LOGIN', { publicKey: newKey().publicKey, expirationSeconds: '60' }, ann.client);
  await submit('CREATE_READ_WRITE_SESSION_V2', { targetPublicKey: newKey().publicKey }, ann.client);

  const invite = async (receiverUserName, accessType) => {
    const receiverUserEmail = `${receiverUserName.toLowerCase()}@example.com`;
    const { invitationIds } = await submit('CREATE_INVITATIONS', {
      invitations: [
        {
          receiverUserName,
          receiverUserEmail,
          receiverUserTags: [],
          accessType,
          senderUserId: ann.userId,
        },
      ],
    });
    const { text } = await messageOf(coordinator, ({ to }) => to === receiverUserEmail);
    const link = new URLSearchParams(new URL(/^\S+#\S+$/m.exec(text)[0]).hash.slice(1));
    return { invitationId: invitationIds[0], link };
  };
  const eve = await invite('Eve', 'ACCESS_TYPE_API');
  const joe = await invite('Joe', 'ACCESS_TYPE_ALL');
  await submit('DELETE_INVITATION', { invitationId: joe.invitationId });
  const byLink = coordinator.clientFor(apiKeyPairFromPrivate(eve.link.get('privateKey')));
  await submit('ACCEPT_INVITATION', { invitationId: eve.invitationId, apiKeys: [keyOf(newKey())] }, byLink);
  await invite('Max', 'ACCESS_TYPE_WEB');
  clock.advance('30d');
  // Max has waited too long; what is sent last is left open.
  await invite('Zoe', 'ACCESS_TYPE_WEB');
  await send('INIT_OTP_V3', phone);
}

/** A client secret as published clients seal it (docs/protocol.md, secrets of clients), but with a seed. */
function sealedClientSecret(secret, recipient) {
  const to = Buffer.from(recipient, 'hex');
  const ephemeral = createECDH('prime256v1');
  ephemeral.setPrivateKey(sha256(`ephemeral ${secret}`));
  const point = ephemeral.getPublicKey();
  const preimage = Buffer.concat([point, to, ephemeral.computeSecret(to)]);
  const key = createHmac('sha512', preimage).update('qos_encryption_hmac_message').digest().subarray(0, 32);
  const nonce = sha256(`nonce ${secret}`).subarray(0, 12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  const lengthOf = ({ length }) => Buffer.from([length]);
  cipher.setAAD(Buffer.concat([point, lengthOf(point), to, lengthOf(to)]));
  const sealed = Buffer.concat([cipher.update(secret), cipher.final(), cipher.getAuthTag()]);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(sealed.length);
  return Buffer.concat([nonce, point, length, sealed]).toString('hex');
}

/** What an organization keeps to work with others: applications and accounts at providers, the auth proxy. */
async function connections(coordinator) {
  const { clock, url } = coordinator;
  const submit = submitting(coordinator);
  const ann = await coordinator.createUser('Ann');
  const bob = await coordinator.createUser('Bob');
  const { oauthSecretEncryption, onRampEncryption } = await (await fetch(`${url}/public/v1/discovery/keys`)).json();

  const application = (clientId, secret, provider = 'OAUTH2_PROVIDER_X') => ({
    provider,
    clientId,
    encryptedClientSecret: sealedClientSecret(secret, oauthSecretEncryption),
  });
  const { oauth2CredentialId: web } = await submit('CREATE_OAUTH2_CREDENTIAL', application('web', 'a secret'));
  const { oauth2CredentialId: old } = await submit(
    'CREATE_OAUTH2_CREDENTIAL',
    application('old', 'old secret', 'OAUTH2_PROVIDER_DISCORD'),
  );
  await submit('CREATE_OAUTH2_CREDENTIAL', application('phone', 'another secret'));
  await refused(submit('CREATE_OAUTH2_CREDENTIAL', application('web', 'too many')), 409);
  await submit('UPDATE_OAUTH2_CREDENTIAL', { oauth2CredentialId: web, ...application('web 2', 'rotated') });
  await coordinator.createPolicy({
    policyName: 'Two look after what is kept',
    condition: "activity.action == 'UPDATE' && activity.resource in ['AUTH', 'ON_RAMP_CREDENTIALS', 'AUTH_PROXY']",
    consensus: 'approvers.count() >= 2',
  });
  clock.advance('1m');
  const update = (oauth2CredentialId, ...rest) =>
    ann.client.submit(type('UPDATE_OAUTH2_CREDENTIAL'), { oauth2CredentialId, ...application(...rest) });
  await bob.client.approve((await update(web, 'web 3', 'rotated again')).fingerprint);
  const late = await update(old, 'old 2', 'too late');
  await submit('DELETE_OAUTH2_CREDENTIAL', { oauth2CredentialId: old });
  await bob.client.approve(late.fingerprint);

  const sealed = (text) => sealTextBundle(onRampEncryption, Buffer.from(text), undefined, sha256(`ephemeral ${text}`));
  const alpha = {
    onrampProvider: 'FIAT_ON_RAMP_PROVIDER_ALPHA',
    projectId: 'project',
    publishableApiKey: 'pk_alpha',
    encryptedSecretApiKey: await sealed('sk_alpha'),
    encryptedPrivateApiKey: await sealed('private alpha'),
  };
  const beta = {
    onrampProvider: 'FIAT_ON_RAMP_PROVIDER_BETA',
    publishableApiKey: 'pk_beta',
    encryptedSecretApiKey: await sealed('sk_beta'),
  };
  const { fiatOnRampCredentialId: first } = await submit('CREATE_FIAT_ON_RAMP_CREDENTIAL', {
    ...alpha,
    sandboxMode: true,
  });
  const { fiatOnRampCredentialId: second } = await submit('CREATE_FIAT_ON_RAMP_CREDENTIAL', beta);
  await submit('UPDATE_FIAT_ON_RAMP_CREDENTIAL', {
    fiatOnrampCredentialId: first,
    ...alpha,
    publishableApiKey: 'pk_alpha_2',
    encryptedSecretApiKey: await sealed('sk_alpha_2'),
  });
  const changed = await ann.client.submit(type('UPDATE_FIAT_ON_RAMP_CREDENTIAL'), {
    fiatOnrampCredentialId: first,
    ...beta,
  });
  await bob.client.approve(changed.fingerprint);
  await submit('DELETE_FIAT_ON_RAMP_CREDENTIAL', { fiatOnrampCredentialId: second });

  clock.advance('1m');
  await submit('UPDATE_AUTH_PROXY_CONFIG', {
    allowedOrigins: ['https://app.example.com'],
    allowedAuthMethods: ['email', 'passkey', 'oauth'],
    sendFromEmailAddress: 'no-reply@example.com',
    sendFromEmailSenderName: 'Acme',
    emailCustomizationParams: { appName: 'Acme', magicLinkTemplate: 'https://app.example.com/%s' },
    walletKitSettings: { enabledSocialProviders: ['google'], oauthClientIds: { google: 'client' } },
    otpExpirationSeconds: 600,
    verificationTokenExpirationSeconds: 600,
    sessionExpirationSeconds: 3600,
    otpLength: 6,
    otpAlphanumeric: false,
    socialLinkingClientIds: ['client'],
  });
  const looser = await ann.client.submit(type('UPDATE_AUTH_PROXY_CONFIG'), {
    sendFromEmailAddress: '',
    smsCustomizationParams: { template: 'Acme: {{.OtpCode}}' },
    verificationTokenRequiredForGetAccountPii: false,
  });
  await bob.client.approve(looser.fingerprint);
  // One that is enabled stays as it is.
  await submit('ENABLE_AUTH_PROXY', {});
  await submit('DISABLE_AUTH_PROXY', {});
  await refused(submit('UPDATE_AUTH_PROXY_CONFIG', { otpLength: 9 }), 400);
  await submit('ENABLE_AUTH_PROXY', {});
  await submit('UPDATE_AUTH_PROXY_CONFIG', { otpLength: 9 });
  // Left waiting.
  await ann.client.submit(type('UPDATE_AUTH_PROXY_CONFIG'), { captchaEnabled: false });
}

const [only, folder] = process.argv.slice(2);
const base = folder === undefined ? import.meta.url : pathToFileURL(`${folder}/`);
const fileOf = (name, end) => fileURLToPath(new URL(`${name}.v${version}.${end}.br`, base));

/** The largest window, because the events of a stream repeat each other. */
const compressed = (text) =>
  brotliCompressSync(text, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS },
  });

function write(name, events) {
  const loaded = nothingLoaded();
  const lines = [];
  for (const event of events) {
    apply(loaded, event);
    const { stream, revision, position, id, type: eventType, data, metadata } = event;
    lines.push(JSON.stringify({ stream, revision, position: String(position), id, type: eventType, data, metadata }));
  }
  const asLists = (_key, value) => (value instanceof Map ? [...value] : value);
  writeFileSync(fileOf(name, 'jsonl'), compressed(`${lines.join('\n')}\n`));
  writeFileSync(fileOf(name, 'state.json'), compressed(JSON.stringify(loaded.organization, asLists)));
  console.log(`${name}.v${version}: ${lines.length} events`);
}

async function record(name, story) {
  if (existsSync(fileOf(name, 'jsonl'))) {
    console.log(`${name}.v${version} is there already and stays as it is`);
    return;
  }
  const coordinator = await startCoordinator({
    seed: `golden ${name}`,
    at: new Date('2026-03-01T12:00:00Z'),
    settings: settingsOf[name] ?? {},
  });
  try {
    // A story may name sub-organizations whose streams are recorded too: by the end of their file's name, their id.
    const others = (await story(coordinator)) ?? {};
    write(name, await coordinator.events());
    for (const [other, organizationId] of Object.entries(others)) {
      write(`${name}-${other}`, await coordinator.events(`organization-${organizationId}`));
    }
  } finally {
    await coordinator.close();
  }
}

/** Activities that ask for app proofs: done at once, voted on, still waiting. */
async function proofs(coordinator) {
  const { client, clock } = coordinator;
  const proved = { generateAppProofs: true };
  const ann = await coordinator.createUser('Ann');
  const bob = await coordinator.createUser('Bob');
  await coordinator.createPolicy({
    policyName: 'Two change users',
    condition: "activity.resource == 'USER' && activity.action == 'UPDATE'",
    consensus: 'approvers.count() >= 2',
  });
  const account = (index) => ({
    curve: 'CURVE_SECP256K1',
    pathFormat: 'PATH_FORMAT_BIP32',
    path: `m/44'/60'/0'/0/${index}`,
    addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
  });
  const made = await client.submit(type('CREATE_WALLET'), { walletName: 'Proved', accounts: [account(0)] }, proved);
  const { walletId } = made.result.createWalletResult;
  const more = (accounts, rest = {}) =>
    client.submit(type('CREATE_WALLET_ACCOUNTS'), { walletId, accounts, ...rest }, proved);
  await more([account(1), account(2)]);
  await more([account(3)], { persist: false });
  await client.submit(type('CREATE_USER_TAG'), { userTagName: 'plain', userIds: [] }, { generateAppProofs: false });
  for (const userName of ['Anne', 'Anna', 'Ann']) {
    clock.advance('1m');
    const renamed = await ann.client.submit(type('UPDATE_USER_NAME'), { userId: ann.userId, userName }, proved);
    clock.advance('1m');
    await bob.client.approve(renamed.fingerprint);
  }
  clock.advance('1m');
  await ann.client.submit(type('UPDATE_USER_NAME'), { userId: bob.userId, userName: 'Rob' }, proved);
}

/** A stamp by a key that a verification token is bound to. */
function attestedStamp(body, key, verificationToken) {
  const { signature } = JSON.parse(Buffer.from(stampBody(body, key).headerValue, 'base64url').toString());
  const { publicKey } = key;
  const scheme = 'STAMP_ATTESTED_SCHEME_P256_VERIFICATION_TOKEN';
  return base64url(JSON.stringify({ publicKeyAttestation: verificationToken, scheme, publicKey, signature }));
}

/** A parent that signs people up and logs them in, and the sub-organization of one of them, until it is deleted. */
async function family(coordinator) {
  const { client, clock, newKey } = coordinator;
  const submit = submitting(coordinator);
  const backend = await coordinator.createUser('Backend');
  await coordinator.createPolicy({
    policyName: 'The backend signs people up',
    condition: "activity.resource in ['OTP', 'ORGANIZATION'] && activity.action in ['CREATE', 'VERIFY']",
    consensus: `approvers.any(user, user.id == '${backend.userId}')`,
  });
  const byBackend = (name, parameters, options) => submit(name, parameters, backend.client, options);
  const sendHere = codes(coordinator, byBackend);
  /** A verification token for a contact, bound to a key. */
  const prove = async (contact, key) => {
    const { otpId, otpCode } = await sendHere('INIT_OTP_V2', contact, { userIdentifier: key.publicKey });
    return (await byBackend('VERIFY_OTP', { otpId, otpCode, publicKey: key.publicKey })).verificationToken;
  };
  const none = { apiKeys: [], authenticators: [], oauthProviders: [] };
  const wallet = { walletName: 'First', accounts: [account('ethereum', 0)] };

  const device = newKey();
  const mail = 'ann@example.com';
  const verificationToken = await prove(mail, device);
  const user = { ...none, apiKeys: [keyOf(device)] };
  const signup = (subOrganizationName) =>
    byBackend('CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName,
      rootUsers: [{ userName: 'Ann', userEmail: mail, ...user }],
      rootQuorumThreshold: 1,
      wallet,
      verificationToken,
      clientSignature: clientSignature(device, verificationToken, 'USAGE_TYPE_SIGNUP', {
        signupV2: { ...user, email: mail },
      }),
    });
  const { subOrganizationId, rootUserIds } = await signup("Ann's");
  await refused(signup('Another'), 400);
  clock.advance('1m');
  const { curveType: _curve, ...oldKey } = keyOf(newKey());
  await submit('CREATE_SUB_ORGANIZATION_V4', {
    subOrganizationName: 'A fund',
    rootUsers: [
      { userName: 'Bob', userEmail: 'bob@example.com', apiKeys: [oldKey], authenticators: [] },
      { userName: 'Eve', apiKeys: [], authenticators: [new Passkey('laptop').register('laptop')] },
    ],
    rootQuorumThreshold: 2,
    disableEmailAuth: true,
  });

  const there = { organizationId: subOrganizationId };
  const sendThere = codes(coordinator, (name, parameters) => byBackend(name, parameters, there));
  const asked = { otpType: 'OTP_TYPE_EMAIL', contact: mail, appName: 'Acme' };
  await refused(byBackend('INIT_OTP_AUTH_V3', asked, there), 403);
  await coordinator.createPolicy({
    policyName: 'The backend logs people in',
    condition: "activity.resource == 'AUTH' && activity.action == 'CREATE'",
    consensus: `approvers.any(user, user.id == '${backend.userId}')`,
  });
  const code = await sendThere('INIT_OTP_AUTH_V3', mail);
  const target = () => ({ targetPublicKey: newKey().publicKey });
  await refused(byBackend('OTP_AUTH', { otpId: code.otpId, otpCode: wrong(code.otpCode), ...target() }, there), 400);
  await byBackend('OTP_AUTH', { otpId: code.otpId, otpCode: code.otpCode, ...target() }, there);
  await byBackend('EMAIL_AUTH_V3', { email: mail, ...target(), emailCustomization: { appName: 'Acme' } }, there);
  clock.advance('1m');
  const phone = newKey();
  const token = await prove(mail, phone);
  const login = { publicKey: phone.publicKey };
  const signature = clientSignature(phone, token, 'USAGE_TYPE_LOGIN', { login });
  const byToken = () => byBackend('OTP_LOGIN_V2', { verificationToken: token, ...login, clientSignature: signature }, there);
  await byToken();
  await refused(byToken(), 400);

  // From here on Ann acts for herself.
  const tablet = newKey();
  const own = coordinator.clientFor(tablet, subOrganizationId);
  const body = own.submitBody(type('STAMP_LOGIN'), { publicKey: tablet.publicKey });
  const stamp = attestedStamp(body, tablet, await prove(mail, tablet));
  await send(`${coordinator.url}${submitPath(type('STAMP_LOGIN'))}`, body, { 'x-stamp-attested': stamp });
  const byAnn = coordinator.clientFor(device, subOrganizationId);
  const as = (name, parameters, by = byAnn) => submit(name, parameters, by);
  await as('CREATE_WALLET', { ...wallet, walletName: 'Second', accounts: [account('solana', 0)] }, own);
  const passkey = new Passkey('watch');
  await as('CREATE_AUTHENTICATORS_V2', { userId: rootUserIds[0], authenticators: [passkey.register('watch')] });
  await as('REMOVE_ORGANIZATION_FEATURE', { name: 'FEATURE_NAME_SMS_AUTH' });
  await as('UPDATE_USER_NAME', { userId: rootUserIds[0], userName: 'Anna' });
  // The parent's users have no word in it.
  await refused(client.submit(type('UPDATE_USER_NAME'), { userId: rootUserIds[0], userName: 'Nan' }, there), 400);
  clock.advance('1m');
  await refused(as('DELETE_SUB_ORGANIZATION', {}), 400);
  await as('DELETE_SUB_ORGANIZATION', { deleteWithoutExport: true });
  await refused(as('UPDATE_USER_NAME', { userId: rootUserIds[0], userName: 'Nobody' }), 404);
  return { child: subOrganizationId };
}

/** Contacts that a parent asserts, that tokens prove, and that the parent's members release. */
async function contacts(coordinator) {
  const { clock, newKey } = coordinator;
  const submit = submitting(coordinator);
  const backend = await coordinator.createUser('Backend');
  await coordinator.createPolicy({
    policyName: 'The backend makes accounts, logs people in and releases contacts',
    condition: "activity.resource in ['OTP', 'ORGANIZATION', 'AUTH', 'CONTACT']",
    consensus: `approvers.any(user, user.id == '${backend.userId}')`,
  });
  const byBackend = (name, parameters, options) => submit(name, parameters, backend.client, options);
  const send = codes(coordinator, byBackend);
  const [mail, number] = ['ann@example.com', '+13214567890'];
  const none = { apiKeys: [], authenticators: [], oauthProviders: [] };
  const found = (more) =>
    byBackend('CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: 'Accounts',
      rootUsers: [{ userName: 'Ann', userEmail: mail, userPhoneNumber: number, ...none, ...more }],
      rootQuorumThreshold: 1,
    });
  const { subOrganizationId, rootUserIds } = await found({});
  const [userId] = rootUserIds;
  const there = { organizationId: subOrganizationId };
  /** A verification token for a contact, bound to a key if there is one. */
  const prove = async (contact, bound) => {
    const { otpId, otpCode } = await send('INIT_OTP_V2', contact);
    return (await byBackend('VERIFY_OTP', { otpId, otpCode, ...bound })).verificationToken;
  };
  const login = async (contact, key) => {
    const asked = { publicKey: key.publicKey };
    const verificationToken = await prove(contact, asked);
    const signature = clientSignature(key, verificationToken, 'USAGE_TYPE_LOGIN', { login: asked });
    return byBackend('OTP_LOGIN_V2', { verificationToken, ...asked, clientSignature: signature }, there);
  };
  const device = newKey();
  await login(mail, device);
  await byBackend(
    'OTP_LOGIN',
    { verificationToken: await prove(number, {}), publicKey: newKey().publicKey },
    there,
  );
  const ann = coordinator.clientFor(device, subOrganizationId);
  const byAnn = (name, parameters) => submit(name, parameters, ann);
  await refused(ann.submit(type('RELEASE_CONTACT'), { contact: number }), 401);
  clock.advance('1m');
  await byBackend('RELEASE_CONTACT', { contact: number }, there);
  await refused(byBackend('RELEASE_CONTACT', { contact: number }, there), 404);
  await refused(byBackend('RELEASE_CONTACT', { contact: mail }, there), 400);
  clock.advance('3m');
  const tablet = newKey();
  await refused(login(number, tablet), 404);
  await byAnn('UPDATE_USER_PHONE_NUMBER', { userId, userPhoneNumber: number });
  await byAnn('CREATE_API_KEYS_V2', { userId, apiKeys: [keyOf(newKey())] });
  await byBackend('RELEASE_CONTACT', { contact: mail }, there);
  await byAnn('UPDATE_USER_NAME', { userId, userName: 'Anna' });
  clock.advance('3m');
  await byAnn('UPDATE_USER_PHONE_NUMBER', {
    userId,
    userPhoneNumber: number,
    verificationToken: await prove(number, {}),
  });
  await login(number, tablet);
  await byAnn('UPDATE_USER_EMAIL', { userId, userEmail: 'anna@example.com' });
  await byAnn('CREATE_USER_TAG', { userTagName: 'owner', userIds: [userId] });
  await byAnn('CREATE_WALLET', { walletName: 'First', accounts: [account('ethereum', 0)] });
  await byBackend('RELEASE_CONTACT', { contact: 'anna@example.com', leaveUnreachable: true }, there);
  return { child: subOrganizationId };
}

/** So many notes to be signed, each in another domain. */
const typedPayloads = (signWith, count) => ({
  signWith,
  payloads: Array.from({ length: count }, (_, index) =>
    JSON.stringify({
      types: { EIP712Domain: [{ name: 'name', type: 'string' }], Note: [{ name: 'text', type: 'string' }] },
      primaryType: 'Note',
      domain: { name: `app ${index}` },
      message: { text: '' },
    }),
  ),
  encoding: 'PAYLOAD_ENCODING_EIP712',
  hashFunction: 'HASH_FUNCTION_NO_OP',
});

/** Policies and questions about votes whose steps do not suffice, and others whose steps just do. */
async function budgets(coordinator) {
  const people = [];
  for (let index = 0; index < 14; index += 1) people.push(await coordinator.createUser(`Person ${index}`));
  const [ann] = people;
  const renamed = "activity.type == 'ACTIVITY_TYPE_UPDATE_USER_NAME'";
  const has = ({ userId }) => `approvers.any(user, user.id == '${userId}')`;
  for (const count of [2, 3, 4, 5, 6, 7]) {
    await coordinator.createPolicy({
      policyName: `${count} people and no others`,
      condition: renamed,
      consensus: people.map((one, index) => (index < count ? has(one) : `!${has(one)}`)).join(' && '),
    });
  }
  await coordinator.createPolicy({ policyName: 'Two of anybody', condition: renamed, consensus: 'approvers.count() >= 2' });
  await ann.client.submit(type('UPDATE_USER_NAME'), { userId: ann.userId, userName: 'Anna' });

  const signed = await askedForEachPayload(coordinator, ann);
  await signed(5);
  // Left waiting: each is in doubt.
  await signed(200);
}

/** Limits of the operator and of a parent, up to which everything goes. */
async function limits(coordinator) {
  const { client, clock } = coordinator;
  const submit = submitting(coordinator);
  const ann = await coordinator.createUser('Ann');
  const noCredentials = { apiKeys: [], authenticators: [], oauthProviders: [] };
  const users = (...names) => ({ users: names.map((userName) => ({ userName, ...noCredentials, userTags: [] })) });
  await submit('CREATE_USERS_V4', users('Bob', 'Eve'));
  await refused(submit('CREATE_USERS_V4', users('Joe')), 429);
  const { walletId } = await submit('CREATE_WALLET', { walletName: 'First', accounts: [account('ethereum', 0)] });
  await refused(submit('CREATE_WALLET_ACCOUNTS', { walletId, accounts: [account('ethereum', 1), account('solana', 0)] }), 429);
  await submit('CREATE_WALLET_ACCOUNTS', { walletId, accounts: [account('ethereum', 1)] });
  await submit('INIT_IMPORT_WALLET', { userId: ann.userId });
  await submit('INIT_IMPORT_WALLET', { userId: ann.userId });
  await refused(submit('INIT_IMPORT_WALLET', { userId: coordinator.root.userId }), 429);

  const feature = { name: 'FEATURE_NAME_SUB_ORGANIZATION_LIMITS' };
  await submit('SET_ORGANIZATION_FEATURE', { ...feature, value: 'users=2, userTags=1' });
  const key = coordinator.newKey();
  const { subOrganizationId } = await submit('CREATE_SUB_ORGANIZATION_V8', {
    subOrganizationName: 'A fund',
    rootUsers: [{ userName: 'Joe', ...noCredentials, apiKeys: [keyOf(key)] }],
    rootQuorumThreshold: 1,
  });
  const own = coordinator.clientFor(key, subOrganizationId);
  const there = (name, parameters) => submit(name, parameters, own);
  await there('CREATE_USERS_V4', users('Kim'));
  await refused(there('CREATE_USERS_V4', users('Lee')), 429);
  await there('CREATE_USER_TAG', { userTagName: 'one', userIds: [] });
  await refused(there('CREATE_USER_TAG', { userTagName: 'two', userIds: [] }), 429);
  await submit('REMOVE_ORGANIZATION_FEATURE', feature);
  clock.advance('1m');
  for (const letter of 'abcdefg') await there('CREATE_USER_TAG', { userTagName: letter.repeat(128), userIds: [] });
  for (const walletName of ['First', 'Second']) await there('CREATE_WALLET', { walletName, accounts: [] });
  await refused(there('CREATE_WALLET', { walletName: 'Third', accounts: [] }), 429);

  // What waits is decided by the limits of the day on which the last vote comes.
  await coordinator.createPolicy({
    policyName: 'Two create wallets',
    condition: "activity.resource == 'WALLET' && activity.action == 'CREATE'",
    consensus: 'approvers.count() >= 2',
  });
  const more = { walletId, accounts: [account('solana', 0)] };
  const waiting = await ann.client.submit(type('CREATE_WALLET_ACCOUNTS'), more).catch((error) => error);
  if (waiting.status !== 429) throw waiting;
  await client.submit(type('DELETE_WALLET_ACCOUNTS'), {
    walletAccountIds: [(await client.query('list_wallet_accounts', { walletId })).accounts[0].walletAccountId],
    deleteWithoutExport: true,
  });
  const asked = await ann.client.submit(type('CREATE_WALLET_ACCOUNTS'), more);
  await client.submit(type('CREATE_WALLET_ACCOUNTS'), { walletId, accounts: [account('ethereum', 2)] });
  await client.approve(asked.fingerprint);
  return { child: subOrganizationId };
}

/** A key whose use 40 policies are asked about, for each payload; two approve. Gives what signs so many payloads. */
async function askedForEachPayload({ client, root }, ann) {
  const made = await client.submit(type('CREATE_PRIVATE_KEYS_V2'), {
    privateKeys: [
      {
        privateKeyName: 'Signing',
        curve: 'CURVE_SECP256K1',
        privateKeyTags: [],
        addressFormats: ['ADDRESS_FORMAT_ETHEREUM'],
      },
    ],
  });
  const [{ privateKeyId }] = made.result.createPrivateKeysResultV2.privateKeys;
  await client.submit(type('CREATE_POLICIES'), {
    policies: Array.from({ length: 40 }, (_, index) => ({
      policyName: `Asked for each payload ${index}`,
      effect: index % 8 === 0 ? 'EFFECT_DENY' : 'EFFECT_ALLOW',
      condition: Array.from({ length: 20 }, (_, name) => `eth.eip_712.domain.name == '${index} ${name}'`).join(' || '),
    })),
  });
  await client.submit(type('UPDATE_ROOT_QUORUM'), { threshold: 2, userIds: [root.userId, ann.userId] });
  return (count) => client.submit(type('SIGN_RAW_PAYLOADS'), typedPayloads(privateKeyId, count));
}

/** What stands for several things is in doubt for each, and votes whose credential is gone do not count (docs/adr/0010, 0015). */
async function lasting(coordinator) {
  const { client, root } = coordinator;
  const either = (promise) =>
    promise.catch((error) => {
      if (error.status !== 400 && error.status !== 403) throw error;
    });
  const by = (user) => `approvers.any(user, user.id == '${user.userId}')`;
  const helper = await coordinator.createUser('Helper', { userEmail: 'helper@example.com' });
  const target = await coordinator.createUser('Target');
  const leaver = await coordinator.createUser('Leaver');
  const policies = [
    ['Credentials', "activity.resource == 'CREDENTIAL'", by(helper)],
    ['Keys by two', "activity.kind == 'CREATE_API_KEYS'", 'approvers.count() >= 2'],
    ['Signs', "activity.action == 'SIGN'", by(helper)],
    ['Accounts', "activity.kind in ['CREATE_WALLET_ACCOUNTS', 'DELETE_WALLET_ACCOUNTS']", by(helper)],
    ['Invites', "activity.kind == 'CREATE_INVITATIONS'", by(leaver)],
    ['Own address', "activity.kind == 'UPDATE_USER_EMAIL' && activity.params.user_id == requester.id", by(helper)],
  ];
  for (const [policyName, condition, consensus] of policies) {
    await coordinator.createPolicy({ policyName, condition, consensus });
  }

  // A vote by a key that another added, and that is gone when it counts.
  const [first, second] = [coordinator.newKey(), coordinator.newKey()];
  const add = (by, key) => by.submit(type('CREATE_API_KEYS_V2'), { userId: target.userId, apiKeys: [keyOf(key)] });
  const added = await add(helper.client, first);
  const waiting = await add(coordinator.clientFor(first), second);
  const { apiKeyIds } = added.result.createApiKeysResult;
  await helper.client.submit(type('DELETE_API_KEYS'), { userId: target.userId, apiKeyIds });
  await helper.client.submit(type('APPROVE_ACTIVITY'), { fingerprint: waiting.fingerprint });
  await either(client.submit(type('UPDATE_ROOT_QUORUM'), { threshold: 1, userIds: [root.userId, target.userId] }));

  // An authorization for every chain, and a key under another address than a policy names.
  const account = (addressFormat) => ({
    curve: 'CURVE_SECP256K1',
    pathFormat: 'PATH_FORMAT_BIP32',
    path: "m/44'/60'/0'/0/0",
    addressFormat: `ADDRESS_FORMAT_${addressFormat}`,
  });
  const { result } = await client.submit(type('CREATE_WALLET'), { walletName: 'W', accounts: [account('ETHEREUM')] });
  const { walletId, addresses } = result.createWalletResult;
  const signs = (signWith, payload, encoding) =>
    either(
      helper.client.submit(type('SIGN_RAW_PAYLOAD_V2'), {
        signWith,
        payload,
        encoding: `PAYLOAD_ENCODING_${encoding}`,
        hashFunction: 'HASH_FUNCTION_NO_OP',
      }),
    );
  const denied = await coordinator.createPolicy({
    policyName: 'Nowhere on mainnet',
    effect: 'EFFECT_DENY',
    condition: 'eth.eip_7702_authorization.chain_id == 1',
  });
  for (const chainId of [0, 1, 5]) {
    const authorization = { address: '0x00000000000000000000000000000000000bad00', chainId, nonce: 0 };
    await signs(addresses[0], JSON.stringify(authorization), 'EIP7702_AUTHORIZATION');
  }
  await client.submit(type('DELETE_POLICY'), { policyId: denied });
  await coordinator.createPolicy({
    policyName: 'Not the treasury',
    effect: 'EFFECT_DENY',
    condition: `wallet_account.address == '${addresses[0]}'`,
  });
  const others = await helper.client.submit(type('CREATE_WALLET_ACCOUNTS'), {
    walletId,
    accounts: [account('COMPRESSED')],
  });
  const digest = sha256('digest').toString('hex');
  const [other] = others.result.createWalletAccountsResult.addresses;
  await signs(other, digest, 'HEXADECIMAL');
  const { accounts } = await client.query('list_wallet_accounts', { walletId });
  const walletAccountIds = accounts
    .filter(({ address }) => address === addresses[0])
    .map(({ walletAccountId }) => walletAccountId);
  await helper.client.submit(type('DELETE_WALLET_ACCOUNTS'), { walletAccountIds, deleteWithoutExport: true });
  await signs(other, digest, 'HEXADECIMAL');

  // A contact of two users, one of whom is of the root quorum.
  const userEmail = 'root@example.com';
  await client.submit(type('UPDATE_USER_EMAIL'), { userId: root.userId, userEmail });
  await helper.client.submit(type('UPDATE_USER_EMAIL'), { userId: helper.userId, userEmail });
  const targetPublicKey = Buffer.from(p256.getPublicKey(sha256('target'), false)).toString('hex');
  await either(client.submit(type('EMAIL_AUTH_V2'), { email: userEmail, targetPublicKey }));

  // Imports and invitations of a user who leaves, and an ALLOW that becomes a DENY with a tag that is gone.
  await client.submit(type('INIT_IMPORT_WALLET'), { userId: leaver.userId });
  const tagId = await coordinator.createTag('Gone');
  const policyId = await coordinator.createPolicy({ policyName: 'Tag', condition: `requester.tags.contains('${tagId}')` });
  await client.submit(type('DELETE_USER_TAGS'), { userTagIds: [tagId] });
  await either(client.submit(type('UPDATE_POLICY_V2'), { policyId, policyEffect: 'EFFECT_DENY' }));
  const invitation = {
    receiverUserName: 'New',
    receiverUserEmail: 'new@example.com',
    receiverUserTags: [],
    accessType: 'ACCESS_TYPE_ALL',
    senderUserId: root.userId,
  };
  await leaver.client.submit(type('CREATE_INVITATIONS'), { invitations: [invitation] });
  await client.submit(type('DELETE_USERS'), { userIds: [leaver.userId] });
}

/** What a story needs besides the usual settings. */
const settingsOf = {
  people: { ALLOW_PRIVATE_NETWORK: 'true' },
  limits: {
    ORGANIZATION_LIMITS: 'users=5, walletAccounts=2, imports=1',
    SUB_ORGANIZATION_LIMITS: 'wallets=2, users=20',
  },
};

const stories = { consensus, credentials, keys, webhooks, people, proofs, connections, family, contacts, budgets, limits, lasting };
for (const [name, story] of Object.entries(stories)) {
  if (only === undefined || only === name) await record(name, story);
}
