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

/** nginx with the configuration that we publish, without TLS, on loopback. */
export class Nginx {
  private constructor(
    readonly url: string,
    private readonly folder: string,
    private readonly child: ChildProcess,
    private readonly errors: () => string,
  ) {}

  /** The requests that it answered with an error: whom it asked, with which outcomes. And what it says of others' connections. */
  async failures(): Promise<readonly string[]> {
    const requests = (await readFile(join(this.folder, 'access'), 'utf8')).split('\n');
    const failed = requests.filter((line) => line !== '' && !line.startsWith('200 '));
    const errors = this.errors().split('\n');
    return [...failed, ...errors.filter((line) => line !== '' && !line.includes('Connection refused'))];
  }

  /** @throws {Error} if nginx is not installed */
  static async start(coordinators: readonly string[]): Promise<Nginx> {
    const folder = await mkdtemp(join(tmpdir(), 'countersign-nginx-'));
    const port = await freePort();
    const servers = coordinators.map((url) => `  server ${new URL(url).host} max_fails=0;`);
    const site = (await readFile(new URL('../../deploy/nginx.conf', import.meta.url), 'utf8'))
      .replace('listen 443 ssl', `listen 127.0.0.1:${port}`)
      .replace(/^ {2}ssl_.*\n/gm, '')
      .replace(/(?:^ {2}server .* max_fails=0;\n)+/m, `${servers.join('\n')}\n`);
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `  ${name}_temp_path ${folder}/${name};\n`,
    );
    const tries = `'$status $time_iso8601 $request_uri $upstream_addr: $upstream_status after $upstream_response_time s'`;
    const log = `  log_format tries ${tries};\n  access_log ${folder}/access tries;\n`;
    const text = `user root;\ndaemon off;\npid ${folder}/pid;\nerror_log stderr error;\nevents {}\nhttp {\n${log}${temporary.join('')}${site}}\n`;
    await writeFile(join(folder, 'nginx.conf'), text);
    const child = spawn('nginx', ['-c', join(folder, 'nginx.conf')], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (more: string) => (said += more));
    const missing = once(child, 'error').then(([error]: unknown[]) => {
      throw new Error('nginx does not start: install it (apt-get install nginx-light)', { cause: error });
    });
    const nginx = new Nginx(`http://127.0.0.1:${port}`, folder, child, () => said);
    const isUp = until('nginx responds', async () => {
      if (child.exitCode !== null) throw new Error(`nginx ended: ${said}`);
      const answer = await fetch(`${nginx.url}/.well-known/jwks.json`).catch(() => undefined);
      return answer !== undefined;
    });
    await Promise.race([isUp, missing]);
    return nginx;
  }

  async stop(): Promise<void> {
    if (this.child.exitCode === null) {
      this.child.kill('SIGTERM');
      await once(this.child, 'close');
    }
    await rm(this.folder, { recursive: true });
  }
}
