/**
 * The number of the rules that decide, recorded with each decision: what policies say of a request, whose approvals
 * count, what verbs refuse, and their effects. A history whose decisions have another number is not decided again. From
 * release 0.1.0 on, raise it with every change that could alter the outcome or the events of any request, and keep the
 * earlier rules beside the new ones, so that history can be decided again as it was (docs/adr/0003).
 */
export const rulesNumber = 1;
