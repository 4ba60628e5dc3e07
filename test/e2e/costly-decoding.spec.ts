import { hashTypedData as hashWithViem } from 'viem';
import { thisThread } from '../../src/fairness/turns.js';
import { startCoordinator, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { doublingTypes } from '../nets/costly-shapes.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { refusal } from './exchange.js';

/*
 * Small requests that say much: whoever may sign them gets a refusal, whoever may not is told so before anything is read,
 * and what is large and honest is read in a thread of its own and decided as if it were small.
 */

let coordinator: TestCoordinator;
let member: TestUser;
let ethereum: string;

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'costly decoding' });
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_WALLET', {
    walletName: 'Treasury',
    accounts: [
      {
        curve: 'CURVE_SECP256K1',
        pathFormat: 'PATH_FORMAT_BIP32',
        path: "m/44'/60'/0'/0/0",
        addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
      },
    ],
  });
  ethereum = (result['createWalletResult'] as { addresses: string[] }).addresses[0]!;
  member = await coordinator.createUser('member');
});
afterAll(() => coordinator.close());

const typedData = (count: number) => ({
  domain: {},
  primaryType: 'Root',
  types: { EIP712Domain: [], S: [{ name: 's', type: 'S[]' }], Root: [{ name: 'all', type: 'S[]' }] },
  message: { all: Array.from({ length: count }, () => ({ s: [] })) },
});
const sign = (payload: string) => ({
  signWith: ethereum,
  payload,
  encoding: 'PAYLOAD_ENCODING_EIP712',
  hashFunction: 'HASH_FUNCTION_NO_OP',
});
const upload = (smartContractInterface: unknown, type = 'SOLANA') => ({
  smartContractAddress: type === 'SOLANA' ? '11111111111111111111111111111112' : `0x${'12'.repeat(20)}`,
  smartContractInterface: JSON.stringify(smartContractInterface),
  type: `SMART_CONTRACT_INTERFACE_TYPE_${type}`,
  label: 'program',
});

it('typed data of 150 000 structs is refused to those who may sign it', async () => {
  const { status, message } = await refusal(
    coordinator.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', sign(JSON.stringify(typedData(150_000)))),
  );
  expect({ status, message }).toEqual({ status: 400, message: expect.stringContaining('steps of work') as string });
});

it('typed data of 3 000 structs is read in another thread, and signed; who approves it reads it there too', async () => {
  const data = typedData(3_000);
  const digest = hashWithViem(data as never);
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', sign(JSON.stringify(data)));
  const raw = await coordinator.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
    signWith: ethereum,
    payload: digest,
    encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
    hashFunction: 'HASH_FUNCTION_NO_OP',
  });
  expect(result).toEqual(raw.result);

  await coordinator.createPolicy({
    policyName: 'with the root',
    condition: "activity.action == 'SIGN' && eth.eip_712.primary_type == 'Root'",
    consensus: `approvers.any(user, user.id == '${member.userId}') && approvers.count() >= 2`,
  });
  const asked = await member.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', sign(JSON.stringify(typedData(3_001))));
  expect(asked.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
  const approved = await coordinator.client.submit('ACTIVITY_TYPE_APPROVE_ACTIVITY', {
    fingerprint: asked.fingerprint,
  });
  expect(approved.status).toBe('ACTIVITY_STATUS_COMPLETED');
});

it.each<[string, string, unknown, string]>([
  ['generic types that double at each level', 'SOLANA', JSON.parse(doublingTypes(14)), 'more than 4096 types'],
  [
    'account names of 300 000 characters',
    'SOLANA',
    { instructions: [{ name: 'go', args: [], accounts: [{ name: 'a'.repeat(300_000) }] }] },
    'at most 128',
  ],
  [
    'a tuple of 20 000 members',
    'ETHEREUM',
    [
      {
        name: 'go',
        inputs: [{ type: 'tuple[][]', components: Array.from({ length: 20_000 }, () => ({ type: 'int' })) }],
      },
    ],
    'more than 16384',
  ],
])('an interface of %s is refused', async (_what, type, contract, reason) => {
  const asked = coordinator.client.submit('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', upload(contract, type));
  expect(await refusal(asked)).toMatchObject({ status: 400, message: expect.stringContaining(reason) as string });
});

it('each passkey of a request is verified in a turn of its own, so that others come between', async () => {
  let most = 0;
  let isOver = false;
  const watch = (): void => {
    most = Math.max(most, thisThread.size);
    if (!isOver) setImmediate(watch);
  };
  watch();
  const authenticators = Array.from({ length: 8 }, (_, index) => ({
    authenticatorName: `passkey ${index}`,
    ...new SoftwareAuthenticator().register(),
  }));
  const { userId } = member;
  await coordinator.client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', { userId, authenticators });
  isOver = true;
  expect(most).toBeGreaterThanOrEqual(6);
});
