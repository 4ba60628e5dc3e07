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
});
