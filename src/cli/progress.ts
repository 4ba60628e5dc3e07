import type { Terminal } from './terminal.js';

const width = 30;

/** A progress bar for a terminal: the part done, the number of events, and about how long the rest takes. */
export function progressBar(events: number, share: number, elapsedMs: number): string {
  const done = Math.max(0, Math.min(1, share));
  const filled = Math.round(done * width);
  const bar = `${'█'.repeat(filled)}${'░'.repeat(width - filled)}`;
  const rest = done > 0.02 && done < 1 ? `, ${duration((elapsedMs / done) * (1 - done))} left` : '';
  return `${bar} ${String(Math.floor(done * 100)).padStart(3)} %  ${events.toLocaleString('en')} events${rest}`;
}

function duration(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  return seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`;
}

/** Shows the number of events so far on one line; nothing unless this is a terminal, and for people. */
export function eventsSoFar(terminal: Terminal, { json }: { readonly json?: boolean }) {
  if (json || !terminal.surroundings.showsProgress) return {};
  return { onProgress: (events: number) => terminal.progress(`${events.toLocaleString('en')} events`) };
}
