import { serializeTransaction } from 'viem';
import { type CoordinatorError } from '../../src/domain/errors.js';
import { Meter, Steps, decodingSteps } from '../../src/domain/steps.js';
import type { ReadingPort } from '../../src/ports/reading.js';
import { read } from '../../src/transactions/reading.js';
import { readStamp } from '../../src/stamps/verify.js';
import { BareCoordinator, organizationId } from './bare-coordinator.js';

/*
 * What a transaction calls may be given another interface while the transaction is read: then it is read again, but not for
 * ever.
 */

const contract = `0x${'22'.repeat(20)}` as const;
let here: BareCoordinator;
let signWith: string;
let readings = 0;
/** How often the contract still gets another interface while something is read. */
let changes = 0;
let interfaceId: string | undefined;

async function changeInterface(): Promise<void> {
  const { key } = here.root;
  if (interfaceId !== undefined) {
    await here.submit(key, 'ACTIVITY_TYPE_DELETE_SMART_CONTRACT_INTERFACE', { smartContractInterfaceId: interfaceId });
  }
  const { result } = await here.submit(key, 'ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
    smartContractAddress: contract,
    smartContractInterface: '[{"type":"function","name":"f","inputs":[],"outputs":[]}]',
    type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
    label: 'changing',
  });
  interfaceId = (result['createSmartContractInterfaceResult'] as { smartContractInterfaceId: string })
    .smartContractInterfaceId;
}

const reading: ReadingPort = {
  async read(job) {
    readings += 1;
    const steps = new Steps(decodingSteps);
    const value = read(job, steps);
    if (changes-- > 0) await changeInterface();
    return { value, spent: steps.spent };
  },
};

beforeAll(async () => {
  here = await BareCoordinator.start({ reading });
  const { result } = await here.submit(here.root.key, 'ACTIVITY_TYPE_CREATE_WALLET', {
    walletName: 'w',
    accounts: [
      {
        curve: 'CURVE_SECP256K1',
        pathFormat: 'PATH_FORMAT_BIP32',
        path: "m/44'/60'/0'/0/0",
        addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
      },
    ],
  });
  [signWith] = (result['createWalletResult'] as { addresses: [string] }).addresses;
});
afterAll(() => here.close());

const parameters = () => ({
  signWith,
  type: 'TRANSACTION_TYPE_ETHEREUM',
  // Too long to be read on the main thread.
  unsignedTransaction: serializeTransaction({
    type: 'eip1559',
    to: contract,
    chainId: 1,
    data: `0x${'ab'.repeat(20_000)}`,
  }),
});
const signTransaction = 'ACTIVITY_TYPE_SIGN_TRANSACTION_V2';
const refusal = (of: Promise<unknown>) => of.then(() => undefined).catch((error: unknown) => error as CoordinatorError);

test('a request is read four times, and then told to come again', async () => {
  readings = 0;
  changes = 3;
  const done = await here.submit(here.root.key, signTransaction, parameters());
  expect([done.status, readings]).toEqual(['ACTIVITY_STATUS_COMPLETED', 4]);

  readings = 0;
  changes = 20;
  const refused = await refusal(here.submit(here.root.key, signTransaction, parameters()));
  expect([refused?.code, readings]).toEqual(['UNAVAILABLE', 4]);
  expect(refused?.message).toMatch(/changed while the request was processed/);
});

test('a request that is only tried is read four times too', async () => {
  readings = 0;
  changes = 20;
  const { headers } = here.stamp(here.root.key, signTransaction, parameters());
  const timestampMs = String(here.clock.now());
  const { organization } = await here.loader.load(organizationId);
  const tried = { type: signTransaction, parameters: parameters(), timestampMs, stamp: readStamp(headers) };
  const refused = await refusal(here.driver.dryRuns.of(tried, organization, new Meter()));
  expect([refused?.code, readings]).toEqual(['UNAVAILABLE', 4]);
});
