import { Agent as HttpAgent, type AgentOptions, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Duplex } from 'node:stream';

/** Connections that are kept while nobody uses them: in all, and of one user to one host. */
const mostKept = 128;
const mostKeptOfOne = 8;
/** How long one is kept, in milliseconds: less than the five seconds after which many servers close it. */
export const keptMs = 4_000;

/** Options of a request whose connection may be used again, but only for another that names the same. */
interface Keepable {
  /** The user of the connection, and the addresses that were checked for it. */
  readonly keptFor?: readonly string[];
}
export type KeepableRequest = RequestOptions & Keepable;

const options: AgentOptions = { keepAlive: true, maxFreeSockets: mostKeptOfOne, timeout: keptMs };

/** The connections that one client keeps. */
export class KeptConnections {
  readonly http = keeping(new HttpAgent(options), () => this.isRoom());
  readonly https = keeping(new HttpsAgent(options), () => this.isRoom());

  private isRoom(): boolean {
    const kept = [this.http, this.https].flatMap(({ freeSockets }) => Object.values(freeSockets));
    return kept.reduce((sum, sockets) => sum + (sockets?.length ?? 0), 0) < mostKept;
  }
}

/** An agent that uses a connection again only for what it is kept for, and keeps one only where there is room. */
function keeping<Made extends HttpAgent>(agent: Made, isRoom: () => boolean): Made {
  const nameOf = agent.getName.bind(agent);
  const mayKeep = agent.keepSocketAlive.bind(agent);
  agent.getName = (request: KeepableRequest = {}) => `${nameOf(request)} ${JSON.stringify(request.keptFor)}`;
  agent.keepSocketAlive = (socket: Duplex) => isTrue(mayKeep(socket)) && isRoom();
  return agent;
}

/** Node's own answer, which its types leave out: false when the peer is about to close the connection. */
const isTrue = (answer: unknown): boolean => answer === true;
