import { OtherWriters } from '../../src/ledger/other-writers.js';

test('of the 1,000 organizations that others wrote to last, it is known that they did', () => {
  const others = new OtherWriters();
  for (const organizationId of ['first', 'second', 'first']) others.wrote(organizationId);
  for (let count = 0; count < 999; count++) others.wrote(`other ${count}`);
  expect(['first', 'second', 'other 998'].map((one) => others.haveWritten(one))).toEqual([true, false, true]);
});
