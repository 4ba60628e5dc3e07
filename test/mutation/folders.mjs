/**
 * What is mutated, the specs that must notice, and the least score in per cent. Each mutant loads the specs whose tests cover it,
 * so a folder names the few that test it closely.
 */
export const folders = {
  machine: {
    mutate: 'src/domain/activity/machine.ts',
    specs: ['test/domain/activity/machine.spec.ts'],
    least: 92,
  },
  policy: {
    mutate: 'src/domain/policy',
    specs: [
      'test/domain/policy/!(editor-grammar).spec.ts',
      'test/audit/@(lint-policies|lint-reach|minimal-approvers|policy-steps).spec.ts',
      'test/activities/@(contract-interfaces|policies|private-keys|tags).spec.ts',
    ],
    least: 92,
  },
  decide: {
    mutate: 'src/decide',
    specs: [
      'test/decide/*.spec.ts',
      'test/activities/*.spec.ts',
      'test/coordinator/@(attempts|requests|sub-organizations).spec.ts',
      'test/e2e/@(consensus|explained|invitations|quorum-members|requests|sub-organizations).spec.ts',
    ],
    least: 88,
  },
  stamps: {
    mutate: 'src/stamps',
    specs: ['test/stamps/*.spec.ts'],
    least: 88,
  },
};
