import type { ResponseOf } from '../../client/activity-client.js';
import type { StampingClient } from '../../client/stamping-client.js';
import { printable } from '../layout.js';
import { whatIfLines } from '../what-if.js';
import type { Stage } from './stage.js';

/** Why an activity waits, and the smallest changes that would have flipped the decision. */
export async function whyItWaits({ say, note }: Stage, client: StampingClient, activityId: string): Promise<void> {
  note('POST /public/v1/query/explain_activity');
  const { proof } = await client.query<ResponseOf<'explain_activity'>>('explain_activity', { activityId });
  if (!proof) return;
  say(`   ${printable(proof.text)}`);
  for (const { outcome, changes } of proof.flips.slice(0, 4)) {
    say(`   ${printable(changes.map(({ text }) => text).join(', and '))}: ${outcome}`);
  }
}

/** What lint finds in the policies of the organization. */
export async function linted({ say, note, green }: Stage, client: StampingClient): Promise<void> {
  note('POST /public/v1/query/lint_policies');
  const { findings } = await client.query<ResponseOf<'lint_policies'>>('lint_policies');
  if (findings.length === 0) say(`   ${green('nothing found')}`);
  for (const { severity, policyName, text } of findings.slice(0, 4)) {
    say(`   ${severity}: policy “${printable(policyName)}”: ${printable(text)}`);
  }
  note(
    'docs/how-to/policies-as-code.md keeps policies in a folder, with tests; analyze-your-policies.md proves what can never happen',
  );
}

/** Who could make a waiting activity pass, from the policies alone. */
export async function whoCould({ say, note }: Stage, client: StampingClient, activityId: string): Promise<void> {
  note('POST /public/v1/query/list_minimal_approvers');
  const { minimalSets } = await client.query<ResponseOf<'list_minimal_approvers'>>('list_minimal_approvers', {
    activityId,
  });
  for (const { text } of minimalSets) say(`   it passes with ${printable(text)}`);
}

/** What a request would come to; nothing is recorded. */
export async function triedOnly(
  { say, note, red, green }: Stage,
  client: StampingClient,
  activity: { readonly type: string; readonly parameters: object },
): Promise<void> {
  note('POST /public/v1/query/dry_run; nothing is recorded, no stamp of it fits a submit');
  const request = { timestampMs: String(Date.now()), activity };
  const { outcome } = await client.query<ResponseOf<'dry_run'>>('dry_run', request);
  say(outcome.startsWith('deny') ? `   ${red('it would be denied')}` : `   ${green('it would not be denied')}`);
}

/** What would have come of the tour's requests, had its policy asked for Alice alone. */
export async function ifAliceAlone(
  { say, note }: Stage,
  client: StampingClient,
  { policy, aliceId, before }: { readonly policy: string; readonly aliceId: string; readonly before: number },
): Promise<void> {
  note('POST /public/v1/query/what_if: every request of the tour is decided again');
  const consensus = `approvers.any(user, user.id == '${aliceId}')`;
  const draft = { changedPolicies: [{ policy, consensus }] };
  const found = await client.query<ResponseOf<'what_if'>>('what_if', { draft, from: before + 1 });
  for (const line of whatIfLines(found).slice(1)) if (line !== '') say(`   ${printable(line)}`);
}
