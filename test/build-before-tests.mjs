import { execFileSync } from 'node:child_process';

/** Workers and child processes cannot load TypeScript: the suite runs them from `dist`, which must not be stale. BUILT says that it is not. */
export default function buildBeforeTests() {
  if (process.env.BUILT) return;
  execFileSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
}
