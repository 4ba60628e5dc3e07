import type { KeyringPort } from '../../src/ports/keyring.js';
import type { ActivityDefinition, DecideContext, PrepareContext } from '../../src/activities/define-activity.js';
import type { RecordedActivity } from '../../src/activities/recorded-activity.js';
import type { OrganizationView } from '../../src/domain/organization/organization.js';
import type { PreparePorts } from '../../src/ports/prepare.js';

/** Whether the compiler takes a value for another. Saying it wrongly below does not compile. */
type Fits<Value, Wanted> = [Value] extends [Wanted] ? true : false;

interface Asked {
  name: string;
}

interface Answered {
  code: string;
}

/** A verb that decides on a code, and sends a message when it is done. */
interface Complete {
  readonly kind: 'activity';
  readonly type: 'ACTIVITY_TYPE_TEST';
  readonly summary: string;
  readonly intent: new () => Asked;
  readonly result: new () => Answered;
  readonly policy: 'root-quorum-only';
  prepare(intent: Asked, ports: PreparePorts, context: PrepareContext): Promise<{ code: string; message: string }>;
  recall(intent: Asked, recorded: RecordedActivity<Answered>, organization: OrganizationView): { code: string };
  decide(intent: Asked, context: DecideContext, prepared: { code: string }): { events: []; result: Answered };
  afterwards(prepared: { message: string }, ports: PreparePorts): void;
}

type Verb = ActivityDefinition<
  'ACTIVITY_TYPE_TEST',
  Asked,
  Answered,
  { code: string },
  { code: string; message: string }
>;

/** The verb with another member of that name. */
type With<Member extends object> = Omit<Complete, keyof Member> & Member;

// The compiler is the test.
describe('a verb that prepares', () => {
  it('says how history gives back what it prepared', () => {
    const complete: Fits<Complete, Verb> = true;
    const withoutRecall: Fits<Omit<Complete, 'recall'>, Verb> = false;
    const withoutPrepare: Fits<Omit<Complete, 'prepare'>, Verb> = false;
    const withNeither: Fits<Omit<Complete, 'prepare' | 'recall'>, Verb> = true;
    expect([complete, withoutRecall, withoutPrepare, withNeither]).toEqual([true, false, false, true]);
  });

  it('prepares everything that it recalls, and recalls everything that it decides on', () => {
    const preparesLess: Fits<With<{ prepare(): Promise<{ message: string }> }>, Verb> = false;
    const recallsLess: Fits<With<{ recall(): { message: string } }>, Verb> = false;
    expect([preparesLess, recallsLess]).toEqual([false, false]);
  });

  it('asks the keyring to sign, or the world, and says the same of recalling it', () => {
    type Signs = Omit<
      With<{ sign(intent: Asked, keyring: Pick<KeyringPort, 'sign'>): Promise<{ code: string; message: string }> }>,
      'prepare'
    >;
    const signs: Fits<Signs, Verb> = true;
    const withoutRecall: Fits<Omit<Signs, 'recall'>, Verb> = false;
    const both: Fits<Signs & Complete, Verb> = false;
    expect([signs, withoutRecall, both]).toEqual([true, false, false]);
  });

  it('can leave nothing outside by signing', () => {
    type Passed = Parameters<NonNullable<Verb['sign']>>[1];
    const sign: Fits<Passed, Pick<KeyringPort, 'sign'>> = true;
    const createWallet: Fits<Passed, Pick<KeyringPort, 'createWallet'>> = false;
    expect([sign, createWallet]).toEqual([true, false]);
  });

  it('decides on nothing that history does not keep', () => {
    type Passed = Parameters<Verb['decide']>[2];
    const code: Fits<Passed, { code: string }> = true;
    const message: Fits<Passed, { message: string }> = false;
    expect([code, message]).toEqual([true, false]);
  });

  it('reads its own result from history', () => {
    type Recorded = Parameters<NonNullable<Verb['recall']>>[1]['result'];
    const own: Fits<Recorded, { code: string }> = true;
    const other: Fits<Recorded, { cod: string }> = false;
    expect([own, other]).toEqual([true, false]);
  });
});
