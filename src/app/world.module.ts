import { Global, Module, type DynamicModule } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import { DELIVERY, type Delivery } from '../delivery/delivery.js';
import { PROXY_SECRET } from '../http/auth-proxy-keys.controller.js';
import { CONFIG } from '../config/config.token.js';
import { LOGGER } from '../logging/logger.js';
import { Shutdown } from '../http/shutdown.js';
import { OutboundHttp } from '../http-client/outbound-http.js';
import { InstallationKeys } from '../keyring/installation-keys.js';
import type { OpenKeyring } from '../keyring/open-keyring.js';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { HISTORY, type HistoryOptions } from '../ledger/history-options.js';
import { UnreadableOrganizations } from '../ledger/unreadable-organizations.js';
import { ADDRESSES, type Addresses } from '../ports/addresses.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { HEALTH, type Health } from '../ports/health.js';
import { OAUTH_SECRETS } from '../ports/oauth2.js';
import { SECRETS_WITHIN } from '../ports/prepare.js';
import { PROXY_STAMPS } from '../ports/proxy-keys.js';
import { TOKENS } from '../ports/tokens.js';
import { PROOF_SIGNER, type ProofSigner } from '../ports/proof-signer.js';
import { RANDOMNESS, type Randomness } from '../ports/randomness.js';
import { ATTESTOR, type Attestor } from '../proofs/attestor.js';
import { ROWS } from '../read-models/define-query.js';
import { Vault } from '../vault/vault.js';
import { PROJECTING, type Projecting } from '../read-models/projecting.js';

/** What comes from outside: the settings, and the adapters that the process has chosen and opened. */
export interface World extends HistoryOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly health: Health;
  readonly shutdown: Shutdown;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly store: EventStore;
  readonly projecting: Projecting;
  readonly delivery: Delivery;
  readonly keyring: OpenKeyring;
  readonly attestor: Attestor;
  readonly proofs: ProofSigner;
  readonly addresses: Addresses;
  /** The secret that auth proxies present; without it, none is served. */
  readonly proxySecret: string | undefined;
}

/** Provides what comes from outside to every module, by token; the modules build the rest from it. */
@Global()
@Module({})
export class WorldModule {
  static forRoot(world: World): DynamicModule {
    const input = [
      { provide: CONFIG, useValue: world.config },
      { provide: LOGGER, useValue: world.logger },
      { provide: HEALTH, useValue: world.health },
      { provide: UnreadableOrganizations, useValue: unreadableOrganizations(world) },
      { provide: Shutdown, useValue: world.shutdown },
      { provide: CLOCK, useValue: world.clock },
      { provide: RANDOMNESS, useValue: world.randomness },
      { provide: EVENT_STORE, useValue: world.store },
      { provide: PROJECTING, useValue: world.projecting },
      { provide: ROWS, useValue: world.projecting.rows },
      { provide: DELIVERY, useValue: world.delivery },
      { provide: Vault, useValue: world.keyring.vault },
      { provide: InstallationKeys, useValue: world.keyring.keys },
      { provide: TOKENS, useValue: world.keyring.tokens },
      { provide: PROXY_STAMPS, useValue: world.keyring.proxyKeys },
      { provide: OAUTH_SECRETS, useValue: world.keyring.oauthSecrets },
      { provide: SECRETS_WITHIN, useValue: world.keyring.within },
      { provide: OutboundHttp, useValue: new OutboundHttp(world.config) },
      { provide: ATTESTOR, useValue: world.attestor },
      { provide: PROOF_SIGNER, useValue: world.proofs },
      { provide: ADDRESSES, useValue: world.addresses },
      { provide: PROXY_SECRET, useValue: { value: world.proxySecret } },
      { provide: HISTORY, useValue: world satisfies HistoryOptions },
    ];
    return { module: WorldModule, providers: input, exports: input.map(({ provide }) => provide) };
  }
}

/** Logs each organization once. All of them raise one condition. */
function unreadableOrganizations({ logger, health }: Pick<World, 'logger' | 'health'>): UnreadableOrganizations {
  return new UnreadableOrganizations(({ position, ...place }) => {
    logger.error(
      { ...place, ...(position === undefined ? {} : { position: String(position) }) },
      'an event cannot be read: everything that needs its organization is refused',
    );
    health.raise(
      'unreadable-events',
      'degraded',
      'events of organizations cannot be read, and their requests are refused; the log names them: run `countersign verify`, and ' +
        'restore a backup or start the release that wrote them',
    );
  });
}
