import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { exchange } from './exchange.js';
import { codeOf } from './one-time-codes.js';

let coordinator: TestCoordinator;

beforeAll(async () => {
  coordinator = await startCoordinator();
});

afterAll(() => coordinator.close());

function call(path: string, body: object) {
  return exchange(`${coordinator.url}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': coordinator.root.authProxyConfigId },
    body: JSON.stringify(body),
  });
}

const fullWidth = (code: string) =>
  code.replace(/[!-~]/g, (character) => String.fromCharCode(character.charCodeAt(0) + 0xfee0));

test.each<[string, (code: string) => string]>([
  ['spaces', (code) => ` ${code.slice(0, 3)} ${code.slice(3, 6)}\u00a0${code.slice(6)}`],
  ['full-width characters', fullWidth],
  ['lower case', (code) => code.toLowerCase()],
])('a code that is typed with %s is right', async (how, typed) => {
  const contact = `${how.replaceAll(' ', '-')}@example.com`;
  const { body } = await call('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact });
  const { otpId } = body as { otpId: string };
  const otpCode = typed(await codeOf(coordinator, otpId));
  const { publicKey } = coordinator.newKey();
  expect(await call('otp_verify', { otpId, otpCode, publicKey })).toMatchObject({ status: 200 });
});
