import type { SandboxRuntime } from '../../../ports/sandbox-runtime.ts';
import { ProcessRuntime } from './process-runtime.ts';
import type { ProcessTable } from './process-table.ts';
import { unavailable } from './runtime-failures.ts';

export interface ProcessRuntimeOptions {
  /** Absolute path of a folder of the runtime's own, which is made if it is not there, and closed to other users. */
  readonly root: string;
  /** How long a sandbox's processes may take to end when they are asked to. Default: 5,000. */
  readonly stopGraceMs?: number;
  /** How often sandboxes that an earlier process started are polled while somebody listens. Default: 250. */
  readonly pollMs?: number;
  /** Size from which a sandbox's output is moved to an old log, in place of the one before. Default: 16 MiB. */
  readonly logLimitBytes?: number;
  /** How processes are found. Default: in `/proc` on Linux and with `ps` elsewhere. */
  readonly processTable?: ProcessTable['kind'];
}

/**
 * Runs sandboxes as process groups of this host, without isolation: for one's own machine, and programs that one trusts.
 * All state is in `root` and in the host's process table, so that nothing is lost when this process ends.
 * Throws `runtime_unavailable` on a system that has no process groups.
 */
export function createProcessRuntime(options: ProcessRuntimeOptions): SandboxRuntime & { settled(): Promise<void> } {
  if (process.platform === 'win32') throw unavailable('it needs a POSIX system; use Docker on this one');
  return new ProcessRuntime(options);
}
