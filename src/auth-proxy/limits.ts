import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { CoordinatorError } from '../domain/errors.js';

/** Requests a minute, and codes to one contact in ten minutes; undefined is no limit. */
export interface ProxyLimits {
  readonly perAddress: number | undefined;
  readonly perConfiguration: number | undefined;
  readonly perContact: number | undefined;
}

/** How often callers may call. Everything is public here, and codes cost money: the limits are on unless switched off. */
export class Limits {
  private readonly address: RateLimiterMemory | undefined;
  private readonly configurations: RateLimiterMemory | undefined;
  private readonly contacts: RateLimiterMemory | undefined;

  constructor({ perAddress, perConfiguration, perContact }: ProxyLimits) {
    this.address = limiter(perAddress, 60);
    this.configurations = limiter(perConfiguration, 60);
    this.contacts = limiter(perContact, 600);
  }

  /** Counts a request of an address. @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED */
  countAddress(address: string): Promise<void> {
    return count(this.address, networkOf(address));
  }

  /** Counts a request for a configuration. @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED */
  countConfiguration(configId: string): Promise<void> {
    return count(this.configurations, configId);
  }

  /** Counts a code on its way to a contact. @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED */
  countContact(configId: string, contact: string): Promise<void> {
    return count(this.contacts, `${configId} ${contact}`);
  }
}

function limiter(points: number | undefined, duration: number): RateLimiterMemory | undefined {
  return points === undefined ? undefined : new RateLimiterMemory({ points, duration });
}

async function count(limit: RateLimiterMemory | undefined, key: string): Promise<void> {
  try {
    await limit?.consume(key);
  } catch (rejection) {
    if (!(rejection instanceof RateLimiterRes)) throw rejection;
    throw new CoordinatorError('RESOURCE_EXHAUSTED', 'Too many requests. Please wait and try again in a few seconds', {
      category: 'RATE_LIMIT_EXCEEDED',
    });
  }
}

/** One caller has a whole /64 of IPv6 addresses (RFC 6177), so that is what counts as one address. */
function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [head = '', tail] = address.split('::');
  const groups = head.split(':');
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === '' ? 0 : tail.split(':').length);
  return [...groups, ...Array.from({ length: Math.max(missing, 0) }, () => '0'), ...(tail ?? '').split(':')]
    .slice(0, 4)
    .map((group) => group || '0')
    .join(':');
}
