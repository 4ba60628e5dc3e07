import { BadUsage } from '../bad-usage.js';
import { exitCodes } from '../exit-codes.js';
import { replay } from '../replay.js';
import type { StoreOptions } from '../stores.js';
import type { Terminal } from '../terminal.js';
import { verify } from '../verify.js';
import type { Cast } from './people.js';
import type { Stage } from './stage.js';

/** Retells the tour from what is recorded, using commands that everyone has; then verifies all of it. */
export async function again(
  { title, say, note }: Stage,
  terminal: Terminal,
  store: StoreOptions,
  { client, before, activityId }: Pick<Cast, 'client' | 'before' | 'activityId'>,
): Promise<void> {
  const shown = (text: string): void => {
    for (const line of text.trimEnd().split('\n')) say(`   ${line}`);
  };
  const { organizationId } = client;
  const program = programAsTyped(terminal);
  const where = store.dataDir === undefined ? '' : ` --data-dir ${store.dataDir}`;

  title("All of it again, from what is recorded: the life of Alice's request");
  note(`$ ${program} replay${where} --activity ${activityId}`);
  try {
    shown((await replay(terminal, { ...store, at: 'end', tty: false, activity: activityId }, organizationId)).text);
  } catch (error) {
    if (!(error instanceof BadUsage)) throw error;
    note(`not here: ${error.message}`);
    return;
  }

  title('What this tour has changed');
  note(`$ ${program} replay${where} --diff ${before}`);
  shown((await replay(terminal, { ...store, at: 'end', tty: false, diff: String(before) }, organizationId)).text);

  title('Every hash, every stamp, every decision');
  note(`$ ${program} verify${where}`);
  const { text, exitCode } = await verify(terminal, { ...store, rows: true, quiet: true });
  shown(text);
  if (exitCode !== exitCodes.done) throw new Error('the store does not verify');
}

/** How the reader runs this program: by npm in a clone, by npx in a project, or directly. */
function programAsTyped({ env }: Terminal): string {
  if (env['npm_lifecycle_event'] === 'tour') return 'node dist/cli/countersign.js';
  return env['npm_command'] === 'exec' ? 'npx countersign' : 'countersign';
}
