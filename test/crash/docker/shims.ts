import { readFileSync, readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { until } from '../../support/until.ts';

/**
 * Ends what an engine that was killed in the middle of a start or a removal leaves behind for ever: the shims of containers that
 * it no longer knows, with what they hold. `host` is `unix://FOLDER/sock` of an engine that has ended.
 */
export async function endShims(host: string): Promise<void> {
  const folder = `${dirname(host.replace('unix://', ''))}/`;
  const shims = (): number[] => processes().filter((pid) => read(pid, 'cmdline').includes(`\0${folder}`));
  for (const shim of shims()) for (const pid of [...childrenOf(shim), shim]) kill(pid);
  await until(shims, (left) => left.length === 0);
}

function processes(): number[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number);
}

function childrenOf(parent: number): number[] {
  return processes().filter((pid) => Number(/\) \S (\d+)/.exec(read(pid, 'stat'))?.[1]) === parent);
}

/** Empty where it ended meanwhile. */
function read(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return '';
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // It ended meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
