import { CoordinatorError } from '../domain/errors.js';
import type { ContractInterface } from '../domain/organization/contract-interfaces.js';
import { timestamp } from '../domain/organization/timestamp.js';
import { Described, ListOf, Nested, Text, Uuid } from '../wire/fields.js';
import { defineQuery, ListRequest, OrganizationRequest, PagedResponse } from './define-query.js';
import { ListCursors } from './list-cursors.js';
import { oldestFirst } from './pages.js';
import type { Rows } from './database.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { TimestampShape } from '../wire/shapes.js';

const places = new ListCursors({ table: 'contract_interfaces', id: 'interface_id', columns: ['created'] });

export const contractInterfacesModel: ReadModel = {
  name: 'contract-interfaces',
  version: 2,
  tables: places.tables,
  schema: `
    CREATE TABLE contract_interfaces (
      organization_id TEXT NOT NULL, interface_id TEXT NOT NULL, created INTEGER NOT NULL, address TEXT NOT NULL,
      doc TEXT NOT NULL, PRIMARY KEY (organization_id, interface_id)
    ) WITHOUT ROWID;
    CREATE INDEX contract_interfaces_in_order ON contract_interfaces (organization_id, created, interface_id, address);
    ${places.schema}`,

  project: eachEvent((rows, { organizationId, position, at, event }) => {
    switch (event.type) {
      case 'SmartContractInterfaceCreated': {
        const created: ContractInterface = { ...event.data, createdAt: at, updatedAt: at };
        return rows.run(
          'INSERT OR REPLACE INTO contract_interfaces VALUES (?, ?, ?, ?, ?)',
          organizationId,
          created.smartContractInterfaceId,
          position,
          created.smartContractAddress,
          JSON.stringify(created),
        );
      }
      case 'SmartContractInterfaceDeleted':
        return rows.run(
          'DELETE FROM contract_interfaces WHERE organization_id = ? AND interface_id = ?',
          organizationId,
          event.data.smartContractInterfaceId,
        );
    }
  }),
};

class ContractInterfaceShape {
  @Uuid()
  organizationId!: string;

  @Uuid()
  smartContractInterfaceId!: string;

  @Text({ about: 'Contract address or program id, as submitted.' })
  smartContractAddress!: string;

  @Described({ type: 'string' }, { about: 'ABI or IDL, as submitted.' })
  smartContractInterface!: string;

  @Text({ about: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM or SMART_CONTRACT_INTERFACE_TYPE_SOLANA.' })
  type!: string;

  @Text()
  label!: string;

  @Text({ about: 'Empty if there are none.' })
  notes!: string;

  @Nested(() => TimestampShape)
  createdAt!: TimestampShape;

  @Nested(() => TimestampShape)
  updatedAt!: TimestampShape;
}

function contractInterfaceResource(organizationId: string, doc: unknown): ContractInterfaceShape {
  const { createdAt, updatedAt, ...facts } = JSON.parse(String(doc)) as ContractInterface;
  return { organizationId, ...facts, createdAt: timestamp(createdAt), updatedAt: timestamp(updatedAt) };
}

/** A contract interface by its names alone. */
export class ContractInterfaceReferenceShape {
  @Uuid()
  smartContractInterfaceId!: string;

  @Text()
  smartContractAddress!: string;
}

/** Names of all contract interfaces of an organization, in the order of their creation. */
export function contractInterfaceReferencesOf(rows: Rows, organizationId: string): ContractInterfaceReferenceShape[] {
  return rows
    .all(
      'SELECT interface_id, address FROM contract_interfaces WHERE organization_id = ? ORDER BY created, interface_id',
      organizationId,
    )
    .map((row) => ({
      smartContractInterfaceId: String(row['interface_id']),
      smartContractAddress: String(row['address']),
    }));
}

class ContractInterfaceRequest extends OrganizationRequest {
  @Uuid()
  smartContractInterfaceId!: string;
}

class GetSmartContractInterfaceResponse {
  @Nested(() => ContractInterfaceShape)
  smartContractInterface!: ContractInterfaceShape;
}

export const getSmartContractInterface = defineQuery({
  path: 'get_smart_contract_interface',
  summary: 'One smart contract interface: the ABI or IDL uploaded for a contract.',
  request: ContractInterfaceRequest,
  response: GetSmartContractInterfaceResponse,
  answer({ organizationId, smartContractInterfaceId }, { rows }) {
    const row = rows.get(
      'SELECT doc FROM contract_interfaces WHERE organization_id = ? AND interface_id = ?',
      organizationId,
      smartContractInterfaceId,
    );
    if (!row) {
      throw new CoordinatorError(
        'NOT_FOUND',
        `no smart contract interface \`${smartContractInterfaceId}\` in organization \`${organizationId}\`: ` +
          `see list_smart_contract_interfaces`,
      );
    }
    return { smartContractInterface: contractInterfaceResource(organizationId, row['doc']) };
  },
});

class ListSmartContractInterfacesResponse extends PagedResponse {
  @ListOf(() => ContractInterfaceShape)
  smartContractInterfaces!: readonly ContractInterfaceShape[];
}

export const listSmartContractInterfaces = defineQuery({
  path: 'list_smart_contract_interfaces',
  summary: 'All smart contract interfaces of an organization, oldest first.',
  request: ListRequest,
  response: ListSmartContractInterfacesResponse,
  answer: async ({ organizationId, paginationOptions }, { rows, page }) => ({
    smartContractInterfaces: await page(
      oldestFirst(rows, places, organizationId, paginationOptions, ({ doc }) =>
        contractInterfaceResource(organizationId, doc),
      ),
    ),
  }),
});
