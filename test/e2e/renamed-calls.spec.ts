import { createHash } from 'node:crypto';
import { base58 } from '@scure/base';
import { encodeFunctionData, parseAbi, serializeTransaction } from 'viem';
import { startCoordinator, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { refusal } from './exchange.js';

/*
 * Policies read calls by the names that interfaces give them. Who may delete and create interfaces cannot give a call that a
 * policy reads another name (docs/adr/0011).
 */

const contract = `0x${'22'.repeat(20)}` as const;
const program = createHash('sha256').update('program').digest();

let coordinator: TestCoordinator;
let keeper: TestUser;
let ethereum: string;
let solana: string;

const account = (chain: 'ETHEREUM' | 'SOLANA', curve: 'SECP256K1' | 'ED25519', path: string) => ({
  curve: `CURVE_${curve}` as const,
  pathFormat: 'PATH_FORMAT_BIP32' as const,
  path,
  addressFormat: `ADDRESS_FORMAT_${chain}` as const,
});

beforeAll(async () => {
  coordinator = await startCoordinator();
  keeper = await coordinator.createUser('Keeper');
  await coordinator.createPolicy({
    policyName: 'keeps interfaces',
    condition: "activity.resource == 'SMART_CONTRACT_INTERFACE'",
    consensus: `approvers.any(user, user.id == '${keeper.userId}')`,
  });
  const wallet = await coordinator.createWallet('W', [
    account('ETHEREUM', 'SECP256K1', "m/44'/60'/0'/0/0"),
    account('SOLANA', 'ED25519', "m/44'/501'/0'/0'"),
  ]);
  [ethereum, solana] = wallet.addresses as [string, string];
});
afterAll(() => coordinator.close());

type Chain = 'ETHEREUM' | 'SOLANA';

/** `from` and `to` in the order given: in the data, the first is the keeper's. */
const abiOf = (...names: readonly string[]) =>
  JSON.stringify([{ type: 'function', name: 'move', inputs: names.map((name) => ({ name, type: 'address' })) }]);
const idlOf = (name: string) =>
  JSON.stringify({
    version: '0.1.0',
    name: 'program',
    instructions: [{ name, discriminator: [7], accounts: [], args: [] }],
  });
const addresses = { ETHEREUM: contract, SOLANA: base58.encode(program) };

async function uploads(by: TestUser['client'], chain: Chain, json: string): Promise<string> {
  const { result } = await by.submit('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
    smartContractAddress: addresses[chain],
    smartContractInterface: json,
    type: `SMART_CONTRACT_INTERFACE_TYPE_${chain}`,
    label: 'A contract',
  });
  return (Object.values(result)[0] as { smartContractInterfaceId: string }).smartContractInterfaceId;
}

const deletes = (by: TestUser['client'], smartContractInterfaceId: string) =>
  by.submit('ACTIVITY_TYPE_DELETE_SMART_CONTRACT_INTERFACE', { smartContractInterfaceId });

/** A call of `move` with these arguments, or of the program with the data that begins with 7. */
function called(chain: Chain): { signWith: string; unsignedTransaction: string } {
  if (chain === 'ETHEREUM') {
    const data = encodeFunctionData({
      abi: parseAbi(['function move(address, address)']),
      args: [`0x${'aa'.repeat(20)}`, `0x${'bb'.repeat(20)}`],
    });
    return {
      signWith: ethereum,
      unsignedTransaction: serializeTransaction({ type: 'eip1559', chainId: 1, to: contract, data }),
    };
  }
  const keys = [base58.decode(solana), program];
  const blockhash = createHash('sha256').update('blockhash').digest();
  const message = Buffer.concat([Buffer.from([1, 0, 1, 2]), ...keys, blockhash, Buffer.from([1, 1, 1, 0, 2, 7, 1])]);
  return { signWith: solana, unsignedTransaction: message.toString('hex') };
}

async function signs(by: TestUser, chain: Chain): Promise<string> {
  coordinator.clock.advance(1);
  try {
    const type = `TRANSACTION_TYPE_${chain}` as const;
    return (await by.client.submit('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', { ...called(chain), type })).status;
  } catch (error) {
    const { status } = error as { readonly status?: number };
    if (status !== 403) throw error;
    return 'DENIED';
  }
}

const cases = [
  {
    what: 'a DENY of an instruction',
    chain: 'SOLANA',
    effect: 'EFFECT_DENY',
    condition: "solana.tx.instructions.any(i, i.parsed_instruction_data.instruction_name == 'withdraw')",
    named: idlOf('withdraw'),
    renamed: idlOf('harmless'),
  },
  {
    what: 'an ALLOW of an instruction',
    chain: 'SOLANA',
    effect: 'EFFECT_ALLOW',
    condition: "solana.tx.instructions.all(i, i.parsed_instruction_data.instruction_name == 'claim')",
    named: idlOf('withdraw'),
    renamed: idlOf('claim'),
  },
  {
    what: 'an ALLOW of an argument',
    chain: 'ETHEREUM',
    effect: 'EFFECT_ALLOW',
    condition: `eth.tx.to == '${contract}' && eth.tx.contract_call_args['to'] == '0x${'aa'.repeat(20)}'`,
    named: abiOf('from', 'to'),
    renamed: abiOf('to', 'from'),
  },
  {
    what: 'an ALLOW of an argument, of all contracts but one',
    chain: 'ETHEREUM',
    effect: 'EFFECT_ALLOW',
    condition: `eth.tx.to != '0x${'33'.repeat(20)}' && eth.tx.contract_call_args['to'] == '0x${'aa'.repeat(20)}'`,
    named: abiOf('from', 'to'),
    renamed: abiOf('to', 'from'),
  },
] as const;

test.each(cases)(
  'under $what, who keeps interfaces cannot put another in the place of one; the root quorum can',
  async ({ what, chain, effect, condition, named, renamed }) => {
    const signer = await coordinator.createUser(`Signer under ${what}`);
    const by = `approvers.any(user, user.id == '${signer.userId}')`;
    const made = [await coordinator.createPolicy({ policyName: what, effect, condition, consensus: by })];
    if (effect === 'EFFECT_DENY') {
      const policy = { policyName: 'signs', condition: "activity.action == 'SIGN'", consensus: by };
      made.push(await coordinator.createPolicy(policy));
    }
    const first = await uploads(coordinator.client, chain, named);
    expect(await signs(signer, chain)).toBe('DENIED');

    // Nor is a second one of the same contract taken beside it.
    expect(await refusal(uploads(keeper.client, chain, renamed))).toMatchObject({
      status: 409,
      message: expect.stringContaining('already has the interface') as string,
    });
    const refused = await refusal(deletes(keeper.client, first));
    expect(refused.status).toBe(400);
    expect(refused.message).toContain(`policy \`${made[0]!}\` (\`${what}\`) reads calls of \`${addresses[chain]}\``);
    expect(refused.message).toContain('only the root quorum can delete it while the policy is there');
    expect(await signs(signer, chain)).toBe('DENIED');

    await deletes(coordinator.client, first);
    const second = await uploads(coordinator.client, chain, renamed);
    expect(await signs(signer, chain)).toBe('ACTIVITY_STATUS_COMPLETED');
    for (const policyId of made) await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
    expect((await deletes(keeper.client, second)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  },
);
