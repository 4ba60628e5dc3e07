import type { Analysis } from './consensus-analysis.js';
import type { Scope } from './evaluate.js';
import { approvalNamespaces } from './namespaces.js';
import { rootsOf } from './roots.js';
import type { CheckedExpression } from './syntax.js';
import { lettersOf, type Tally } from './tally.js';
import { AmbiguousText, Doubt, type PolicyType, type PolicyValue } from './types.js';
import type { Choice, Vote, Voter } from './votes.js';

/** The possible approvers, as far as one expression can tell them apart. */
export class VoterKinds {
  readonly voters: readonly Voter[];
  private readonly likeness: Likeness | undefined;

  constructor(
    consensus: CheckedExpression,
    candidates: ReadonlyMap<string, readonly Vote[]>,
    cast: readonly Vote[],
    tally: Tally,
  ) {
    const { analysis } = tally;
    if (analysis.kind === 'subsets') this.likeness = new Likeness(consensus, analysis, candidates, cast, tally.outer);
    this.voters = [...candidates].flatMap(([userId, votes]) =>
      votes.length > 0 ? [this.voterOf(userId, votes, tally)] : [],
    );
  }

  choiceOf(vote: Vote, tally: Tally, aliases = new Map<string, string>()): Choice {
    if (tally.analysis.kind !== 'symmetric') {
      return { vote, mark: this.likeness?.markOf(vote, aliases) ?? '', isNeutral: false };
    }
    const mark = lettersOf(vote, tally.analysis, tally);
    return { vote, mark, isNeutral: !/[^n]/.test(mark) };
  }

  private voterOf(userId: string, votes: readonly Vote[], tally: Tally): Voter {
    const aliases = new Map<string, string>();
    const choices = votes.map((vote) => this.choiceOf(vote, tally, aliases));
    if (tally.analysis.kind === 'ordered') return { userId, kind: userId, choices };
    const distinct = [...new Map(choices.map((choice) => [choice.mark, choice])).values()];
    distinct.sort((a, b) => (a.mark < b.mark ? -1 : 1));
    return { userId, kind: distinct.map(({ mark }) => mark).join('|'), choices: distinct };
  }
}

/**
 * Finds which votes an expression that relates them cannot tell apart: those that agree in every field that it reads. A
 * text that only one user has, and that nothing else names, is interchangeable with any other such text: swapping all
 * texts of two users changes nothing.
 */
class Likeness {
  /** In lower case, because some comparisons ignore it: who has a text, and which texts are not unique to a user. */
  private readonly holders = new Map<string, string>();
  private readonly shared = new Set<string>();
  private readonly isExact: boolean;
  /** The fields that the expression reads, by the list of approvals whose elements have them. */
  private readonly fields: readonly { readonly list: string; readonly field: string }[];

  constructor(
    consensus: CheckedExpression,
    analysis: Extract<Analysis, { kind: 'subsets' }>,
    candidates: ReadonlyMap<string, readonly Vote[]>,
    cast: readonly Vote[],
    outer: Scope,
  ) {
    const roots = [...rootsOf(consensus)];
    this.fields = [...approvalNamespaces.values()].flatMap(({ name: list, type }) =>
      roots.includes(list)
        ? fieldsOf(type).flatMap((field) => (analysis.fields.has(field) ? [{ list, field }] : []))
        : [],
    );
    const others = roots.filter((name) => !approvalNamespaces.has(name));
    // All texts of a requester are known; anything else may be named in any way.
    this.isExact = analysis.takesApart || others.some((name) => name !== 'requester');
    if (this.isExact) return;
    const named = others.flatMap((name) => textsIn(outer.value(name)));
    for (const text of [...analysis.texts, ...named, ...cast.flatMap((vote) => this.textsOf(vote))]) {
      this.shared.add(text.toLowerCase());
    }
    for (const [userId, votes] of candidates) {
      for (const vote of votes) for (const text of this.textsOf(vote)) this.note(text.toLowerCase(), userId);
    }
  }

  /** The same for two votes that can be swapped together with their users. `aliases` are those of one user. */
  markOf(vote: Vote, aliases: Map<string, string>): string {
    return this.markOfValue(this.valuesOf(vote), aliases);
  }

  private markOfValue(value: PolicyValue | undefined, aliases: Map<string, string>): string {
    if (Array.isArray(value)) {
      let mark = `${value.length}[`;
      for (const element of value as readonly PolicyValue[]) mark += this.markOfValue(element, aliases);
      return mark;
    }
    if (typeof value !== 'string') return '-';
    const text = value.toLowerCase();
    if (this.isExact || this.shared.has(text)) return `${value.length}=${value}`;
    const alias = aliases.get(text) ?? `#${aliases.size}`;
    aliases.set(text, alias);
    return alias;
  }

  private note(text: string, userId: string): void {
    const holder = this.holders.get(text) ?? userId;
    this.holders.set(text, holder);
    if (holder !== userId) this.shared.add(text);
  }

  private textsOf(vote: Vote): readonly string[] {
    return this.valuesOf(vote).flatMap(textsIn);
  }

  private valuesOf(vote: Vote): readonly PolicyValue[] {
    return this.fields.map(({ list, field }) => {
      const record = vote[list] as Readonly<Record<string, PolicyValue | undefined>>;
      return record[field] ?? [];
    });
  }
}

function textsIn(value: PolicyValue | undefined): readonly string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return (value as readonly PolicyValue[]).flatMap(textsIn);
  if (typeof value !== 'object' || value instanceof Doubt || value instanceof AmbiguousText) return [];
  return Object.values(value).flatMap(textsIn);
}

/** The names of the fields of a list's elements. */
function fieldsOf(type: PolicyType): readonly string[] {
  const element = type.kind === 'list' ? type.of : type;
  return element.kind === 'record' ? Object.keys(element.fields) : [];
}
