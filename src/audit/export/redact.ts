import { createHmac } from 'node:crypto';
import { contactKey } from '../../domain/contact-key.js';
import { memberKinds, type MemberKind } from './personal-members.js';

type Members = Readonly<Record<string, unknown>>;

/** What a redacted export needs from the policy language: texts with a fixed meaning. */
export type Vocabulary = Readonly<Record<string, ReadonlySet<string>>>;

const phone = /^\+[1-9]\d{6,14}$/;
/**
 * Runs of the characters that contacts begin with, each with the rest of the e-mail address if it begins one. Every run
 * matches, so that none is read again from a later character: members choose these texts, and they may be long.
 */
const runs = /[\p{L}\p{M}\p{N}_.!#$%&'*+/=?^{|}~-]+(?:@[\p{L}\p{M}\p{N}_-]+(?:\.[\p{L}\p{M}\p{N}_-]+)+)?/gu;
/** Phone numbers inside a run. */
const phones = /\+[1-9]\d{6,14}\b/g;
/** Not personal: a feature of an organization, whose name is in a member that elsewhere holds a person's. */
const featureName = /^FEATURE_NAME_/;
const keyLike = /^(?:0x)?[0-9a-f]{40,}$/i;

/**
 * Replaces personal data with pseudonyms: the same everywhere for the same value, so that comparisons still decide
 * alike. Nobody can tell what they stand for without the key, which is generated for one export and discarded.
 */
export class Redactor {
  /** Replaced names, contacts and subjects, with their pseudonyms. */
  private readonly replaced = new Map<string, string>();
  /** Unknown members, replaced as text. */
  readonly unknown = new Set<string>();

  constructor(
    private readonly key: Uint8Array,
    private readonly vocabulary: Vocabulary,
  ) {}

  /** The data of an event, or any other plain JSON. Texts that quote others are right once all others were seen. */
  data<Value>(value: Value): Value {
    return this.whole(value) as Value;
  }

  fingerprint(text: string): string {
    return text.startsWith('sha256:') ? `sha256:${this.hmac('fingerprint', text)}` : text;
  }

  /** For ids that are hashes of contents. */
  id(text: string): string {
    const hex = this.hmac('id', text);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  }

  private whole(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((element) => this.whole(element));
    if (typeof value !== 'object' || value === null) return value;
    const members = value as Members;
    return Object.fromEntries(
      Object.entries(members).map(([name, member]) => {
        const kind = kindOf(name, members);
        return [name, kind === undefined ? this.unclassified(name, member) : this.as(kind, member)];
      }),
    );
  }

  /** Objects describe their own members; a string might be anything. */
  private unclassified(name: string, value: unknown): unknown {
    if (Array.isArray(value)) return value.map((element) => this.unclassified(name, element));
    if (typeof value !== 'string' || value === '') return this.whole(value);
    this.unknown.add(name);
    return this.prose(value);
  }

  private as(kind: MemberKind, value: unknown): unknown {
    if (Array.isArray(value)) return value.map((element) => this.as(kind, element));
    if (typeof value === 'string') return value === '' ? value : this.text(kind, value);
    if (typeof value !== 'object' || value === null) return value;
    // Under a member that holds prose, everything is prose.
    if (kind !== 'text') return this.whole(value);
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, this.as(kind, member)]));
  }

  private text(kind: MemberKind, text: string): string {
    switch (kind) {
      case 'kept':
        return this.keptText(text);
      case 'name':
        return featureName.test(text) ? text : this.replace(text, () => `name-${this.short('name', text)}`);
      case 'contact':
        return this.contact(text) ?? this.identity(text) ?? text;
      case 'identifier':
        return this.contact(text) ?? (keyLike.test(text) ? text : `caller-${this.short('caller', text)}`);
      case 'subject':
        return this.replace(text, () => `subject-${this.short('subject', text)}`);
      case 'url':
        return this.url(text);
      case 'text':
        return this.prose(text);
      case 'quotes':
        return this.quotes(text);
      case 'clause':
        return this.clause(text);
      case 'message':
      case 'json':
        return this.json(text) ?? this.quotes(text);
      case 'token':
        return this.token(text);
      case 'zeros':
        return text.replace(/[0-9A-Za-z]/g, '0');
      case 'fingerprint':
        return this.fingerprint(text);
      case 'vote-id':
        return this.id(text);
    }
  }

  private hmac(purpose: string, text: string): string {
    return createHmac('sha256', this.key).update(`${purpose}\0${text}`).digest('hex');
  }

  private short(purpose: string, text: string): string {
    return this.hmac(purpose, text).slice(0, 16);
  }

  private replace(text: string, by: () => string): string {
    const known = this.replaced.get(text);
    if (known !== undefined) return known;
    const made = by();
    this.replaced.set(text, made);
    return made;
  }

  /** Of the same shape, and equal without regard to case to whatever the original was. */
  private contact(text: string): string | undefined {
    if (phone.test(text)) {
      const digits = BigInt(`0x${this.hmac('phone', text)}`) % 10n ** 11n;
      // No country has this code.
      return this.replace(text, () => `+999${String(digits).padStart(11, '0')}`);
    }
    if (!isMail(text)) return undefined;
    return this.replace(text, () => {
      const same = contactKey(text);
      const at = same.lastIndexOf('@');
      const local = `p${this.short('mail', same)}`;
      const made = `${local}@d${this.short('domain', same.slice(at + 1)).slice(0, 10)}.example`;
      return same === text ? made : capitalized(made, this.hmac('letters', text));
    });
  }

  /** For a claim: issuer, audience and subject in one string. */
  private identity(text: string): string | undefined {
    if (!text.startsWith('["')) return undefined;
    const parts = parsed(text);
    if (!Array.isArray(parts) || parts.length !== 3) return undefined;
    return JSON.stringify([parts[0], parts[1], this.as('subject', parts[2])]);
  }

  private keptText(text: string): string {
    if (!text.includes('@') && !text.includes('+')) return text;
    return replaceContacts(text, (found) => this.replaced.get(found) ?? found);
  }

  private url(text: string): string {
    if (!/^https?:\/\//i.test(text)) return text === '*' ? text : this.prose(text);
    const [, scheme, host, rest] = /^(https?:\/\/)([^/?#]*)(.*)$/is.exec(text)!;
    const made = `${scheme!}h${this.short('host', host!)}.example`;
    // A template has a placeholder.
    const place = rest!.includes('%s') ? '%s' : '';
    return rest === '' || rest === '/' ? `${made}${rest}` : `${made}/${this.short('path', text)}${place}`;
  }

  private prose(text: string): string {
    const inside = parsed(text);
    if (typeof inside === 'object' && inside !== null) return JSON.stringify(this.as('text', inside));
    return `text-${this.short('text', text)}`;
  }

  private quotes(text: string): string {
    const requoted = text.replace(/`([^`]*)`/g, (all, quoted: string) => {
      const known = this.replaced.get(quoted);
      return known === undefined ? all : `\`${known}\``;
    });
    return replaceContacts(requoted, (found) => (found.endsWith('.example') ? found : (this.contact(found) ?? found)));
  }

  /** Literals of the language have no escapes. */
  private clause(text: string): string {
    return text.replace(/'([^']*)'/g, (all, literal: string) => {
      if (Object.values(this.vocabulary).some((words) => words.has(literal))) return all;
      const made = this.contact(literal) ?? this.replaced.get(literal) ?? this.unheardOf(literal);
      return made === undefined ? all : `'${made}'`;
    });
  }

  /** A literal that can only be someone's name, although nobody has it. */
  private unheardOf(literal: string): string | undefined {
    const isCron = /^[\d*/,\s-]+$/.test(literal);
    const isName =
      !isCron && (/\s/.test(literal) || /[^\p{ASCII}]/u.test(literal)) && !/^[A-Za-z]+\/[\w/]+$/.test(literal);
    return isName ? this.replace(literal, () => `name-${this.short('name', literal)}`) : undefined;
  }

  private json(text: string): string | undefined {
    if (!/^\s*[{[]/.test(text)) return undefined;
    const value = parsed(text);
    // A truncated body cannot be parsed, so its contents are unknown.
    return value === undefined ? '' : JSON.stringify(this.whole(value));
  }

  /** Its claims stay readable, because decisions depend on them; nobody can mistake them for signed. */
  private token(text: string): string {
    const parts = text.split('.');
    if (parts.length === 3) {
      const claims = parsed(Buffer.from(parts[1]!, 'base64url').toString());
      if (typeof claims !== 'object' || claims === null) return `text-${this.short('text', text)}`;
      const payload = Buffer.from(JSON.stringify(this.whole(claims))).toString('base64url');
      return `${parts[0]!}.${payload}.${this.text('zeros', parts[2]!)}`;
    }
    // Verification removes base64 around a token.
    const inside = Buffer.from(text, 'base64').toString('latin1');
    if (/^[\w-]+\.[\w-]+\.[\w-]*$/.test(inside)) return Buffer.from(this.token(inside), 'latin1').toString('base64');
    const session = /^([\w-]+)\.([\w-]+)$/.exec(text);
    return session ? `${session[1]!}.${this.text('zeros', session[2]!)}` : `text-${this.short('text', text)}`;
  }
}

/** Replaces the contacts inside a text. */
function replaceContacts(text: string, by: (contact: string) => string): string {
  return text.replace(runs, (run) => (run.includes('@') ? by(run) : run.replace(phones, by)));
}

/** Whether a whole text is one e-mail address, as far as its form goes: with a dot inside the domain. */
function isMail(text: string): boolean {
  const [, domain] = /^[^\s@]+@([^\s@]+)$/.exec(text) ?? [];
  return domain !== undefined && domain.slice(1, -1).includes('.');
}

function kindOf(name: string, among: Members): MemberKind | undefined {
  // A selector of an old policy names what it compares.
  if (name === 'subject' && 'operator' in among) return 'kept';
  return Object.hasOwn(memberKinds, name) ? memberKinds[name] : undefined;
}

/** Capitalizes some of its letters, chosen by the digits. */
function capitalized(text: string, digits: string): string {
  const letters = [...text].map((letter, index) =>
    parseInt(digits[index % digits.length]!, 16) % 2 === 0 ? letter.toUpperCase() : letter,
  );
  return letters.join('');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
