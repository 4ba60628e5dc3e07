import { AmbiguousText, Doubt } from '../types.js';
import {
  argumentFacts,
  coins,
  limited,
  oneLine,
  recordOf,
  recordsOf,
  shown,
  type Account,
  type Fact,
  type Values,
} from './account.js';

export function solanaAccount({ transfers, spl_transfers, instructions }: Values): Account {
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
  // What leaves an account that is closed or unwrapped is in both lists.
  const alike = tokens.filter((token) => sol.some(({ from, to }) => from === token['from'] && to === token['to']));
  const other = calls.length > sol.length + tokens.length - alike.length;
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
