import { limitList, type Limits } from '../domain/organization/limits.js';
import { noSuchOrganization } from '../domain/organization/organization.js';
import type { RootQuorum } from '../domain/organization/settings.js';
import { ListOf, Nested, Text, Uuid } from '../wire/fields.js';
import { ContractInterfaceReferenceShape, contractInterfaceReferencesOf } from './contract-interfaces.js';
import type { Rows } from './database.js';
import { defineQuery, OrganizationRequest, PagedResponse, type QueryContext } from './define-query.js';
import { InvitationShape, openInvitationsOf } from './invitations.js';
import { policiesOf } from './policies.js';
import { PrivateKeyShape, privateKeysOf, privateKeyTagsOf } from './private-keys.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { FeatureShape, LimitShape, PolicyShape, QuorumShape, TagShape, UserShape } from '../wire/shapes.js';
import { userTagsOf } from './user-tags.js';
import { userOf, usersOf } from './users.js';
import { WalletShape, walletsOf } from './wallets.js';

interface OrganizationRow {
  readonly organizationId: string;
  readonly name: string;
  readonly parentOrganizationId?: string;
  readonly rootQuorum: RootQuorum;
  readonly features: readonly { readonly name: string; readonly value: string }[];
}

export const organizationsModel: ReadModel = {
  name: 'organizations',
  version: 1,
  tables: ['organizations'],
  schema: `
    CREATE TABLE organizations (organization_id TEXT PRIMARY KEY, parent_id TEXT, doc TEXT NOT NULL) WITHOUT ROWID;
    CREATE INDEX organizations_by_parent ON organizations (parent_id);`,

  project: eachEvent((rows, { organizationId, event }) => {
    const change = (update: (row: OrganizationRow) => OrganizationRow) =>
      put(rows, update(organizationOf(rows, organizationId)));
    switch (event.type) {
      case 'OrganizationCreated':
        return put(rows, { ...event.data, rootQuorum: { threshold: 1, userIds: [] }, features: [] });
      case 'OrganizationRenamed':
        return change((row) => ({ ...row, name: event.data.name }));
      case 'RootQuorumUpdated':
        return change((row) => ({ ...row, rootQuorum: event.data }));
      case 'OrganizationFeatureSet':
        return change((row) => ({ ...row, features: [...without(row, event.data.name), event.data] }));
      case 'OrganizationFeatureRemoved':
        return change((row) => ({ ...row, features: without(row, event.data.name) }));
    }
  }),
};

const without = ({ features }: OrganizationRow, name: string) => features.filter((feature) => feature.name !== name);

function put(rows: Rows, row: OrganizationRow): void {
  rows.run(
    'INSERT OR REPLACE INTO organizations VALUES (?, ?, ?)',
    row.organizationId,
    row.parentOrganizationId ?? null,
    JSON.stringify(row),
  );
}

/** @throws {CoordinatorError} NOT_FOUND */
function organizationOf(rows: Rows, organizationId: string): OrganizationRow {
  const row = rows.get('SELECT doc FROM organizations WHERE organization_id = ?', organizationId);
  if (row) return JSON.parse(String(row['doc'])) as OrganizationRow;
  throw noSuchOrganization(organizationId);
}

class WhoamiResponse {
  @Uuid()
  organizationId!: string;

  @Text()
  organizationName!: string;

  @Uuid()
  userId!: string;

  @Text()
  username!: string;
}

export const whoami = defineQuery({
  path: 'whoami',
  summary: 'The user who stamped the request, and the organization the user belongs to.',
  request: OrganizationRequest,
  response: WhoamiResponse,
  whereTheCredentialLives: true,
  answer(_request, { rows, callerOrganizationId, callerUserId }) {
    const { name } = organizationOf(rows, callerOrganizationId);
    const { userName } = userOf(rows, callerOrganizationId, callerUserId);
    return {
      organizationId: callerOrganizationId,
      organizationName: name,
      userId: callerUserId,
      username: userName,
    };
  },
});

class ConfigShape {
  @ListOf(() => FeatureShape)
  features!: readonly FeatureShape[];

  @Nested(() => QuorumShape)
  quorum!: QuorumShape;

  @ListOf(() => LimitShape, { about: 'A Countersign extension: the limits on stored data.' })
  limits!: readonly LimitShape[];
}

class GetOrganizationConfigsResponse {
  @Nested(() => ConfigShape)
  configs!: ConfigShape;
}

export interface LimitsPort {
  /** The limits that hold for the organization that is asked about. */
  limits(): Promise<Limits>;
}

export const getOrganizationConfigs = defineQuery({
  path: 'get_organization_configs',
  summary: 'Features and root quorum.',
  request: OrganizationRequest,
  response: GetOrganizationConfigsResponse,
  async answer({ organizationId }, context: QueryContext & LimitsPort) {
    const { features, rootQuorum } = organizationOf(context.rows, organizationId);
    return { configs: { features: [...features], quorum: rootQuorum, limits: limitList(await context.limits()) } };
  },
});

class OrganizationDataShape extends PagedResponse {
  @Uuid()
  organizationId!: string;

  @Text()
  name!: string;

  @ListOf(() => UserShape)
  users!: readonly UserShape[];

  @ListOf(() => PolicyShape)
  policies!: readonly PolicyShape[];

  @ListOf(() => TagShape)
  tags!: readonly TagShape[];

  @Nested(() => QuorumShape)
  rootQuorum!: QuorumShape;

  @ListOf(() => FeatureShape)
  features!: readonly FeatureShape[];

  @ListOf(() => LimitShape, { about: 'A Countersign extension: the limits on stored data.' })
  limits!: readonly LimitShape[];

  @ListOf(() => WalletShape)
  wallets!: readonly WalletShape[];

  @ListOf(() => PrivateKeyShape)
  privateKeys!: readonly PrivateKeyShape[];

  @ListOf(() => InvitationShape, {
    about: 'Open invitations; for all of them, use list_invitations.',
  })
  invitations!: readonly InvitationShape[];

  @ListOf(() => ContractInterfaceReferenceShape)
  smartContractInterfaceReferences!: readonly ContractInterfaceReferenceShape[];
}

class GetOrganizationResponse {
  @Nested(() => OrganizationDataShape)
  organizationData!: OrganizationDataShape;
}

export const getOrganization = defineQuery({
  path: 'get_organization',
  summary: 'Everything an organization holds, in one answer.',
  request: OrganizationRequest,
  response: GetOrganizationResponse,
  async answer({ organizationId }, context: QueryContext & LimitsPort) {
    const { rows, page } = context;
    const { name, rootQuorum, features } = organizationOf(rows, organizationId);
    const all = <Element extends object>(elements: Iterable<Element>) => page({ inTurn: elements, isBackward: false });
    function* tags() {
      yield* userTagsOf(rows, organizationId).inTurn;
      yield* privateKeyTagsOf(rows, organizationId).inTurn;
    }
    return {
      organizationData: {
        organizationId,
        name,
        users: await page(usersOf(rows, organizationId)),
        policies: await page(policiesOf(rows, organizationId)),
        tags: await all(tags()),
        rootQuorum,
        features: [...features],
        limits: limitList(await context.limits()),
        wallets: await page(walletsOf(rows, organizationId)),
        privateKeys: await page(privateKeysOf(rows, organizationId)),
        invitations: await all(openInvitationsOf(rows, organizationId)),
        smartContractInterfaceReferences: await all(contractInterfaceReferencesOf(rows, organizationId)),
      },
    };
  },
});
