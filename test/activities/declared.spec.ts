import { defineActivity } from '../../src/activities/define-activity.js';
import { Text } from '../../src/wire/fields.js';

class Asked {
  @Text()
  name!: string;
}

class Answered {
  @Text()
  code!: string;
}

const verb = {
  type: 'ACTIVITY_TYPE_TEST',
  summary: 'Tests.',
  intent: Asked,
  result: Answered,
  policy: 'root-quorum-only',
} as const;

// The compiler is the test: each comment fails where it finds no error below.
describe('a verb that prepares', () => {
  it('says how history gives back what it prepared', () => {
    const complete = defineActivity({
      ...verb,
      prepare: ({ name }) => Promise.resolve({ code: name, message: `code ${name}` }),
      recall: (_intent, recorded) => ({ code: recorded.result.code }),
      decide: (_intent, _context, { code }) => ({ events: [], result: { code } }),
      afterwards: ({ message }) => void message.length,
    });
    expect(complete.recall).toBeDefined();

    // @ts-expect-error -- there is no `recall`
    defineActivity({
      ...verb,
      prepare: () => Promise.resolve({ code: 'a' }),
      decide: () => ({ events: [], result: { code: 'a' } }),
    });
  });

  it('prepares all that is recalled, and decides on nothing else', () => {
    defineActivity({
      ...verb,
      // @ts-expect-error -- a member is missing that `decide` counts on
      prepare: () => Promise.resolve({ message: 'code a' }),
      recall: (_intent, recorded) => ({ code: recorded.result.code }),
      decide: (_intent, _context, { code }) => ({ events: [], result: { code } }),
    });
    defineActivity({
      ...verb,
      prepare: () => Promise.resolve({ code: 'a', message: 'code a' }),
      recall: (_intent, recorded) => ({ code: recorded.result.code }),
      // @ts-expect-error -- no event has the message
      decide: (_intent, _context, { message }) => ({ events: [], result: { code: String(message) } }),
    });
    defineActivity({
      ...verb,
      prepare: () => Promise.resolve({ code: 'a' }),
      // @ts-expect-error -- results have no member of that name
      recall: (_intent, recorded) => ({ code: String(recorded.result.cod) }),
      decide: (_intent, _context, { code }) => ({ events: [], result: { code } }),
    });
  });
});
