import { otpLengths } from 'countersign/internal';
import type { AnalysisSubject } from './analysis-subject.js';
import type { OpenRequest } from './smt-request.js';
import { and, apply, integer, not, or, same, text, type Term } from './smt-script.js';
import { chains } from './smt-shape.js';
import type { Unknown } from './smt-unknown.js';

/** How requests are that people would think of first, and that can be built: of examples only, and only where it can be had. */

const letters = '(re.+ (re.range "a" "z"))';
const letter = '(re.range "a" "z") (re.range "A" "Z")';
/** Of Solidity. */
const identifier = `(re.++ (re.union ${letter}) (re.* (re.union ${letter} (re.range "0" "9"))))`;
const isIn = (expression: string) => (term: Term) => apply('str.in_re', term, expression);
/** So long: lengths are much less to solve than what repeats. */
const long = (length: number) => (term: Term) => same(apply('str.len', term), integer(length));
const prefixed = (length: number) => (term: Term) => and(apply('str.prefixof', text('0x'), term), long(length)(term));
const isEven = (term: Term) => same(apply('mod', apply('str.len', term), '2'), '0');
/** Hexadecimal texts may have it, whether it is usual for their field or not. */
const bare = (term: Term) => not(apply('str.prefixof', text('0x'), term));
const between = (least: bigint, most: bigint) => (term: Term) =>
  and(apply('<=', integer(least), term), apply('<=', term, integer(most)));

const oneOf =
  (...texts: readonly string[]) =>
  (term: Term) =>
    or(...texts.map((one) => same(term, text(one))));

type Wish = readonly [of: RegExp, written: (term: Term) => Term];
const otherChains = chains.filter((name) => name !== 'eth');

const addresses = /^eth\.tx\.(?:to|from)$|^eth\.eip_7702_authorization\.address$|\.verifying_contract$/;

/** How texts are written, by the path of a field. */
const usualTexts: readonly Wish[] = [
  [addresses, prefixed(42)],
  [/^eth\.tx\.data$/, (term) => and(apply('str.prefixof', text('0x'), term), isEven(term))],
  [/^eth\.tx\.function_signature$/, prefixed(10)],
  [/^eth\.(?:eip_712\.primary_type|tx\.function_name)$/, isIn(identifier)],
  [/\.token_mint$/, (term) => not(same(term, '""'))],
  [/^tron\.tx\.ref_block_bytes$/, (term) => and(bare(term), long(4)(term))],
  [/^tron\.tx\.ref_block_hash$/, (term) => and(bare(term), long(16)(term))],
  [/^bitcoin\.tx\.inputs\[\d+\]\.tx_id$/, (term) => and(bare(term), long(64)(term))],
  [
    /^tron\.tx\.(?:contract\[\d+\]\.)?data$|\.(?:script_pubkey|instruction_data_hex|operations)$/,
    (term) => and(bare(term), isEven(term)),
  ],
  [/\.parsed_instruction_data\.discriminator$/, (term) => and(bare(term), long(16)(term))],
  [/^bitcoin\.tx\.version$/, oneOf('2', '1')],
  [/^bitcoin\.tx\.outputs\[\d+\]\.address_type$/, oneOf('P2WPKH', 'P2PKH', 'P2SH', 'P2WSH', 'P2TR')],
  [/^(?:wallet|wallets\[\d+\]|private_key)\.label$/, isIn(letters)],
  [
    /^users\[\d+\]\.email$/,
    isIn(`(re.++ ${letters} (str.to_re "@") ${letters} (str.to_re ".") ${letters} ${letters})`),
  ],
];

/** Of an address of which nothing else is known, one that is nobody's: a text that is given is much less to solve than one that has a length. */
const nobodys = `0x${'1'.repeat(40)}`;

/** Addresses on Ethereum, of which nothing else is known. */
export function usualAddresses({ path, constants, parts }: Unknown): readonly Term[] {
  const term = constants.get('text');
  const own = term !== undefined && addresses.test(path) ? [same(term, text(nobodys))] : [];
  return [...own, ...[...parts.values()].flatMap(usualAddresses)];
}

/** How much amounts are. */
const usualIntegers: readonly Wish[] = [
  [/^activity\.params\.otp_length$/, between(BigInt(otpLengths.min), BigInt(otpLengths.max))],
  [/^bitcoin\.tx\.(?:fee|outputs\[\d+\]\.value)$/, between(0n, 21_000_000n * 100_000_000n)],
  [/^bitcoin\.tx\./, between(0n, 2n ** 32n - 1n)],
  [/^tron\.tx\..*\b(?:permission_|parent_)?id$/, between(0n, 2n ** 31n - 1n)],
  [/^solana\.tx\..*_indexes\[\d+\]$/, between(0n, 255n)],
  [/^(?:solana|tron)\.tx\./, between(0n, 2n ** 63n - 1n)],
  [new RegExp(`^(?:${chains.join('|')})\\.tx\\.`), (term) => apply('<=', '0', term)],
];

/** How many there are. */
const usualLengths: readonly Wish[] = [
  [/^solana\.tx\..*\.readonly_indexes$/, (term) => apply('<=', '1', term)],
  [/^tron\.tx\.contract$/, (term) => same(term, '1')],
  [/^bitcoin\.tx\.(?:inputs|outputs)$|^wallets$/, (term) => apply('<=', '1', term)],
];

const wishes = { text: usualTexts, integer: usualIntegers, length: usualLengths } as const;

/** What is usual of something unknown, and of its parts. */
export function usualIn({ path, constants, parts }: Unknown): readonly Term[] {
  const own = (['text', 'integer', 'length'] as const).flatMap((kind) => {
    const term = constants.get(kind);
    const written = term === undefined ? undefined : wishes[kind].find(([of]) => of.test(path))?.[1];
    return written === undefined ? [] : [written(term!)];
  });
  return [...own, ...[...parts.values()].flatMap(usualIn)];
}

/**
 * That it is about somebody, as verbs have it: a member of the root quorum only by their own vote, and the submitter where it is
 * about their own credentials.
 */
export function usualUser(
  { unknown, voters, own }: OpenRequest,
  { users, quorum }: Pick<AnalysisSubject, 'users' | 'quorum'>,
): readonly Term[] {
  const term = unknown.get('activity')?.parts.get('params')?.parts.get('user_id')?.constants.get('text');
  if (term === undefined) return [];
  const ones = users.map(({ userId }, place) => {
    const isOf = same(term, text(userId));
    const isSubmitter = or(not(same(own, '1')), voters.asks(place));
    return quorum.userIds.includes(userId) ? and(isOf, voters.votes[place]!, isSubmitter) : and(isOf, isSubmitter);
  });
  return [or(...ones)];
}

/** That it is of no chain but Ethereum, as far as chains are read. */
export function usualChain({ unknown }: OpenRequest): readonly Term[] {
  return otherChains.flatMap((name) => unknown.get(name)?.open.isNotApplicable ?? []);
}

/** Whether a path is of a chain other than Ethereum. */
export function isOfOtherChain(path: string): boolean {
  return otherChains.some((name) => path === name || path.startsWith(`${name}.`));
}

/** That a transaction has the arguments of a call just if it has the name of its function, as far as both are read. */
export function usualCall({ unknown }: OpenRequest): readonly Term[] {
  const parts = unknown.get('eth')?.parts.get('tx')?.parts;
  const missing = ['function_name', 'contract_call_args'].map((name) => parts?.get(name)?.constants.get('missing'));
  const [name, args] = missing;
  return name === undefined || args === undefined ? [] : [same(name, args)];
}
