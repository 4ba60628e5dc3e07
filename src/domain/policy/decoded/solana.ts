import { AmbiguousText, Doubt } from '../types.js';
import {
  argumentFacts,
  coins,
  limited,
  oneLine,
  paymentsText,
  recordOf,
  recordsOf,
  shown,
  units,
  type Account,
  type Fact,
  type Payment,
  type Values,
} from './account.js';

/** Tokens that the sentence names. */
const mostTokens = 3;

const paymentOf = ({ amount, to }: Values): Payment => ({ amount, to: shown(to) });

/** `smallest units of the token …`. */
function unitOf({ token_mint }: Values): string {
  const isUnnamed = token_mint === '' || (token_mint instanceof AmbiguousText && token_mint.text === '');
  return `smallest units of ${isUnnamed ? 'a token that the instruction does not name' : `the token ${shown(token_mint)}`}`;
}

export function solanaAccount({ transfers, spl_transfers, instructions }: Values): Account {
  const sol = recordsOf(transfers);
  const tokens = recordsOf(spl_transfers);
  const calls = recordsOf(instructions);
  const doubts = [transfers, spl_transfers, instructions].filter((value) => value instanceof Doubt);
  const facts: Fact[] = [
    ...sol.map(({ amount, to }) => ({ name: 'Transfer', value: `${coins(amount, 9)} SOL to ${shown(to)}` })),
    ...tokens.map((token) => ({
      name: 'Token transfer',
      value: `${shown(token['amount'])} ${unitOf(token)} to ${shown(token['to'])}`,
    })),
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
  const byUnit = new Map<string, Payment[]>();
  for (const token of tokens) {
    const unit = unitOf(token);
    const payments = byUnit.get(unit);
    if (payments) payments.push(paymentOf(token));
    else byUnit.set(unit, [paymentOf(token)]);
  }
  const named = [...byUnit].slice(0, mostTokens);
  const others = byUnit.size - named.length;
  const moved = [
    ...(sol.length > 0 ? [paymentsText(sol.map(paymentOf), (amount) => `${units(amount, 9)} SOL`)] : []),
    ...named.map(([unit, of]) => paymentsText(of, (amount) => `${amount} ${unit}`)),
    ...(others > 0 ? [others === 1 ? 'another token' : `${others} other tokens`] : []),
  ];
  const plural = calls.length === 1 ? '1 instruction' : `${calls.length} instructions`;
  // What leaves an account that is closed or unwrapped is in both lists.
  const alike = tokens.filter((token) => sol.some(({ from, to }) => from === token['from'] && to === token['to']));
  const other = calls.length > sol.length + tokens.length - alike.length;
  return limited({
    text: `${moved.length > 0 ? `${moved.join(', ')}, in a` : 'A'} Solana transaction of ${plural}.`,
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
