import { routingHeader } from '../client/organization-header.js';
import { submitPath } from '../client/stamping-client.js';
import { CoordinatorError, grpcNumbers, type ErrorCategory, type ErrorCode } from '../domain/errors.js';
import { KeepAliveConnection, type KeepAliveResponse } from '../http-client/keep-alive-request.js';
import { callerHeader, tellCaller } from '../rate-limits/caller.js';

/** The part of a configuration that the proxy reads (docs/protocol.md, auth proxy). Times are seconds as decimal strings. */
interface ProxySettings {
  readonly allowedOrigins: readonly string[];
  readonly allowedAuthMethods: readonly string[];
  readonly sendFromEmailAddress?: string;
  readonly replyToEmailAddress?: string;
  readonly sendFromEmailSenderName?: string;
  readonly otpTemplateId?: string;
  readonly emailCustomizationParams?: Readonly<Record<string, string>>;
  readonly smsCustomizationParams?: Readonly<Record<string, string>>;
  readonly walletKitSettings?: {
    readonly enabledSocialProviders?: readonly string[];
    readonly oauthClientIds?: Readonly<Record<string, string>>;
    readonly oauthRedirectUrl?: string;
  };
  readonly otpExpirationSeconds?: string;
  readonly verificationTokenExpirationSeconds?: string;
  readonly sessionExpirationSeconds?: string;
  readonly otpAlphanumeric?: boolean;
  readonly otpLength?: string;
  readonly verificationTokenRequiredForGetAccountPii?: boolean;
}

/** The configuration named by a request. */
export interface Configuration {
  readonly configId: string;
  readonly organizationId: string;
  readonly organizationName: string;
  readonly settings: ProxySettings;
}

interface ApiPorts {
  /** The base URL of the Activity API, without a trailing slash. */
  readonly url: () => string | Promise<string>;
  /** Presented to the API in exchange for configurations and stamps. */
  readonly secret: string;
  /** Milliseconds since the epoch; the source of `timestampMs`. */
  readonly clock: { now(): number };
  /** Longest wait for one response of the API, in milliseconds. */
  readonly answerMs?: number;
  /** Called if the API rejects the secret, once a minute at most. */
  readonly refused?: (message: string) => void;
}

/** What all requests share, whoever they are for. */
interface Shared {
  readonly connection: KeepAliveConnection;
  lastTimestamp: number;
  /**
   * The latest position that the API has returned: behind a load balancer, another coordinator may serve the next
   * request.
   */
  position: bigint;
  key: Promise<string> | undefined;
  refusedAt: number;
}

interface Submitted {
  readonly activity: {
    readonly status: string;
    readonly result?: Readonly<Record<string, unknown>>;
    readonly appProofs?: readonly object[];
  };
}

interface Client {
  readonly address: string;
  /** Headers that connect the log lines of its request with those of ours. */
  readonly trace: Readonly<Record<string, string>>;
}

interface Outcome<Result> {
  readonly result: Result;
  readonly appProofs: readonly object[] | undefined;
}

/** What leads to an account, such as a verified contact. */
export interface Identifier {
  readonly filterType: string;
  readonly filterValue: string;
}

interface StampedBody {
  readonly organizationId: string;
  readonly body: string;
  readonly stamp: string;
}

const secretRefused = 'the Activity API rejects this auth proxy: its operator must set the same PROXY_SECRET for both';

/** Default wait for one response of the API: longer than it waits for its read models. */
const usualAnswerMs = 15_000;

/** The Activity API as the proxy sees it: over HTTP, with stamps that it has to request each time. */
export class Api {
  /** @param client that the requests are made for */
  constructor(
    private readonly ports: ApiPorts,
    private readonly client?: Client,
    private readonly shared: Shared = {
      connection: new KeepAliveConnection(),
      lastTimestamp: 0,
      position: -1n,
      key: undefined,
      refusedAt: -Infinity,
    },
  ) {}

  /** The same API on behalf of a client: its limits are for the proxy's clients, not for the proxy. */
  for(client: Client): Api {
    return new Api(this.ports, client, this.shared);
  }

  /** @throws {CoordinatorError} NOT_FOUND for a configuration that is not enabled, UNAVAILABLE */
  configuration(configId: string): Promise<Configuration> {
    return this.internal<Configuration>('configuration', { configId });
  }

  /** Whether any configuration allows an origin. */
  async allowsOrigin(origin: string): Promise<boolean> {
    return (await this.internal<{ allowed: boolean }>('origin', { origin })).allowed;
  }

  /**
   * Submits an activity in the configuration's organization, unless another is named, and unwraps its result.
   * @throws {CoordinatorError} the API's refusal; PERMISSION_DENIED if the activity waits for votes
   */
  async submit<Result>(
    { configId, organizationId: own }: Configuration,
    type: string,
    parameters: object,
    organizationId = own,
  ): Promise<Outcome<Result>> {
    const body = JSON.stringify({ type, timestampMs: this.nextTimestamp(), organizationId, parameters });
    return outcomeOf(await this.stamped(configId, organizationId, submitPath(type), body));
  }

  /**
   * Submits an activity in the organization that `account` finds; undefined if there is none.
   * @throws {CoordinatorError} as `submit` does
   */
  async submitForAccount<Result>(
    { configId }: Configuration,
    identifier: Identifier,
    type: string,
    parameters: object,
  ): Promise<Outcome<Result> | undefined> {
    const request = JSON.stringify({ type, timestampMs: this.nextTimestamp(), parameters });
    const requested = { configId, ...identifier, request };
    const found = await this.internal<Partial<StampedBody>>('account-stamp', requested);
    if (found.organizationId === undefined) return undefined;
    return outcomeOf(await this.send(submitPath(type), found as StampedBody));
  }

  /** Queries the configuration's organization. @throws {CoordinatorError} the API's refusal */
  query<Answer>({ configId, organizationId }: Configuration, path: string, request: object): Promise<Answer> {
    const body = JSON.stringify({ organizationId, ...request });
    return this.stamped(configId, organizationId, `/public/v1/query/${path}`, body);
  }

  /**
   * The organization that a public identifier leads to, if that may be disclosed (docs/adr/0016).
   * @throws {CoordinatorError} the API's refusal
   */
  async account({ configId }: Configuration, filterType: string, filterValue: string): Promise<string | undefined> {
    const requested = { configId, filterType, filterValue };
    return (await this.internal<{ organizationId?: string }>('account', requested)).organizationId;
  }

  /** The key that verification tokens are signed with: uncompressed P-256 point, hex. */
  verificationKey(): Promise<string> {
    this.shared.key ??= this.fetch<{ verificationToken: string }>('/public/v1/discovery/keys', undefined, {}).then(
      ({ verificationToken }) => verificationToken,
      (error: unknown) => {
        this.shared.key = undefined;
        throw error;
      },
    );
    return this.shared.key;
  }

  /** Whether the API reports that it is ready, and accepts the secret. */
  async readiness(): Promise<'ok' | 'api-unavailable' | 'proxy-secret-refused'> {
    try {
      await this.fetch('/health/ready', undefined, {});
    } catch {
      return 'api-unavailable';
    }
    try {
      await this.allowsOrigin('');
      return 'ok';
    } catch (error) {
      return error instanceof CoordinatorError && error.message === secretRefused
        ? 'proxy-secret-refused'
        : 'api-unavailable';
    }
  }

  private async stamped<Answer>(configId: string, organizationId: string, path: string, body: string): Promise<Answer> {
    const { stamp } = await this.internal<{ stamp: string }>('stamp', { configId, body });
    return this.send(path, { organizationId, body, stamp });
  }

  private send<Answer>(path: string, { organizationId, body, stamp }: StampedBody): Promise<Answer> {
    return this.fetch(path, body, { 'x-stamp': stamp, ...routingHeader(organizationId) });
  }

  private async internal<Answer>(path: string, question: object): Promise<Answer> {
    const headers = { authorization: `Bearer ${this.ports.secret}` };
    try {
      return await this.fetch(`/internal/v1/auth-proxy/${path}`, JSON.stringify(question), headers);
    } catch (error) {
      // Callers of the proxy can do nothing about its secret.
      if (!(error instanceof CoordinatorError) || error.code !== 'UNAUTHENTICATED') throw error;
      this.reportRefused();
      throw new CoordinatorError('UNAVAILABLE', secretRefused, { cause: error });
    }
  }

  private reportRefused(): void {
    const now = performance.now();
    if (now - this.shared.refusedAt < 60_000) return;
    this.shared.refusedAt = now;
    this.ports.refused?.(secretRefused);
  }

  /** POST, or GET without a body. */
  private async fetch<Answer>(
    path: string,
    body: string | undefined,
    headers: Readonly<Record<string, string>>,
  ): Promise<Answer> {
    let response: KeepAliveResponse;
    try {
      response = await this.shared.connection.send(`${await this.ports.url()}${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          accept: 'application/json',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(this.shared.position < 0n ? {} : { 'x-min-position': String(this.shared.position) }),
          ...this.callerOf(path, headers),
          ...headers,
        },
        body,
        withinMs: this.ports.answerMs ?? usualAnswerMs,
      });
    } catch (error) {
      throw unreachable(error);
    }
    const { status, text } = response;
    const position = response.headers['x-position'];
    if (typeof position === 'string' && /^\d{1,20}$/.test(position) && BigInt(position) > this.shared.position) {
      this.shared.position = BigInt(position);
    }
    const answer = jsonOf(text);
    if (answer === undefined) throw unreachable(new Error(`status ${status} without JSON`));
    if (status < 200 || status > 299) throw refusal(answer);
    return answer as Answer;
  }

  private callerOf(path: string, headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    if (this.client === undefined) return {};
    const stamp = headers['x-stamp'] ?? '';
    const { address, trace } = this.client;
    return { ...trace, [callerHeader]: tellCaller(this.ports.secret, address, { path, stamp }) };
  }

  /** Two identical requests in one millisecond would be one activity, so each gets its own time. */
  private nextTimestamp(): string {
    this.shared.lastTimestamp = Math.max(this.ports.clock.now(), this.shared.lastTimestamp + 1);
    return String(this.shared.lastTimestamp);
  }
}

/** @throws {CoordinatorError} PERMISSION_DENIED if the activity waits for votes */
function outcomeOf<Result>({ activity }: Submitted): Outcome<Result> {
  const result = Object.values(activity.result ?? {})[0];
  if (activity.status !== 'ACTIVITY_STATUS_COMPLETED' || result === undefined) {
    throw new CoordinatorError(
      'PERMISSION_DENIED',
      'the auth proxy may not do this alone: the policies of the organization require more approvals',
    );
  }
  return { result: result as Result, appProofs: activity.appProofs };
}

function jsonOf(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function unreachable(cause: unknown): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    'the Activity API behind this auth proxy does not respond: send the same request again in a moment',
    { cause },
  );
}

const codes = new Map(Object.entries(grpcNumbers).map(([name, number]) => [number, name as ErrorCode]));

const rpc = 'type.googleapis.com/google.rpc';
const shownDetails: readonly string[] = [`${rpc}.BadRequest`, `${rpc}.QuotaFailure`];

/** An error of the API as one of ours. People who log in must not learn which policies exist. */
function refusal(answer: object): CoordinatorError {
  const { code, message, details, turnkeyErrorCode } = answer as {
    code?: number;
    message?: string;
    details?: readonly { readonly '@type': string }[];
    turnkeyErrorCode?: string;
  };
  const name = codes.get(Number(code));
  if (name === undefined || typeof message !== 'string') return unreachable(new Error('an error without a code'));
  if (name === 'UNAUTHENTICATED' && turnkeyErrorCode === 'PUBLIC_KEY_NOT_FOUND') {
    return new CoordinatorError(
      'PERMISSION_DENIED',
      'the auth proxy may not act there: this configuration does not cover the organization',
    );
  }
  const all = details ?? [];
  const retry = all.find((detail) => detail['@type'] === `${rpc}.RetryInfo`) as
    { readonly retryDelay?: string } | undefined;
  const seconds = Number.parseInt(retry?.retryDelay ?? '', 10);
  return new CoordinatorError(name, message, {
    ...(turnkeyErrorCode ? { category: turnkeyErrorCode as ErrorCategory } : {}),
    ...(seconds > 0 ? { retryAfterSeconds: seconds } : {}),
    details: all.filter((detail) => shownDetails.includes(detail['@type'])),
  });
}
