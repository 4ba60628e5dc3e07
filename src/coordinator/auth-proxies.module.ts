import { Module } from '@nestjs/common';
import { OidcModule } from '../oidc/oidc.module.js';
import { ReadModelsModule } from '../read-models/read-models.module.js';
import { AuthProxies } from './auth-proxies.js';
import { CoordinatorModule } from './coordinator.module.js';

/** Configurations and stamps for auth proxies. */
@Module({
  imports: [CoordinatorModule, ReadModelsModule, OidcModule],
  providers: [AuthProxies],
  exports: [AuthProxies],
})
export class AuthProxiesModule {}
