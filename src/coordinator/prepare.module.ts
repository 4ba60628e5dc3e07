import { Module } from '@nestjs/common';
import { DeliveryModule } from '../delivery/delivery.module.js';
import { KeyringModule } from '../keyring/keyring.module.js';
import { OidcModule } from '../oidc/oidc.module.js';
import { ReadModelsModule } from '../read-models/read-models.module.js';
import { PreparationPorts } from './preparation-ports.js';
import { RecordedOrganizations } from './recorded-organizations.js';

/** Everything that an activity's `prepare` may use. */
@Module({
  imports: [KeyringModule, OidcModule, DeliveryModule, ReadModelsModule],
  providers: [RecordedOrganizations, PreparationPorts],
  exports: [PreparationPorts],
})
export class PrepareModule {}
