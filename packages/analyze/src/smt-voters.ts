import {
  type PolicyCredential,
  type PolicyType,
  type PolicyUser,
  analyse,
  type CheckedExpression,
  approvalNamespaces,
} from 'countersign/internal';
import { and, apply, howMany, integer, no, not, or, same, yes, type Script, type Term } from './smt-script.js';
import { chosen, present, type Open, type OpenElement } from './smt-values.js';
import { constantOf } from './smt-unknown.js';

const text: PolicyType = { kind: 'string' };
const texts: PolicyType = { kind: 'list', of: text };
const unread: Open = { ...constantOf('', text), isUnreadable: yes };

/** Who approves, who asks, and with which credential: constants, and the lists that policies read. */
export class OpenVoters {
  /** By user: whether they approve. */
  readonly votes: readonly Term[];
  /** The place of the user who asks. */
  readonly submitter: Term;
  /** By user: the place of the credential that they approve with. */
  readonly choices: readonly Term[];
  /** By place in the order of the votes: the place of the user. Only if some consensus reads that order. */
  readonly order: readonly Term[];
  readonly howMany: Term;

  constructor(
    private readonly script: Script,
    readonly users: readonly PolicyUser[],
    consensuses: readonly CheckedExpression[],
    /** What is open of users, by its path; otherwise they are as they are. */
    private readonly open?: (path: string) => Open,
  ) {
    this.votes = users.map(({ credentials }) => (credentials.length > 0 ? script.constant('Bool') : no));
    this.submitter = this.placeIn(users.length);
    this.choices = users.map(({ credentials }) => (credentials.length > 1 ? this.placeIn(credentials.length) : '0'));
    this.howMany = script.name(howMany(this.votes), 'Int');
    const isOrdered = consensuses.some((one) => analyse(one).kind === 'ordered');
    this.order = isOrdered ? users.map(() => script.constant('Int')) : [];
    this.checkOrder();
  }

  /** Whether a user asks. */
  asks(place: number): Term {
    return same(this.submitter, integer(place));
  }

  /** Whether who asks does so with a credential of another type. */
  asksWithout(type: string): Term {
    return or(
      ...this.users.flatMap(({ credentials }, place) =>
        credentials.flatMap((credential, index) =>
          credential.type === type ? [] : [and(this.asks(place), this.isBy(place, index))],
        ),
      ),
    );
  }

  /** `approvers`, `credentials`, or an element of one. */
  approvals(name: string): Open {
    const { type } = approvalNamespaces.get(name)!;
    const of = type.kind === 'list' ? type.of : type;
    const elements = this.users.map((user, place): Open => {
      if (name === 'approvers') return this.userOf(user, place);
      const cases = user.credentials.map((credential, index) => ({
        when: this.isBy(place, index),
        open: this.credentialOf(credential, user, `users[${place}].credentials[${index}]`),
      }));
      return chosen(this.script, cases, of);
    });
    return present({ kind: 'list', elements: this.placed(elements, of) });
  }

  /** Whether a user approves with a certain credential, if they do. */
  private isBy(place: number, index: number): Term {
    return this.users[place]!.credentials.length > 1 ? same(this.choices[place]!, integer(index)) : yes;
  }

  /** Who asks, as policies see them. */
  requester(): Open {
    const { type } = approvalNamespaces.get('approvers')!;
    const cases = this.users.map((user, place) => ({ when: this.asks(place), open: this.userOf(user, place) }));
    return chosen(this.script, cases, type.kind === 'list' ? type.of : type);
  }

  private userOf({ userId, tags, email, userName }: PolicyUser, place: number): Open {
    return recordOf({ id: userId, tags, alias: userName, email: this.openAt(`users[${place}].email`, email) });
  }

  private credentialOf(
    { id, type, credentialId, publicKey }: PolicyCredential,
    { userId }: PolicyUser,
    path: string,
  ): Open {
    const open = (field: string, known: string | undefined) => this.openAt(`${path}.${field}`, known);
    return recordOf({
      id: open('id', id),
      user_id: userId,
      type,
      credential_id: credentialId === undefined ? undefined : open('credentialId', credentialId),
      public_key: open('publicKey', publicKey),
    });
  }

  /** Declared only if it is read. */
  private openAt(path: string, known: string | undefined) {
    const { open } = this;
    return open ? () => open(path) : known;
  }

  private placed(elements: readonly Open[], of: PolicyType): readonly OpenElement[] {
    if (this.order.length === 0) return elements.map((value, place) => ({ isThere: this.votes[place]!, value }));
    return this.order.map((at, position) => {
      const cases = elements.map((open, place) => ({ when: same(at, integer(place)), open }));
      return { isThere: apply('<', integer(position), this.howMany), value: chosen(this.script, cases, of) };
    });
  }

  private checkOrder(): void {
    for (const [position, at] of this.order.entries()) {
      const isCast = apply('<', integer(position), this.howMany);
      const earlier = this.order.slice(0, position);
      const voters = this.votes.map((vote, place) => and(vote, same(at, integer(place))));
      const isNext = and(or(...voters), ...earlier.map((one) => not(same(one, at))));
      this.script.facts.push(or(not(isCast), isNext));
    }
  }

  private placeIn(many: number): Term {
    const term = this.script.constant('Int');
    this.script.facts.push(and(apply('<=', '0', term), apply('<', term, integer(many))));
    return term;
  }
}

/** Fields that are undefined are missing, which is unreadable. */
function recordOf(fields: Readonly<Record<string, string | readonly string[] | (() => Open) | undefined>>): Open {
  return present({
    kind: 'record',
    field: (name) => {
      const value = fields[name];
      if (value === undefined) return unread;
      if (typeof value === 'string') return constantOf(value, text);
      return typeof value === 'function' ? value() : constantOf(value, texts);
    },
  });
}
