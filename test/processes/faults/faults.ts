import { execFileSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Faults of a disk, for processes started with `env`: see faults.c. Needs a C compiler (apt-get install gcc libc6-dev). */
export class DiskFaults {
  private readonly folder = mkdtempSync(join(tmpdir(), 'countersign-faults-'));
  private readonly control = join(this.folder, 'control');
  private readonly library = join(this.folder, 'faults.so');

  /** @param dataDir the folder whose writes fail */
  constructor(private readonly dataDir: string) {
    const source = fileURLToPath(new URL('./faults.c', import.meta.url));
    execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', this.library, source, '-ldl']);
  }

  get env(): Readonly<Record<string, string>> {
    return { LD_PRELOAD: this.library, FAULT_DIR: realpathSync(this.dataDir), FAULT_CONTROL: this.control };
  }

  /** Killed before its n-th call that changes something in the folder. */
  killedAt(call: number): Readonly<Record<string, string>> {
    return { ...this.env, FAULT_KILL_AT: String(call) };
  }

  /** From now on these calls fail. */
  begin(calls: 'write' | 'sync', error: 'EIO' | 'ENOSPC'): void {
    writeFileSync(this.control, `${calls} ${constants.errno[error]}`);
  }

  end(): void {
    rmSync(this.control, { force: true });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
