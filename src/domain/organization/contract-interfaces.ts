import { CoordinatorError } from '../errors.js';
import type { DomainEvent, Evolvers } from './event.js';
import type { Limits } from './limits.js';
import type { OrganizationView } from './organization.js';
import { put, remove } from './slices.js';

interface ContractInterfaceFacts {
  readonly smartContractInterfaceId: string;
  /** Contract address or program id, as given. */
  readonly smartContractAddress: string;
  /** ABI or IDL, as given. */
  readonly smartContractInterface: string;
  readonly type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM' | 'SMART_CONTRACT_INTERFACE_TYPE_SOLANA';
  readonly label: string;
  readonly notes: string;
}

/** How to decode calls of one contract, for policies that refer to function names and arguments. */
export interface ContractInterface extends ContractInterfaceFacts {
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type ContractInterfaceEvent =
  | DomainEvent<'SmartContractInterfaceCreated', ContractInterfaceFacts>
  | DomainEvent<'SmartContractInterfaceDeleted', { smartContractInterfaceId: string }>;

export const evolveContractInterfaces: Evolvers<ContractInterfaceEvent> = {
  SmartContractInterfaceCreated(organization, data, at) {
    put(organization, 'contractInterfaces', data.smartContractInterfaceId, { ...data, createdAt: at, updatedAt: at });
  },
  SmartContractInterfaceDeleted(organization, { smartContractInterfaceId }) {
    remove(organization, 'contractInterfaces', smartContractInterfaceId);
  },
};

/**
 * Refuses an interface beyond the limits on number or characters, or a second one for a contract: Ethereum addresses
 * are not told apart by letter case.
 * @throws {CoordinatorError} RESOURCE_EXHAUSTED, ALREADY_EXISTS
 */
export function checkNewContractInterface(
  organization: OrganizationView,
  added: Pick<ContractInterface, 'type' | 'smartContractAddress' | 'smartContractInterface'> & {
    readonly notes?: string;
  },
  { smartContractInterfaces: most, smartContractInterfaceCharacters: mostCharacters }: Limits,
): void {
  const { type, smartContractAddress } = added;
  const addressOf = (address: string) =>
    type === 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM' ? address.toLowerCase() : address;
  for (const known of organization.contractInterfaces.values()) {
    if (known.type !== type || addressOf(known.smartContractAddress) !== addressOf(smartContractAddress)) continue;
    throw new CoordinatorError(
      'ALREADY_EXISTS',
      `contract \`${smartContractAddress}\` already has the interface \`${known.smartContractInterfaceId}\`: ` +
        `delete that with delete_smart_contract_interface first`,
      { category: 'REQUEST_INVALID' },
    );
  }
  const lengthOf = ({ smartContractInterface, notes = '' }: Pick<typeof added, 'smartContractInterface' | 'notes'>) =>
    smartContractInterface.length + notes.length;
  const characters = [...organization.contractInterfaces.values()].reduce((sum, one) => sum + lengthOf(one), 0);
  if (characters + lengthOf(added) > mostCharacters) {
    throw new CoordinatorError(
      'RESOURCE_EXHAUSTED',
      `the smart contract interfaces of the organization have ${characters} characters including their notes; with this one ` +
        `they would have more than ${mostCharacters}: delete one with delete_smart_contract_interface`,
    );
  }
  if (organization.contractInterfaces.size < most) return;
  throw new CoordinatorError(
    'RESOURCE_EXHAUSTED',
    `the organization has ${most} smart contract interfaces, which is the limit: ` +
      `delete one with delete_smart_contract_interface`,
  );
}

/** The interface of that id. @throws {CoordinatorError} NOT_FOUND */
export function existingContractInterface(organization: OrganizationView, id: string): ContractInterface {
  const found = organization.contractInterfaces.get(id);
  if (found) return found;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no smart contract interface \`${id}\` in organization \`${organization.organizationId}\`: ` +
      `see list_smart_contract_interfaces`,
  );
}
