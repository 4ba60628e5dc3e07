/** Founds the installation that the environment names, or opens it, as a start does; prints what is recorded of its founding. */
import { openInstallation } from '../../../dist/app/open-installation.js';
import { readConfig } from '../../../dist/config/config.js';
import { createLogger } from '../../../dist/logging/logger.js';
import { logConditions } from '../../../dist/logging/log-conditions.js';
import { Health } from '../../../dist/ports/health.js';

process.umask(0o077);
const logger = createLogger('silent');
const health = new Health(logConditions(logger), undefined, () => process.exit(1));
const { founding, store } = await openInstallation(readConfig(process.env), { logger, health });
process.stdout.write(JSON.stringify(founding));
await store.close();
process.exit();
