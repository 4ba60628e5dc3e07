import { compileClause } from '../../../src/domain/policy/language.js';
import { rootsOf } from '../../../src/domain/policy/roots.js';
import { environment } from './environment.js';

test.each([
  ["activity.type[0..8] == 'ACTIVITY'", ['activity']],
  ["[activity.type, wallet.id].contains('x')", ['activity', 'wallet']],
  ["!(wallet.id == 'x') && activity.action == 'SIGN'", ['activity', 'wallet']],
  ["'x' == 'y'", []],
])('%s reads %p', (text, roots) => {
  expect([...rootsOf(compileClause(text, 'condition', environment))].sort()).toEqual(roots);
});
