import { Injectable } from '@nestjs/common';
import type { OrganizationView } from '../domain/organization/organization.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import type { OrganizationPort } from '../ports/organizations.js';
import { InstallationIndex } from '../read-models/indexes.js';

/** Other organizations than the one of a request, as they are recorded. */
@Injectable()
export class RecordedOrganizations implements OrganizationPort {
  constructor(
    private readonly loader: OrganizationLoader,
    private readonly index: InstallationIndex,
  ) {}

  async view(organizationId: string): Promise<OrganizationView> {
    return (await this.loader.recorded(organizationId)).organization;
  }

  async authProxySettings(organizationId: string): ReturnType<OrganizationPort['authProxySettings']> {
    return (await this.view(organizationId)).authProxy?.settings;
  }

  tokenUses(tokenId: string): Promise<ReadonlySet<string>> {
    return this.index.tokenUses(tokenId);
  }

  homeOfContact(...requested: Parameters<OrganizationPort['homeOfContact']>): Promise<string | undefined> {
    return this.index.homeOfContact(...requested);
  }
}
