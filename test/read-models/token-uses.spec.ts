import type { OrganizationEvent } from '../../src/domain/organization/organization.js';
import { tokenUsesModel, tokenUsesOf } from '../../src/read-models/token-uses.js';
import { id } from '../activities/given.js';
import { recorded, rowsOf, timeOf } from './projected.js';

const hours = 3_600;
const used = (tokenId: string, expiresAt: number): OrganizationEvent => ({
  type: 'OidcTokenUsed',
  data: { tokenId, usage: 'USAGE_TYPE_SIGNUP', expiresAt },
});
const mine = recorded(id(1), [used('mine', timeOf(60))]);
/** Of another organization, recorded by a clock that is so many hours ahead. */
const ahead = (by: number) => recorded(id(2), [used('theirs', timeOf(by * hours + 60))], by * hours);

it('remembers the use of a token when a clock that is hours ahead records another', () => {
  expect(tokenUsesOf(rowsOf(tokenUsesModel, mine, ahead(23)), 'mine')).toEqual(new Set(['USAGE_TYPE_SIGNUP']));
});

it('remembers it for ever, as a clock that was ahead may have expired the token', () => {
  const rows = rowsOf(tokenUsesModel, mine, ahead(25));
  expect(tokenUsesOf(rows, 'mine')).toEqual(new Set(['USAGE_TYPE_SIGNUP']));
  expect(tokenUsesOf(rows, 'theirs')).toEqual(new Set(['USAGE_TYPE_SIGNUP']));
});
