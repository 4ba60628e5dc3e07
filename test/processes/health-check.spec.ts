import { execFile, spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { promisify } from 'node:util';
import { readDockerfile } from '../deployment/read.js';
import { Installation, stop } from '../e2e/installation.js';

describe('the health check of the image', () => {
  const instructions = readDockerfile().flatMap((stage) => stage.instructions);
  const { words } = instructions.find(({ name }) => name === 'HEALTHCHECK')!;
  const [, options, command] = /^((?:--\S+ )+) *CMD (\[.*\])$/.exec(words)!;
  const [program, ...args] = JSON.parse(command!) as string[];

  // A plain folder and nothing of ours around it, as in the container.
  const healthy = async (port: number): Promise<boolean> =>
    promisify(execFile)(program!, args, {
      cwd: tmpdir(),
      env: { PATH: process.env['PATH'], PORT: String(port) },
      timeout: 8_000,
    }).then(
      () => true,
      (error: { code: unknown }) => {
        // Docker reserves every other code.
        expect(error.code).toBe(1);
        return false;
      },
    );

  async function answering(status: number | 'never'): Promise<{ port: number; asked: string[]; close: () => void }> {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url!);
      if (status !== 'never') response.writeHead(status).end('{}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const close = () => {
      server.closeAllConnections();
      server.close();
    };
    return { port: (server.address() as AddressInfo).port, asked, close };
  }

  test('needs Node only, and no shell', () => {
    expect(program).toBe('node');
    expect(spawnSync('node', ['--check', '-'], { input: args[1]! }).status).toBe(0);
  });

  test('is healthy with a running server, and not with one that has ended', async () => {
    const installation = await Installation.make();
    try {
      const server = await installation.start();
      const port = Number(new URL(server.url).port);
      expect(await healthy(port)).toBe(true);
      await stop(server);
      expect(await healthy(port)).toBe(false);
    } finally {
      await installation.remove();
    }
  });

  test.each([503, 404])('is not healthy with a server that responds %d', async (status) => {
    const { port, asked, close } = await answering(status);
    expect(await healthy(port)).toBe(false);
    expect(asked).toEqual(['/health/ready']);
    close();
  });

  test('gives up by itself on a server that does not answer, before Docker would', async () => {
    const { port, close } = await answering('never');
    const from = performance.now();
    expect(await healthy(port)).toBe(false);
    expect(performance.now() - from).toBeLessThan(1_000 * Number(/--timeout=(\d+)s/.exec(options!)![1]));
    close();
  });
});
