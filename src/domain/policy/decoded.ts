import {
  allOf,
  exact,
  longestShown,
  oneLine,
  recordOf,
  type Account,
  type Decoded,
  type DecodedFact,
  type Values,
} from './decoded/account.js';
import { bitcoinAccount } from './decoded/bitcoin.js';
import { authorization, ethereum, typedData } from './decoded/ethereum.js';
import { solanaAccount } from './decoded/solana.js';
import { tronAccount } from './decoded/tron.js';
import { Doubt, Unreadable } from './types.js';

/**
 * Describes what is about to be signed, from the same values that policies decide on, so that people and policies see
 * the same. It says what could not be decoded.
 */

/** Maximum payloads shown. */
const mostPayloads = 10;

/** What is to be signed, as policies see it; `parts` if there are several payloads. */
interface ToSign {
  readonly resources?: Values | Doubt | undefined;
  readonly parts?: readonly Part[] | undefined;
  /** The texts among the payloads: policies do not read them, and several may be one part. */
  readonly texts?: readonly { readonly name: string; readonly text: string }[];
}

interface Part {
  readonly name: string;
  readonly resources: Values;
}

/** For the activity itself: includes text chosen by the requester, each on one line and truncated. */
export function decodedOf(toSign: ToSign): readonly Decoded[] {
  const left = payloadsOf(toSign).length - mostPayloads;
  return [
    ...accountsOf(toSign).map(({ facts, ...rest }) => ({
      ...rest,
      facts: facts.map(({ name, value }) => ({ name, value })),
    })),
    ...(left > 0
      ? [
          {
            text: `And ${left} more ${left === 1 ? 'payload, which is' : 'payloads, which are'} not shown here.`,
            facts: [],
          },
        ]
      : []),
  ];
}

/** For mails: amounts, addresses and other values that cannot be anyone's text. */
export function decodedForMail(toSign: ToSign): readonly DecodedFact[] {
  const [first, ...others] = accountsOf(toSign);
  if (!first) return [];
  const facts = first.facts.filter(({ words }) => !words).slice(0, 12);
  const isPartial = facts.length < first.facts.length || first.notDecoded !== undefined;
  const rest =
    others.length > 0 ? `and ${others.length === 1 ? 'another payload' : `${others.length} more payloads`}` : '';
  const more = [...(isPartial ? ['more than is shown here'] : []), ...(rest ? [rest] : [])].join(', ');
  return [
    { name: 'It would sign', value: first.text },
    ...facts,
    ...(more ? [{ name: 'And', value: `${more}: see the activity` }] : []),
  ];
}

function accountsOf(toSign: ToSign): readonly Account[] {
  const { resources, parts, texts = [] } = toSign;
  const why = resources instanceof Doubt ? resources.reason : undefined;
  if (parts || texts.length > 0) {
    const payloads = payloadsOf(toSign);
    return payloads.slice(0, mostPayloads).map(({ name, part, text }) => ({
      ...(payloads.length > 1 ? { payload: name } : {}),
      ...((part && read(part.resources)) ?? undecoded(text, part ? hiddenIn(part.resources) : why)),
    }));
  }
  if (resources === undefined) return [];
  return [resources instanceof Doubt ? undecoded(undefined, why) : accountOf(resources)];
}

/** Each payload that is shown: every text, and the parts that policies distinguish. */
function payloadsOf({ parts = [], texts = [] }: ToSign) {
  if (texts.length === 0) return parts.map((part) => ({ name: part.name, part, text: undefined }));
  const byName = new Map(parts.map((part) => [part.name, part]));
  const seen = new Set<string>();
  const distinct = texts.filter(({ text }) => !seen.has(text) && seen.add(text));
  return distinct.map(({ name, text }) => ({ name, part: byName.get(name), text }));
}

function accountOf(resources: Values): Account {
  return read(resources) ?? undecoded(undefined, hiddenIn(resources));
}

function read({ eth, solana, bitcoin, tron }: Values): Account | undefined {
  const { tx, eip_712, eip_7702_authorization } = recordOf(eth) ?? {};
  if (recordOf(tx)) return ethereum(recordOf(tx)!);
  if (recordOf(eip_712)) return typedData(recordOf(eip_712)!);
  if (recordOf(eip_7702_authorization)) return authorization(recordOf(eip_7702_authorization)!);
  const [solanaTx, bitcoinTx, tronTx] = [solana, bitcoin, tron].map((chain) => recordOf(recordOf(chain)?.['tx']));
  if (solanaTx) return solanaAccount(solanaTx);
  if (bitcoinTx) return bitcoinAccount(bitcoinTx);
  return tronTx && tronAccount(tronTx);
}

/** Why something that may be a transaction could not be read as one. */
function hiddenIn({ eth, solana, bitcoin, tron }: Values): string | undefined {
  const values = [eth, solana, bitcoin, tron].flatMap((chain) => Object.values(recordOf(chain) ?? {}));
  return values.find((value) => value instanceof Unreadable)?.reason;
}

function undecoded(text: string | undefined, why: string | undefined): Account {
  if (text === undefined) {
    const notDecoded = oneLine(why ?? 'raw bytes, and not a transaction of a chain that policies know');
    return { text: 'Something that could not be decoded.', facts: [], notDecoded };
  }
  const cut = text.length > longestShown ? `only its first ${longestShown} characters are shown` : undefined;
  const notDecoded = allOf([cut, why && oneLine(why)]);
  return {
    text: `A text of ${text.length} characters.`,
    facts: [{ name: 'Text', value: exact(text.slice(0, longestShown)), words: true }],
    ...(notDecoded === '' ? {} : { notDecoded }),
  };
}
