import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../e2e/until.js';

const file = new URL('../../deploy/haproxy.cfg', import.meta.url);

/** HAProxy with the configuration that we publish, on loopback; its answers say which coordinator gave them. */
export class LoadBalancer {
  private constructor(
    readonly url: string,
    private readonly folder: string,
    private readonly child: ChildProcess,
  ) {}

  /** @param coordinators their URLs, by name @throws {Error} if haproxy is not installed */
  static async start(coordinators: Readonly<Record<string, string>>): Promise<LoadBalancer> {
    const folder = await mkdtemp(join(tmpdir(), 'countersign-balancer-'));
    const [api, inside] = [await freePort(), await freePort()];
    const servers = Object.entries(coordinators).map(([name, url]) => `  server ${name} ${new URL(url).host}`);
    const text = (await readFile(file, 'utf8'))
      .replace('bind :8080', `bind 127.0.0.1:${api}`)
      .replace('bind :8081', `bind 127.0.0.1:${inside}`)
      // Names of containers.
      .replace(/^resolvers docker\n(?: .*\n)+/m, '')
      .replace(' resolvers docker init-addr libc,none', '')
      .replace(/(?:^ {2}server .*\n?)+/m, `${servers.join('\n')}\n  http-after-response set-header X-Served-By %s\n`);
    await writeFile(join(folder, 'haproxy.cfg'), text);
    const child = spawn('haproxy', ['-db', '-f', join(folder, 'haproxy.cfg')], { stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const output of [child.stdout, child.stderr])
      output.setEncoding('utf8').on('data', (more: string) => (said += more));
    const missing = once(child, 'error').then(([error]: unknown[]) => {
      throw new Error('haproxy does not start: install it (apt-get install haproxy)', { cause: error });
    });
    const balancer = new LoadBalancer(`http://127.0.0.1:${api}`, folder, child);
    const isUp = until('the load balancer has a coordinator', async () => {
      if (child.exitCode !== null) throw new Error(`haproxy ended: ${said}`);
      const answer = await fetch(`${balancer.url}/balancer/health`).catch(() => undefined);
      return answer?.status === 200;
    });
    await Promise.race([isUp, missing]);
    return balancer;
  }

  async stop(): Promise<void> {
    if (this.child.exitCode === null) {
      this.child.kill('SIGTERM');
      await once(this.child, 'close');
    }
    await rm(this.folder, { recursive: true });
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}
