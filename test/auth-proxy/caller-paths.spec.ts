import { CallerPaths } from '../../src/auth-proxy/caller-paths.js';
import { callerPath, strangersPath } from '../../src/fairness/fair-queue.js';

const configuration = (name: string) => ({
  configId: `configuration ${name}`,
  organizationId: `organization ${name}`,
  organizationName: name,
  settings: { allowedOrigins: [], allowedAuthMethods: [] },
});

test('the organizations of 10,000 configurations are remembered: their callers take turns together', () => {
  const paths = new CallerPaths();
  expect(paths.of('configuration first', 'network')).toEqual(callerPath('network'));
  for (const name of ['first', 'second']) paths.remember(configuration(name));
  expect(paths.of('configuration first', 'network')).toEqual(strangersPath('organization first', 'network'));
  for (let count = 0; count < 9_999; count++) paths.remember(configuration(`other ${count}`));
  // As before its first call: alone among the callers that nothing is known of.
  expect(paths.of('configuration first', 'network')).toEqual(callerPath('network'));
  expect(paths.of('configuration second', 'network')).toEqual(strangersPath('organization second', 'network'));
});
