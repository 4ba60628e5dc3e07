import { p256 } from '@noble/curves/nist.js';
import { generateApiKeyPair, stampBody, type ApiKeyPair } from '../../src/testing/index.js';

/** What the tests use of the published client for browsers and phones. */
export interface CoreClient {
  initOtp(params: { otpType: string; contact: string }): Promise<string>;
  completeOtp(params: {
    otpId: string;
    otpCode: string;
    contact: string;
    otpType: string;
    createSubOrgParams?: object;
  }): Promise<{ sessionToken: string; action: string; verificationToken: string }>;
  verifyOtp(params: {
    otpId: string;
    otpCode: string;
    contact: string;
    otpType: string;
  }): Promise<{ subOrganizationId?: string; verificationToken: string }>;
  updateUserEmail(params: object): Promise<string>;
  completeOauth(params: { oidcToken: string; publicKey: string }): Promise<{ sessionToken: string; action: string }>;
  signUpWithPasskey(params: object): Promise<{ sessionToken: string; credentialId: string }>;
  loginWithPasskey(): Promise<{ sessionToken: string }>;
  loginOrSignupWithWallet(params: { walletProvider: object }): Promise<{ sessionToken: string; action: string }>;
  loginWithWallet(params: { walletProvider: object }): Promise<{ sessionToken: string }>;
  getProxyAuthConfig(): Promise<object>;
  readonly httpClient: Readonly<Record<string, (input: object) => Promise<Record<string, unknown>>>>;
}

interface Stamped {
  readonly stampHeaderName: string;
  readonly stampHeaderValue: string;
}

/** What a phone gives the client for a passkey. */
interface PasskeyStamper {
  createReactNativePasskey(): Promise<object>;
  stamp(body: string): Promise<Stamped>;
}

interface Internals {
  httpClient: CoreClient['httpClient'];
  storageManager: unknown;
  passkeyStamper: unknown;
  walletManager: unknown;
  createHttpClient(): CoreClient['httpClient'];
}

// The file of the class: the package's index also loads what only a browser has.
const file = new URL('../../node_modules/@turnkey/core/dist/__clients__/core.mjs', import.meta.url).pathname;
const file2 = new URL('../../node_modules/@turnkey/core-2/dist/__clients__/core.mjs', import.meta.url).pathname;
const attested = new URL('../../node_modules/@turnkey/core-2/dist/__stampers__/attested/base.mjs', import.meta.url);
interface Opened {
  new (config: object, apiKeyStamper: object): CoreClient & Internals;
}
const { TurnkeyClient } = (await import(file)) as { TurnkeyClient: Opened };
const { TurnkeyClient: TurnkeyClient2 } = (await import(file2)) as {
  TurnkeyClient: Opened;
};
const { AttestedStamper } = (await import(attested.pathname)) as {
  AttestedStamper: new (apiKeyStamper: object) => object;
};

/** Keys and sessions of one person's browser, which keeps both where node has nothing (IndexedDB and its like). */
class BrowserStore {
  private readonly keys = new Map<string, ApiKeyPair>();
  private readonly sessions = new Map<string, string>();
  /** Public key of the pair that signs now. */
  current = '';
  /** Who is logged in, for what the client asks that of. */
  session: object | undefined;

  createKeyPair = (): Promise<string> => {
    const key = generateApiKeyPair((length) => crypto.getRandomValues(new Uint8Array(length)));
    this.keys.set(key.publicKey, key);
    this.current = key.publicKey;
    return Promise.resolve(key.publicKey);
  };

  setTemporaryPublicKey = (publicKey: string): void => void (this.current = publicKey);
  clearTemporaryPublicKey = (): void => undefined;
  getTemporaryPublicKey = (): string => this.current;
  sign = (message: string, format = 'raw', publicKey = this.current): Promise<string> => {
    const key = Buffer.from(this.keys.get(publicKey)!.privateKey, 'hex');
    const signature = p256.sign(Buffer.from(message), key, { format: format === 'der' ? 'der' : 'compact' });
    return Promise.resolve(Buffer.from(signature).toString('hex'));
  };

  stamp = (body: string): Promise<object> => {
    const { headerName, headerValue } = stampBody(body, this.keys.get(this.current)!);
    return Promise.resolve({ stampHeaderName: headerName, stampHeaderValue: headerValue });
  };

  deleteKeyPair = (publicKey: string): Promise<void> => Promise.resolve(void this.keys.delete(publicKey));
  listKeyPairs = (): Promise<string[]> => Promise.resolve([]);
  listSessionKeys = (): Promise<string[]> => Promise.resolve([...this.sessions.keys()]);
  getSession = (): Promise<undefined> => Promise.resolve(undefined);
  getActiveSession = (): Promise<object | undefined> => Promise.resolve(this.session);
  storeSession = (token: string, name: string): Promise<void> => Promise.resolve(void this.sessions.set(name, token));

  keyOf(publicKey: string): ApiKeyPair {
    return this.keys.get(publicKey)!;
  }
}

/** What a person has besides the client. */
interface Devices {
  usePasskey(stamper: PasskeyStamper): void;
  useWallet(stamp: (body: string) => Stamped): void;
}

/** What the tests use of its second major version, which has other calls for codes. */
export interface CoreClient2 {
  initOtp(params: object): Promise<{ otpId: string; otpEncryptionTargetBundle: string }>;
  createApiKeyPair(): Promise<string>;
  signUpWithOtp(params: object): Promise<{ sessionToken: string }>;
  loginWithOtp(params: object): Promise<{ sessionToken: string }>;
  createWallet(params: object): Promise<string>;
  signMessage(params: object): Promise<{ r: string; s: string; v: string }>;
  readonly httpClient: CoreClient['httpClient'];
}

/** That version, unmodified, for one person. */
export function coreClient2(config: CoreConfig): { readonly client: CoreClient2; readonly store: BrowserStore } {
  const store = new BrowserStore();
  const client = new TurnkeyClient2(config, store) as unknown as CoreClient2 & Internals & { attestedStamper: object };
  client.storageManager = store;
  client.attestedStamper = new AttestedStamper(store);
  client.httpClient = client.createHttpClient();
  return { client, store };
}

interface CoreConfig {
  readonly apiBaseUrl: string;
  readonly authProxyUrl: string;
  readonly authProxyConfigId: string;
  readonly organizationId: string;
}

/** The published client, unmodified, for one person. `store` has the keys that it makes. */
export function coreClient(config: CoreConfig): {
  readonly client: CoreClient & Devices;
  readonly store: BrowserStore;
} {
  const store = new BrowserStore();
  const client = new TurnkeyClient(config, store);
  client.storageManager = store;
  client.httpClient = client.createHttpClient();
  const devices: Devices = {
    usePasskey(stamper) {
      // The client asks a page or a phone for a passkey, and looks here for which of them it runs on.
      Object.defineProperty(globalThis, 'RN$Bridgeless', { value: true, configurable: true });
      client.passkeyStamper = stamper;
      client.httpClient = client.createHttpClient();
    },
    useWallet(stamp) {
      const stamper = { setProvider: () => undefined, stamp: (body: string) => Promise.resolve(stamp(body)) };
      client.walletManager = { stamper };
      client.httpClient = client.createHttpClient();
    },
  };
  return { client: Object.assign(client, devices), store };
}
