import { execFileSync } from 'node:child_process';

/** What the suite tests is `dist`, which must not be stale (docs/adr/0032). BUILT says that it is not. */
export default function buildBeforeTests() {
  if (process.env.BUILT) return;
  execFileSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
}
