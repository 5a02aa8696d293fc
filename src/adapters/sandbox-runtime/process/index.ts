import type { SandboxRuntime } from '../../../ports/sandbox-runtime.ts';
import { ProcessRuntime } from './process-runtime.ts';
import type { ProcessTable } from './process-table.ts';
import { unavailable } from './runtime-failures.ts';

export interface ProcessRuntimeOptions {
  /** The absolute path of the runtime's own folder. Created if it does not exist, and closed to other users. */
  readonly root: string;
  /** How long a sandbox's processes may take to end after SIGTERM, in milliseconds. Default: 5,000. */
  readonly stopGraceMs?: number;
  /** The interval for polling sandboxes that an earlier process started, while somebody listens, in milliseconds. Default: 250. */
  readonly pollMs?: number;
  /** The size at which a sandbox's output becomes the old log and replaces the previous one. Default: 16 MiB. */
  readonly logLimitBytes?: number;
  /** How processes are found. Default: in `/proc` on Linux and with `ps` elsewhere. */
  readonly processTable?: ProcessTable['kind'];
}

/**
 * Runs sandboxes as process groups of this host, without isolation: only for your own machine and trusted programs. All state is in `root`
 * and in the host's process table, so nothing is lost when this process ends. Throws `runtime_unavailable` on a system without process
 * groups.
 */
export function createProcessRuntime(options: ProcessRuntimeOptions): SandboxRuntime & { settled(): Promise<void> } {
  if (process.platform === 'win32') throw unavailable('it needs a POSIX system; use Docker on this one');
  return new ProcessRuntime(options);
}
