import { createSmartContractInterface } from '../../../src/activities/contract-interfaces/create-smart-contract-interface.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { anOrganization } from '../facts.js';
import { given, id } from '../given.js';

const usdc = '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48';
const tokenProgram = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const abi = JSON.stringify([{ type: 'function', name: 'pause', inputs: [] }]);
const idl = JSON.stringify({ version: '0.1.0', name: 'token', instructions: [] });
const ethereum = {
  smartContractAddress: usdc,
  smartContractInterface: abi,
  type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
  label: 'USDC',
};
const solana = {
  smartContractAddress: tokenProgram,
  smartContractInterface: idl,
  type: 'SMART_CONTRACT_INTERFACE_TYPE_SOLANA',
  label: 'Token program',
  notes: 'a note',
};

const created = (number: number, address: string): OrganizationEvent => ({
  type: 'SmartContractInterfaceCreated',
  data: {
    ...ethereum,
    smartContractInterfaceId: id(number),
    smartContractAddress: address,
    type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
    notes: '',
  },
});
const addressOf = (number: number) => `0x${String(number).padStart(40, '0')}`;
const long = (number: number): OrganizationEvent => ({
  type: 'SmartContractInterfaceCreated',
  data: {
    ...ethereum,
    smartContractInterfaceId: id(number),
    smartContractAddress: addressOf(number),
    smartContractInterface: abi.padEnd(399_000),
    type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
    notes: 'n'.repeat(1_000),
  },
});
const many = (count: number) => Array.from({ length: count }, (_, index) => created(100 + index, addressOf(index)));

describe('create smart contract interface', () => {
  it.each([
    ['an ABI', ethereum, { notes: '' }],
    ['an IDL', solana, {}],
  ])('records %s as it was given', (_what, intent, rest) =>
    given(anOrganization())
      .when(createSmartContractInterface, intent)
      .then(
        [
          {
            type: 'SmartContractInterfaceCreated',
            data: { smartContractInterfaceId: id(1), ...intent, ...rest } as never,
          },
        ],
        { smartContractInterfaceId: id(1) },
      ),
  );

  it.each([
    [
      'an address without 0x',
      { ...ethereum, smartContractAddress: usdc.slice(2) },
      /is not an Ethereum address: send 0x/,
    ],
    ['a short address', { ...ethereum, smartContractAddress: usdc.slice(0, -1) }, /is not an Ethereum address/],
    ['a program id as an address', { ...ethereum, smartContractAddress: tokenProgram }, /is not an Ethereum address/],
    ['an address as a program id', { ...solana, smartContractAddress: usdc }, /`0xA0b8\w+` is not a Solana program id/],
    ['a short program id', { ...solana, smartContractAddress: tokenProgram.slice(5) }, /is not a Solana program id/],
    [
      'an ABI that is no JSON',
      { ...ethereum, smartContractInterface: '[' },
      /smartContractInterface: is not valid JSON/,
    ],
    ['an IDL as an ABI', { ...ethereum, smartContractInterface: idl }, /smartContractInterface: is no list/],
    ['an ABI as an IDL', { ...solana, smartContractInterface: abi }, /smartContractInterface: /],
    [
      'an ABI with a type that is none',
      { ...ethereum, smartContractInterface: '[{"name":"f","inputs":[{"name":"a","type":"uint7"}]}]' },
      /\[0\]\.inputs\[0\]\.type `uint7` is not known/,
    ],
    ['a label of nothing', { ...ethereum, label: '' }, /label: must have 1 to 255 characters/],
    ['a chain that is none', { ...ethereum, type: 'SMART_CONTRACT_INTERFACE_TYPE_TRON' }, /type: must be one of/],
  ])('refuses %s', (_what, intent, message) =>
    given(anOrganization()).when(createSmartContractInterface, intent).thenRefused('INVALID_ARGUMENT', message),
  );

  it('takes 400,000 characters, and not one more', () => {
    const largest = { ...ethereum, smartContractInterface: abi.padEnd(400_000, ' ') };
    given(anOrganization())
      .when(createSmartContractInterface, largest)
      .then([expect.objectContaining({ type: 'SmartContractInterfaceCreated' })], { smartContractInterfaceId: id(1) });
    given(anOrganization())
      .when(createSmartContractInterface, { ...largest, smartContractInterface: abi.padEnd(400_001, ' ') })
      .thenRefused('INVALID_ARGUMENT', /smartContractInterface: must have 1 to 400000 characters, has 400001/);
  });

  it('refuses a second interface of a contract, in whatever letter case', () =>
    given(anOrganization(), created(101, usdc))
      .when(createSmartContractInterface, { ...ethereum, smartContractAddress: usdc.toLowerCase() })
      .thenRefused('ALREADY_EXISTS', new RegExp(`has the interface \`${id(101)}\`: delete that .* first`)));

  it('takes the interface of a contract anew once the other is deleted', () =>
    given(anOrganization(), created(101, usdc), {
      type: 'SmartContractInterfaceDeleted',
      data: { smartContractInterfaceId: id(101) },
    })
      .when(createSmartContractInterface, ethereum)
      .then([expect.objectContaining({ type: 'SmartContractInterfaceCreated' })], { smartContractInterfaceId: id(1) }));

  it('tells program ids apart by letter case', () => {
    const other = { ...solana, smartContractAddress: tokenProgram.replace('Token', 'token') };
    given(anOrganization(), {
      type: 'SmartContractInterfaceCreated',
      data: { ...solana, type: 'SMART_CONTRACT_INTERFACE_TYPE_SOLANA', smartContractInterfaceId: id(101) },
    })
      .when(createSmartContractInterface, other)
      .then([expect.objectContaining({ type: 'SmartContractInterfaceCreated' })], { smartContractInterfaceId: id(1) });
  });

  it('refuses more than 4,000,000 characters in all', () =>
    given(anOrganization(), ...Array.from({ length: 10 }, (_, at) => long(200 + at)))
      .when(createSmartContractInterface, ethereum)
      .thenRefused('RESOURCE_EXHAUSTED', /have 4000000 characters including their notes/));

  it('refuses the hundred and first', () => {
    given(anOrganization(), ...many(99))
      .when(createSmartContractInterface, ethereum)
      .then([expect.objectContaining({ type: 'SmartContractInterfaceCreated' })], { smartContractInterfaceId: id(1) });
    given(anOrganization(), ...many(100))
      .when(createSmartContractInterface, ethereum)
      .thenRefused('RESOURCE_EXHAUSTED', /^the organization has 100 smart contract interfaces/);
  });
});
