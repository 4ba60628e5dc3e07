/** How the tour tells its story on a terminal: colours only where there is one. */

const isTty = process.stdout.isTTY && process.stdout.hasColors();
const colour = (code: number) => (text: string) => (isTty ? `\x1b[${code}m${text}\x1b[0m` : text);
const bold = colour(1);
export const dim = colour(2);
export const green = colour(32);
export const red = colour(31);
export const yellow = colour(33);

export const say = (text = ''): void => void process.stdout.write(`${text}\n`);
let chapter = 0;
export const title = (text: string): void => say(`\n${bold(`${++chapter}. ${text}`)}`);
export const note = (text: string): void => say(`   ${dim(text)}`);
