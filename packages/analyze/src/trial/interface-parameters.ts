import type { Makers } from './trial-parameters.js';

const contract = {
  smartContractAddress: `0x${'ab'.repeat(20)}`,
  smartContractInterface: JSON.stringify([{ type: 'function', name: 'pay', inputs: [] }]),
  type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
  label: 'Made by an example',
  notes: '',
} as const;

/** What transactions are read by. */
export const interfaceParameters = {
  async ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE() {
    return { parameters: contract };
  },
  async ACTIVITY_TYPE_DELETE_SMART_CONTRACT_INTERFACE({ organization: { founder } }) {
    const { smartContractInterfaceId } = await founder.perform(
      'ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE',
      contract,
    );
    return { parameters: { smartContractInterfaceId } };
  },
} satisfies Makers;
