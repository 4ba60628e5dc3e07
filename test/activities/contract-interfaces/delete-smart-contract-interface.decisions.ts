import { deleteSmartContractInterface } from '../../../src/activities/contract-interfaces/delete-smart-contract-interface.js';
import { anOrganization } from '../facts.js';
import { given, id } from '../given.js';

const created = {
  type: 'SmartContractInterfaceCreated',
  data: {
    smartContractInterfaceId: id(101),
    smartContractAddress: `0x${'1'.repeat(40)}`,
    smartContractInterface: '[]',
    type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
    label: 'a contract',
    notes: '',
  },
} as const;

const solana = {
  ...created,
  data: {
    ...created.data,
    smartContractAddress: 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
    type: 'SMART_CONTRACT_INTERFACE_TYPE_SOLANA',
  },
} as const;
const { smartContractAddress: contract } = created.data;

const policy = (effect: 'EFFECT_ALLOW' | 'EFFECT_DENY', condition: string) =>
  ({
    type: 'PolicyCreated',
    data: { policyId: id(200), policyName: 'calls', effect, condition, notes: '' },
  }) as const;

describe('delete smart contract interface', () => {
  it('deletes the interface', () =>
    given(anOrganization(), created)
      .when(deleteSmartContractInterface, { smartContractInterfaceId: id(101) })
      .then([{ type: 'SmartContractInterfaceDeleted', data: { smartContractInterfaceId: id(101) } }], {
        smartContractInterfaceId: id(101),
      }));

  it('refuses one that is not there', () =>
    given(anOrganization(), created)
      .when(deleteSmartContractInterface, { smartContractInterfaceId: id(102) })
      .thenRefused('NOT_FOUND', new RegExp(`^no smart contract interface \`${id(102)}\``)));

  const intent = { smartContractInterfaceId: id(101) };
  const byOthers = { isRootQuorums: false };
  const isDeleted = [[{ type: 'SmartContractInterfaceDeleted', data: intent }], intent] as const;
  const ofInstruction = "solana.tx.instructions.any(i, i.parsed_instruction_data.instruction_name == 'claim')";

  describe.each([
    ['a function', created, "eth.tx.function_name == 'transfer'"],
    ['arguments, of this contract', created, `eth.tx.to == '${contract}' && eth.tx.contract_call_args['to'] == 'x'`],
    ['arguments, of others', created, `eth.tx.to != '0x${'2'.repeat(40)}' && eth.tx.contract_call_args['to'] == 'x'`],
    ['an instruction', solana, ofInstruction],
    ['accounts', solana, "solana.tx.instructions.all(i, i.parsed_instruction_data.named_accounts['to'] == 'x')"],
  ])('while a policy reads %s by it', (_what, fact, condition) => {
    it.each(['EFFECT_ALLOW', 'EFFECT_DENY'] as const)('is refused to all but the root quorum: %s', (effect) =>
      given(anOrganization(), fact, policy(effect, condition))
        .when(deleteSmartContractInterface, intent, byOthers)
        .thenRefused(
          'FAILED_PRECONDITION',
          new RegExp(`^policy \`${id(200)}\` \\(\`calls\`\\) (reads|denies by the) calls of`),
        ),
    );

    it('is done by the root quorum under an ALLOW', () =>
      given(anOrganization(), fact, policy('EFFECT_ALLOW', condition))
        .when(deleteSmartContractInterface, intent)
        .then(...isDeleted));
  });

  it('is done by the root quorum under a DENY of instructions, which denies what it cannot read', () =>
    given(anOrganization(), solana, policy('EFFECT_DENY', ofInstruction))
      .when(deleteSmartContractInterface, intent)
      .then(...isDeleted));

  it.each([
    ['another contract', created, `eth.tx.to == '0x${'2'.repeat(40)}' && eth.tx.function_name == 'transfer'`],
    ['the other chain', created, ofInstruction],
    ['the other chain', solana, "eth.tx.function_name == 'transfer'"],
    ['no names', created, `eth.tx.to == '${contract}' && eth.tx.function_signature == '0xa9059cbb'`],
  ])('is done by others under an ALLOW that reads %s', (_what, fact, condition) =>
    given(anOrganization(), fact, policy('EFFECT_ALLOW', condition))
      .when(deleteSmartContractInterface, intent, byOthers)
      .then(...isDeleted),
  );
});
