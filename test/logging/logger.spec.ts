import { Writable } from 'node:stream';
import { createLogger, nestLogger } from '../../src/logging/logger.js';

function capturing(level: string) {
  const lines: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  return { logger: createLogger(level, destination), lines };
}

test('writes one JSON object per line, without the name of the machine', () => {
  const { logger, lines } = capturing('info');
  logger.info({ model: 'users' }, 'read model stopped');
  expect(lines).toHaveLength(1);
  const line = JSON.parse(lines[0]!) as Record<string, unknown>;
  expect(Object.keys(line).sort()).toEqual(['level', 'model', 'msg', 'time']);
});

test('removes secrets by name, at the top and two levels down', () => {
  const { logger, lines } = capturing('debug');
  const secret = {
    'x-stamp': 'hush',
    'x-stamp-webauthn': 'hush',
    'x-stamp-attested': 'hush',
    'x-session': 'hush',
    authorization: 'hush',
    apiPrivateKey: 'hush',
    privateKey: 'hush',
    otpCode: 'hush',
    oidcToken: 'hush',
    verificationToken: 'hush',
    credentialBundle: 'hush',
    exportBundle: 'hush',
  };
  logger.info(secret, 'top');
  logger.warn({ headers: secret }, 'one down');
  logger.error({ request: { headers: secret } }, 'two down');
  const text = lines.join('');
  expect(text).not.toContain('hush');
  expect(text.match(/\[redacted\]/g)).toHaveLength(3 * Object.keys(secret).length);
});

test('what Nest says of its start is for debugging, its warnings and errors are for everybody', () => {
  const { logger, lines } = capturing('info');
  const nest = nestLogger(logger);
  nest.log('starting');
  nest.debug!('starting');
  nest.verbose!('starting');
  nest.warn('careful');
  nest.error('broken');
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(['careful', 'broken']);
});
