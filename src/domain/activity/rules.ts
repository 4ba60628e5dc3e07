/**
 * The number of the rules that decisions are made by, recorded with each of them: what policies say of a request, whose
 * approvals count, what verbs refuse and what they make happen. From the first release on, raise it with every change that
 * could change the outcome or the events of any request, and keep the old rules, frozen, so that history can be decided again
 * as it was (docs/adr/0023).
 *
 * 2: policies are asked in the order of their ids, and one budget of steps holds for all of a request (docs/adr/0039).
 *
 * 3: everything that is stored has a limit, which a parent and the operator can set (docs/adr/0053).
 *
 * 4: of the steps of a request, 20 000 are for reading on the main thread, and a decision has the others (docs/adr/0061).
 */
export const rulesNumber = 4;
