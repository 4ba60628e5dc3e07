import { EventStoreDouble } from './double.js';
import { Log } from './log.js';

/** Three servers on one log, one of which leads. Elections are made by the test. */
export class DoubleCluster {
  #leader = 0;

  private constructor(readonly nodes: readonly EventStoreDouble[]) {}

  static async start(): Promise<DoubleCluster> {
    const log = new Log();
    const cluster = new DoubleCluster(await Promise.all([1, 2, 3].map(() => EventStoreDouble.start(log))));
    cluster.elect(0);
    return cluster;
  }

  get connectionString(): string {
    return `esdb://${this.nodes.map(({ port }) => `127.0.0.1:${port}`).join()}?tls=false`;
  }

  get leader(): EventStoreDouble {
    return this.nodes[this.#leader]!;
  }

  /** The others know nothing of it until there is an election. */
  hangLeader(): void {
    this.leader.hang();
  }

  /** All nodes see that this one leads; those that hang see it when they go on. */
  elect(index: number): void {
    this.#leader = index;
    const { port } = this.leader;
    const members = this.nodes.map((node) => ({ host: '127.0.0.1', port: node.port, leader: node.port === port }));
    for (const node of this.nodes) {
      node.members = members;
      node.leader = node.port === port ? undefined : { host: '127.0.0.1', port };
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }
}
