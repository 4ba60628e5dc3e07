import { chromium, type Browser, type CDPSession, type Page } from 'playwright-core';

/** What the page saw to be wrong. */
type Complaint = string;

/** The browser of this run, see open-browser.mjs. */
export function connect(): Promise<Browser> {
  return chromium.connect(process.env['BROWSER_ENDPOINT']!);
}

/** A person with a page open, and a device that makes passkeys and always agrees. */
export class Visitor {
  /** Errors that nobody caught, and what the browser refused to do. */
  readonly complaints: Complaint[] = [];

  private constructor(
    readonly page: Page,
    private readonly devtools: CDPSession,
    private readonly authenticatorId: string,
  ) {
    page.on('pageerror', (error) => this.complaints.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') this.complaints.push(message.text());
    });
  }

  static async at(browser: Browser, url: string): Promise<Visitor> {
    const context = await browser.newContext();
    const page = await context.newPage();
    const devtools = await context.newCDPSession(page);
    await devtools.send('WebAuthn.enable');
    const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    const visitor = new Visitor(page, devtools, authenticatorId);
    await page.goto(url);
    return visitor;
  }

  /** The passkeys on the device: id in base64url, RP id, and how often each has signed. */
  async passkeys(): Promise<readonly { credentialId: string; rpId: string | undefined; signCount: number }[]> {
    const { authenticatorId } = this;
    const { credentials } = await this.devtools.send('WebAuthn.getCredentials', { authenticatorId });
    return credentials.map(({ credentialId, rpId, signCount }) => ({
      credentialId: Buffer.from(credentialId, 'base64').toString('base64url'),
      rpId,
      signCount,
    }));
  }

  /** From now on the person does, or does not, show face or finger. */
  async agrees(isUserVerified: boolean): Promise<void> {
    const { authenticatorId } = this;
    await this.devtools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified });
  }

  async leave(): Promise<void> {
    await this.page.context().close();
  }
}
