import { oneLine, recordOf, type Account, type Decoded, type DecodedFact, type Values } from './decoded/account.js';
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
  readonly parts?: readonly { readonly name: string; readonly resources: Values }[] | undefined;
}

/** For the activity itself: includes text chosen by the requester, each on one line and truncated. */
export function decodedOf(toSign: ToSign): readonly Decoded[] {
  const left = (toSign.parts?.length ?? 0) - mostPayloads;
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

function accountsOf({ resources, parts }: ToSign): readonly Account[] {
  if (parts) {
    const several = parts.length > 1;
    return parts
      .slice(0, mostPayloads)
      .map(({ name, resources: of }) => ({ ...(several ? { payload: name } : {}), ...accountOf(of) }));
  }
  if (resources === undefined) return [];
  return resources instanceof Doubt ? [unknown(resources.reason)] : [accountOf(resources)];
}

function accountOf({ eth, solana, bitcoin, tron }: Values): Account {
  const { tx, eip_712, eip_7702_authorization } = recordOf(eth) ?? {};
  if (recordOf(tx)) return ethereum(recordOf(tx)!);
  if (recordOf(eip_712)) return typedData(recordOf(eip_712)!);
  if (recordOf(eip_7702_authorization)) return authorization(recordOf(eip_7702_authorization)!);
  const [solanaTx, bitcoinTx, tronTx] = [solana, bitcoin, tron].map((chain) => recordOf(recordOf(chain)?.['tx']));
  if (solanaTx) return solanaAccount(solanaTx);
  if (bitcoinTx) return bitcoinAccount(bitcoinTx);
  if (tronTx) return tronAccount(tronTx);
  const hidden = [eth, solana, bitcoin, tron].flatMap((chain) => Object.values(recordOf(chain) ?? {}));
  const doubt = hidden.find((value) => value instanceof Unreadable);
  return unknown(doubt?.reason ?? 'raw bytes or text, and not a transaction of a chain that policies know');
}

function unknown(why: string): Account {
  return { text: 'Something that could not be decoded.', facts: [], notDecoded: oneLine(why) };
}
