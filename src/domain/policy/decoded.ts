import { AmbiguousText, Doubt, type PolicyValue } from './types.js';

/**
 * What is about to be signed, in words: made of the very values that policies decide on, so that people and policies are told
 * the same. What could not be decoded says so.
 */

/** One thing worth knowing before it is approved. */
export interface DecodedFact {
  readonly name: string;
  readonly value: string;
}

/** One transaction, or one payload, for whoever is asked to approve it. */
export interface Decoded {
  /** The payload, where there are several. */
  readonly of?: string;
  /** In a sentence that holds no words of a caller: amounts, addresses, names of functions. */
  readonly text: string;
  readonly facts: readonly DecodedFact[];
  /** What of it is not shown, and why. */
  readonly notDecoded?: string;
}

/** `words`: whoever signs, or has uploaded the interface, has chosen it. */
interface Fact extends DecodedFact {
  readonly words?: true;
}

/** As `Decoded`, with who has chosen what. */
interface Account extends Omit<Decoded, 'facts'> {
  readonly facts: readonly Fact[];
}

type Values = Readonly<Record<string, PolicyValue | undefined>>;

/** Most things that are said of one payload, payloads that are shown, and characters of one value. */
const mostFacts = 40;
const mostPayloads = 10;
const maxValue = 200;

/** What there is to sign, as policies read it; `parts` where there are several payloads. */
interface ToSign {
  readonly resources?: Values | Doubt | undefined;
  readonly parts?: readonly { readonly name: string; readonly resources: Values }[] | undefined;
}

/** For the activity itself: with the words of whoever signs, each on one line and cut where it is long. */
export function decodedOf(toSign: ToSign): readonly Decoded[] {
  return accountsOf(toSign).map(({ facts, ...rest }) => ({
    ...rest,
    facts: facts.map(({ name, value }) => ({ name, value })),
  }));
}

/** For mails: amounts, addresses and other values that cannot be anybody's words. */
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
      .map(({ name, resources: of }) => ({ ...(several ? { of: name } : {}), ...accountOf(of) }));
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
  return unknown('these are raw bytes, which do not say what they are: they may be the digest of any transaction');
}

function unknown(why: string): Account {
  return { text: 'Something that could not be decoded.', facts: [], notDecoded: oneLine(why) };
}

/** Chains whose coin is ether; of another, only its number is known here. */
const etherChains: ReadonlySet<bigint> = new Set([
  1n,
  10n,
  8453n,
  42161n,
  59144n,
  11155111n,
  17000n,
  84532n,
  11155420n,
]);

function ethereum(tx: Values): Account {
  const { to, value, chain_id, function_name, function_signature, contract_call_args, data, type, nonce } = tx;
  const chain = typeof chain_id === 'bigint' ? chain_id : undefined;
  const unit = chain === undefined || etherChains.has(chain) ? 'ETH' : `coins of chain ${chain}`;
  const amount = typeof value === 'bigint' ? `${units(value, 18)} ${unit}` : shown(value);
  const target = to === '' ? undefined : shown(to);
  const where = chain === undefined ? 'on every chain that takes it (it names none)' : `on chain ${chain}`;
  const isCall = typeof data === 'string' && data !== '0x';
  const name = typeof function_name === 'string' ? identifier(function_name) : undefined;
  const fee = feeOf(tx, unit);
  const facts: Fact[] = [
    { name: 'To', value: target ?? 'a new contract' },
    { name: 'Value', value: amount },
    { name: 'Chain', value: chain === undefined ? 'any' : String(chain) },
    ...(isCall && name === undefined ? [{ name: 'Function', value: `${shown(function_signature)}, not decoded` }] : []),
    ...(name === undefined ? [] : [{ name: 'Function', value: name, words: true } as const]),
    ...(name === undefined ? [] : argumentFacts(contract_call_args)),
    ...(fee === undefined ? [] : [{ name: 'Highest fee', value: fee }]),
    { name: 'Nonce', value: shown(nonce) },
    { name: 'Type', value: shown(type) },
  ];
  const sends = value === 0n && isCall ? 'A call' : `${amount}`;
  const text =
    target === undefined
      ? `A new contract with ${amount}, ${where}.`
      : `${sends} to ${target}${isCall && value !== 0n ? ' with a call' : ''}, ${where}.`;
  const why =
    isCall && name === undefined ? `${(data.length - 2) / 2} bytes of call data: ${whyNot(function_name)}` : undefined;
  return limited({ text, facts, ...(why === undefined ? {} : { notDecoded: oneLine(why) }) });
}

function feeOf({ gas, max_fee_per_gas }: Values, unit: string): string | undefined {
  if (typeof gas !== 'bigint' || typeof max_fee_per_gas !== 'bigint') return undefined;
  return `${units(gas * max_fee_per_gas, 18)} ${unit}`;
}

function whyNot(value: PolicyValue | undefined): string {
  return value instanceof Doubt && value.kind === 'unreadable'
    ? value.reason
    : 'no interface is uploaded for this contract';
}

function argumentFacts(args: PolicyValue | undefined, prefix = ''): Fact[] {
  const facts: Fact[] = [];
  const visit = (path: string, value: PolicyValue | undefined): void => {
    if (facts.length > mostFacts) return;
    const record = recordOf(value);
    if (Array.isArray(value)) {
      if (value.length === 0) facts.push({ name: path, value: 'none', words: true });
      value.slice(0, mostFacts).forEach((item: PolicyValue, index) => visit(`${path}[${index}]`, item));
    } else if (record) {
      for (const name of Object.keys(record).slice(0, mostFacts)) {
        visit(path === '' ? oneLine(name, 64) : `${path}.${oneLine(name, 64)}`, record[name]);
      }
    } else facts.push({ name: oneLine(path), value: shown(value), words: true });
  };
  visit(prefix, args);
  return facts;
}

function typedData({ primary_type, domain, message }: Values): Account {
  const { name, version, chain_id, verifying_contract } = recordOf(domain) ?? {};
  const isAddress = typeof verifying_contract === 'string' && /^0x[0-9a-f]{40}$/i.test(verifying_contract);
  const contract = isAddress ? verifying_contract : undefined;
  const where = typeof chain_id === 'bigint' ? ` on chain ${chain_id}` : '';
  const facts: Fact[] = [
    { name: 'Type', value: shown(primary_type), words: true },
    ...(contract === undefined ? [] : [{ name: 'Contract', value: contract }]),
    ...(typeof chain_id === 'bigint' ? [{ name: 'Chain', value: String(chain_id) }] : []),
    ...(name === undefined ? [] : [{ name: 'Domain', value: shown(name), words: true } as const]),
    ...(version === undefined ? [] : [{ name: 'Version', value: shown(version), words: true } as const]),
    ...argumentFacts(message, 'message'),
  ];
  return limited({ text: `Typed data (EIP-712) for ${contract ?? 'no named contract'}${where}.`, facts });
}

function authorization({ address, chain_id, nonce }: Values): Account {
  const where = chain_id === 0n ? 'on every chain' : `on chain ${shown(chain_id)}`;
  return {
    text: `An authorization (EIP-7702) that lets the contract ${shown(address)} act as this account ${where}.`,
    facts: [
      { name: 'Contract', value: shown(address) },
      { name: 'Chain', value: chain_id === 0n ? 'every' : shown(chain_id) },
      { name: 'Nonce', value: shown(nonce) },
    ],
  };
}

function solanaAccount({ transfers, spl_transfers, instructions }: Values): Account {
  const sol = recordsOf(transfers);
  const tokens = recordsOf(spl_transfers);
  const calls = recordsOf(instructions);
  const doubts = [transfers, spl_transfers, instructions].filter((value) => value instanceof Doubt);
  const facts: Fact[] = [
    ...sol.map(({ amount, to }) => ({ name: 'Transfer', value: `${coins(amount, 9)} SOL to ${shown(to)}` })),
    ...tokens.map(({ amount, to, token_mint }) => {
      const isUnnamed = token_mint === '' || (token_mint instanceof AmbiguousText && token_mint.text === '');
      const token = isUnnamed ? 'a token that the instruction does not name' : `the token ${shown(token_mint)}`;
      return { name: 'Token transfer', value: `${shown(amount)} smallest units of ${token} to ${shown(to)}` };
    }),
    ...calls.flatMap(({ program_key, parsed_instruction_data, instruction_data_hex }, index): Fact[] => {
      const parsed = recordOf(parsed_instruction_data);
      const position = `Instruction ${index + 1}`;
      if (!parsed) {
        const bytes = typeof instruction_data_hex === 'string' ? `${instruction_data_hex.length / 2} bytes` : 'data';
        return [{ name: position, value: `${bytes} for program ${shown(program_key)}` }];
      }
      const { instruction_name, program_call_args } = parsed;
      const name = `${shown(instruction_name)} of program ${shown(program_key)}`;
      return [{ name: position, value: name, words: true }, ...argumentFacts(program_call_args, position)];
    }),
  ];
  const moved = [
    ...sol.map(({ amount, to }) => `${coins(amount, 9)} SOL to ${shown(to)}`),
    ...(tokens.length > 0 ? [`${tokens.length === 1 ? 'a token transfer' : `${tokens.length} token transfers`}`] : []),
  ];
  const shownMoves = moved.length > 3 ? [...moved.slice(0, 3), `${moved.length - 3} more`] : moved;
  const plural = calls.length === 1 ? '1 instruction' : `${calls.length} instructions`;
  const other = calls.length > sol.length + tokens.length;
  return limited({
    text: `${shownMoves.length > 0 ? `${shownMoves.join(', ')}, in a` : 'A'} Solana transaction of ${plural}.`,
    facts,
    ...(doubts[0] instanceof Doubt
      ? { notDecoded: oneLine(doubts[0].reason) }
      : other
        ? {
            notDecoded:
              'instructions other than transfers are decoded only where an interface of their program is uploaded',
          }
        : {}),
  });
}

function bitcoinAccount({ outputs, inputs, fee }: Values): Account {
  const to = recordsOf(outputs);
  const total = to.reduce((sum, { value }) => sum + (typeof value === 'bigint' ? value : 0n), 0n);
  const facts: Fact[] = [
    ...to.map(({ value, address, address_type }, index) => ({
      name: `Output ${index + 1}`,
      value: `${coins(value, 8)} BTC to ${address === '' ? `no address (${shown(address_type)})` : shown(address)}`,
    })),
    { name: 'Fee', value: `${coins(fee, 8)} BTC` },
    { name: 'Inputs', value: String(recordsOf(inputs).length) },
  ];
  const first = to.length === 1 ? facts[0]!.value : `${units(total, 8)} BTC to ${to.length} outputs`;
  return limited({
    text: `${first}, with a fee of ${coins(fee, 8)} BTC.`,
    facts,
    ...(to.length > 1 ? { notDecoded: 'which of the outputs is change is not known' } : {}),
  });
}

/** Contracts whose amount is TRX, by the field that holds it. */
const tronAmounts = ['amount', 'call_value', 'frozen_balance', 'unfreeze_balance', 'balance'] as const;

function tronAccount({ contract, data, fee_limit }: Values): Account {
  const contracts = recordsOf(contract);
  const facts = contracts.flatMap((one): Fact[] => {
    const { type, to_address, receiver_address, contract_address, data: call, call_token_value, token_id } = one;
    const amounts = tronAmounts.flatMap((field) => (typeof one[field] === 'bigint' ? [one[field]] : []));
    const to = [to_address, receiver_address, contract_address].find(
      (address) => typeof address === 'string' && address,
    );
    return [
      { name: 'Contract type', value: shown(type) },
      ...(to === undefined ? [] : [{ name: 'To', value: shown(to) }]),
      ...amounts.map((amount) => ({ name: 'Value', value: tronAmount(type, amount) })),
      ...(typeof call_token_value === 'bigint' && call_token_value > 0n
        ? [{ name: 'Token', value: `${call_token_value} smallest units of token ${shown(token_id)}` }]
        : []),
      ...(typeof call === 'string' && call !== ''
        ? [{ name: 'Function', value: `0x${call.slice(0, 8)}, not decoded` }]
        : []),
    ];
  });
  const memo =
    typeof data === 'string' && data !== '' ? [{ name: 'Memo', value: memoOf(data), words: true } as const] : [];
  const fee =
    typeof fee_limit === 'bigint' && fee_limit > 0n
      ? [{ name: 'Highest fee', value: `${units(fee_limit, 6)} TRX` }]
      : [];
  const [value, to] = ['Value', 'To'].map((name) => facts.find((fact) => fact.name === name)?.value);
  const what = contracts.length === 1 ? `${shown(contracts[0]!['type'])}` : `${contracts.length} contracts`;
  const isCall = facts.some(({ name }) => name === 'Function');
  return limited({
    text: `${value === undefined ? what : `${value} by ${what}`}${to === undefined ? '' : ` to ${to}`}.`,
    facts: [...facts, ...memo, ...fee],
    ...(isCall ? { notDecoded: 'call data of Tron contracts is not decoded' } : {}),
  });
}

function tronAmount(type: PolicyValue | undefined, amount: bigint): string {
  // Those of other tokens than TRX have decimals of their own.
  return type === 'TransferAssetContract' ? `${amount} smallest units of a TRC-10 token` : `${units(amount, 6)} TRX`;
}

function memoOf(hex: string): string {
  return `"${oneLine(Buffer.from(hex.slice(0, 2 * maxValue), 'hex').toString('utf8'))}"`;
}

/** What was said of it, as far as there is room. */
function limited(account: Account): Account {
  const { facts } = account;
  if (facts.length <= mostFacts) return account;
  const left = facts.length - mostFacts;
  const more = `${left} or more details are not shown`;
  const { notDecoded } = account;
  return {
    ...account,
    facts: facts.slice(0, mostFacts),
    notDecoded: notDecoded === undefined ? more : `${notDecoded}; ${more}`,
  };
}

function coins(value: PolicyValue | undefined, decimals: number): string {
  return typeof value === 'bigint' ? units(value, decimals) : shown(value);
}

/** An amount of the smallest unit in the unit that people count in, exactly. */
function units(amount: bigint, decimals: number): string {
  const digits = (amount < 0n ? -amount : amount).toString().padStart(decimals + 1, '0');
  const fraction = digits.slice(-decimals).replace(/0+$/, '');
  return `${amount < 0n ? '-' : ''}${digits.slice(0, -decimals)}${fraction === '' ? '' : `.${fraction}`}`;
}

/** One value on one line: numbers and hexadecimal as they are, other text in quotes. */
function shown(value: PolicyValue | undefined): string {
  if (value === undefined) return 'not there';
  if (value instanceof Doubt) return 'not readable';
  if (value instanceof AmbiguousText) return value.text === '' ? value.reason : shown(value.text);
  if (typeof value === 'string') return isPlain(value) ? oneLine(value) : `"${oneLine(value)}"`;
  if (typeof value === 'object') return Array.isArray(value) ? `${value.length} elements` : 'several members';
  return String(value);
}

/** Written in one of the alphabets of addresses, hashes and names of types: it needs no quotes. */
function isPlain(text: string): boolean {
  return /^(?:0x[0-9a-fA-F]*|[1-9A-HJ-NP-Za-km-z]{20,128}|[a-z0-9]{2,10}1[a-z0-9]{6,100}|[A-Z0-9_]{1,64}|[A-Za-z]{1,64}Contract)$/.test(
    text,
  );
}

/** The name of a function, if it is one: no punctuation that a mail program would make a link of. */
function identifier(name: string): string | undefined {
  return /^[A-Za-z_$][0-9A-Za-z_$]{0,63}$/.test(name) ? name : undefined;
}

/** Without what would break a line, hide, or reorder the text around it. */
function oneLine(text: string, max = maxValue): string {
  const cut = text.length > max ? `${text.slice(0, max)}…` : text;
  return cut.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]+/gu, ' ').trim();
}

function recordOf(value: PolicyValue | undefined): Values | undefined {
  const isRecord =
    typeof value === 'object' &&
    !Array.isArray(value) &&
    !(value instanceof Doubt) &&
    !(value instanceof AmbiguousText);
  return isRecord ? (value as Values) : undefined;
}

function recordsOf(value: PolicyValue | undefined): readonly Values[] {
  return Array.isArray(value) ? (value as readonly PolicyValue[]).map(recordOf).filter((one) => one !== undefined) : [];
}
