/** Exit codes of commands. Each is documented in docs/reference/command-line.md. */
export const exitCodes = {
  done: 0,
  failed: 1,
  badUsage: 2,
  denied: 3,
  waiting: 4,
  refused: 5,
  unreachable: 6,
  changes: 7,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** The meaning of each exit code, for the help and the reference. */
export const exitCodeMeanings: Readonly<Record<ExitCode, string>> = {
  0: 'done',
  1: 'failed, or a check found problems',
  2: 'invalid argument, setting, file or profile; nothing was done',
  3: 'denied by policies, or rejected by vote',
  4: 'the activity is waiting for approvals',
  5: 'the server refused the request; the message says why',
  6: 'the server cannot be reached, or is not available at the moment: try again',
  7: 'there are changes to apply; only with `policies plan --exit-code`',
};
