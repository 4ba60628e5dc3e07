import { CoordinatorError, invalidField } from '../domain/errors.js';
import { GuardedFetchError } from './guarded-request.js';

/**
 * Where deliveries may go, for the activities.
 * @param reach refuses what no request would be made to; see `OutboundHttp`
 */
export function webhookTargets(reach: (url: string) => Promise<void>) {
  return {
    /** @throws {CoordinatorError} INVALID_ARGUMENT; FAILED_PRECONDITION if the host cannot be resolved now */
    async check(url: string): Promise<void> {
      try {
        await reach(url);
      } catch (error) {
        if (!(error instanceof GuardedFetchError)) throw error;
        if (!error.mayPass) throw invalidField('parameters.url', error.message);
        throw new CoordinatorError(
          'FAILED_PRECONDITION',
          `parameters.url: ${error.message}: check the name, or try again once it resolves`,
          { cause: error },
        );
      }
    },
  };
}
