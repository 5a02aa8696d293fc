import { readFileSync, readdirSync } from 'node:fs';
import { ignoring } from '../../src/adapters/shared/system-errors.ts';

/**
 * Returns the pids of the processes of all sandboxes below the data folder, by sandbox id. Each of these processes has the id and the
 * workspace in its environment.
 */
export function sandboxesWithProcesses(dataDir: string): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const { SKEP_SANDBOX_ID: id, SKEP_WORKSPACE: workspace } = environmentOf(pid);
    if (id !== undefined && workspace?.startsWith(`${dataDir}/`) === true) found.set(id, [...(found.get(id) ?? []), Number(pid)]);
  }
  return found;
}

function environmentOf(pid: string): Record<string, string> {
  try {
    if (/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) return {};
    const lines = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
    return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
  } catch {
    // The process has ended, or belongs to another user.
    return {};
  }
}

/** Kills all processes of the sandboxes below the folder. They outlive the server that started them. */
export function killSandboxes(folder: string): void {
  for (const pid of [...sandboxesWithProcesses(folder).values()].flat()) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      // The process has ended.
      ignoring('ESRCH')(error);
    }
  }
}
