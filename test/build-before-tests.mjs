import { execFileSync } from 'node:child_process';

/** Workers and child processes cannot load TypeScript: the suite runs them from `dist`, which must not be stale. */
export default function buildBeforeTests() {
  execFileSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
}
