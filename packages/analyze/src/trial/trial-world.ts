import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AcceptedMessage, Carrier } from 'countersign/internal';

/** Keeps the newest message to each address, as a mailbox does, until it is read. */
export class Mailbox implements Carrier {
  private readonly kept = new Map<string, string>();
  private readonly readers = new Map<string, (text: string) => void>();

  carry({ to, text }: AcceptedMessage): Promise<void> {
    const reader = this.readers.get(to);
    this.readers.delete(to);
    if (reader) reader(text);
    else this.kept.set(to, text);
    return Promise.resolve();
  }

  /** The text of the newest message that was not read yet, or of the next one. */
  read(address: string): Promise<string> {
    const text = this.kept.get(address);
    this.kept.delete(address);
    return text === undefined
      ? new Promise((resolve) => void this.readers.set(address, resolve))
      : Promise.resolve(text);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

const exampleProvider = 'OAUTH2_PROVIDER_EXAMPLE';

/** An OAuth 2.0 provider on loopback that takes every code, always for the same person: the settings by which it is known. */
export async function startProvider(): Promise<Readonly<Record<string, string>>> {
  const answer = JSON.stringify({ access_token: 'example', token_type: 'bearer', id: 'somebody' });
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = { tokenUrl: url, userUrl: url, userId: 'id', scopes: [], clientAuthentication: 'basic' };
  return {
    OAUTH2_PROVIDERS: JSON.stringify({ [exampleProvider]: provider }),
    // No issuer outside is asked for its keys.
    OIDC_ISSUERS: url,
    ALLOW_PRIVATE_NETWORK: 'true',
  };
}
