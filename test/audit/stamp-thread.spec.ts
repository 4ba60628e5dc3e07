import type { Vote } from '../../src/domain/activity/events.js';
import { StampThread } from '../../src/audit/verify/stamp-thread.js';
import { goldenStream } from '../golden/streams.js';

/** A genuine vote of a recorded history. */
const genuine = goldenStream('consensus.v1')
  .map(({ data }) => (data as { vote?: Vote }).vote)
  .find((vote) => vote !== undefined && vote.scheme === 'SIGNATURE_SCHEME_TK_API_P256')!;

test('each stamp gets its own answer, also when a later list is done before an earlier one', async () => {
  const thread = new StampThread();
  try {
    // One that cannot even be read takes no time, so a list of them is done at once.
    const unreadable = { ...genuine, publicKey: 'not hex' };
    const lists = Array.from({ length: 20 }, (_, at) =>
      Array.from({ length: 50 }, () => (at % 2 ? unreadable : genuine)),
    );
    const problems = await Promise.all(
      lists.map((list) => Promise.all(list.map((vote) => thread.problemWith({ vote })))),
    );
    const wrong = problems.map((list) => list.filter((problem) => problem !== undefined).length);
    expect(wrong).toEqual(lists.map((_, at) => (at % 2 ? 50 : 0)));
  } finally {
    await thread.close();
  }
});
