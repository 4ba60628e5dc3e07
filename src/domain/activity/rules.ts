/**
 * The number of the rules that decide, recorded with each decision: what policies say of a request, whose approvals
 * count, what verbs refuse, and their effects. From the first release on, raise it with every change that could alter
 * the outcome or the events of any request, and keep the old rules, frozen, so that history can be decided again as it
 * was (docs/adr/0023).
 *
 * 2: policies are evaluated in the order of their ids, and one budget of steps covers the whole request
 * (docs/adr/0039).
 *
 * 3: everything stored has a limit, which a parent and the operator can set (docs/adr/0053).
 *
 * 4: of the steps of a request, 20 000 are for reading on the main thread, and the rest are for the decision
 * (docs/adr/0061).
 *
 * 5: a policy whose condition demands another activity is not evaluated (docs/adr/0082).
 *
 * 6: of Solana's instructions, those that hand over an account without moving anything make transfers unreadable, and the
 * parts of a batch are instructions (docs/adr/0116).
 *
 * 7: what stands for several things is in doubt for each, votes whose credential is gone are nobody's word, and votes have
 * room (docs/adr/0118).
 *
 * 8: an interface that policies read by stays until the root quorum deletes it, and the domain of typed data is read as
 * EIP-712 declares it (docs/adr/0121).
 */
export const rulesNumber = 8;
