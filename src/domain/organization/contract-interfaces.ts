import { CoordinatorError } from '../errors.js';
import type { DomainEvent, Evolvers } from './event.js';
import type { OrganizationView } from './organization.js';

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

/** How calls of one contract are to be read, for policies that speak of function names and arguments. */
export interface ContractInterface extends ContractInterfaceFacts {
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type ContractInterfaceEvent =
  | DomainEvent<'SmartContractInterfaceCreated', ContractInterfaceFacts>
  | DomainEvent<'SmartContractInterfaceDeleted', { smartContractInterfaceId: string }>;

export const evolveContractInterfaces: Evolvers<ContractInterfaceEvent> = {
  SmartContractInterfaceCreated(organization, data, at) {
    organization.contractInterfaces.set(data.smartContractInterfaceId, { ...data, createdAt: at, updatedAt: at });
  },
  SmartContractInterfaceDeleted(organization, { smartContractInterfaceId }) {
    organization.contractInterfaces.delete(smartContractInterfaceId);
  },
};

/** The interface of that id. @throws {CoordinatorError} NOT_FOUND */
export function existingContractInterface(organization: OrganizationView, id: string): ContractInterface {
  const found = organization.contractInterfaces.get(id);
  if (found) return found;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no smart contract interface \`${id}\` in organization \`${organization.organizationId}\`: ` +
      `list_smart_contract_interfaces names them all`,
  );
}
