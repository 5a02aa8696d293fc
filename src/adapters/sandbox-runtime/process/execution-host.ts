import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionStart } from '../../../ports/sandbox-executions.ts';
import type { ExecutionHost, HostExecution, KeptFile, Supervise } from '../execution-host.ts';
import { inputStream, outputStream } from '../execution-streams.ts';
import { passedEnvironment } from './command.ts';
import type { Layout } from './data-folder.ts';
import { type Kept, executionVariable, keptMark } from './executions.ts';
import type { Observer } from './observed-sandbox.ts';
import { killAll } from './process-groups.ts';
import type { ProcessTable } from './process-table.ts';

/** Starts a command of a sandbox, while no freeze of it is under way. */
type Execute = (sandboxId: string, start: ExecutionStart, signal: AbortSignal, kept: Kept) => Promise<HostExecution>;

/**
 * Leads nothing, and is older than any process. The files of an execution are not asked who leads it, since the sandbox can write them: its
 * processes are known by their mark.
 */
const nobody = { pid: -1, start: '0' };

/** Keeps executions in the data folder of the runtime. Its scripts run beside the sandboxes, also while these are frozen or stopped. */
export class ProcessExecutionHost implements ExecutionHost {
  readonly launchTerminal = null;
  readonly #layout: Layout;
  readonly #table: ProcessTable;
  readonly #observer: Observer;
  readonly #execute: Execute;
  /** What becomes of each script when this is closed. */
  readonly #scripts = new Map<ChildProcess, () => Promise<void>>();

  constructor(layout: Layout, table: ProcessTable, observer: Observer, execute: Execute) {
    this.#layout = layout;
    this.#table = table;
    this.#observer = observer;
    this.#execute = execute;
  }

  async observe(id: string): ReturnType<ExecutionHost['observe']> {
    const { observed, live } = await this.#observer.observe(id);
    return { state: live?.isFreezing === true ? 'frozen' : observed.state, run: live?.claim.plan.mark ?? '' };
  }

  folder(id: string): string {
    return this.#layout.sandbox(id).executions;
  }

  mark(id: string, executionId: string): string {
    return `${executionVariable}=${keptMark(id, executionId)}`;
  }

  launch(id: string, start: ExecutionStart, supervise: Supervise, signal: AbortSignal): Promise<HostExecution> {
    return this.#execute(id, start, signal, { executionId: start.executionId, supervise });
  }

  async run(_id: string, [program = '', ...args]: readonly string[], signal: AbortSignal): Promise<HostExecution> {
    signal.throwIfAborted();
    const child = spawn(program, args, { cwd: '/', env: passedEnvironment(), detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
    await once(child, 'spawn');
    const exited = once(child, 'exit').then(([code]) => (typeof code === 'number' ? code : null));
    const kill = async (): Promise<void> => {
      if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), 'SIGKILL');
      await exited;
    };
    const leave = async (): Promise<void> => {
      child.unref();
      for (const stream of [child.stdin, child.stdout]) stream.destroy();
    };
    this.#scripts.set(child, kill);
    void exited.finally(() => this.#scripts.delete(child));
    return {
      stdin: inputStream(child.stdin), stdout: outputStream(child.stdout), stderr: ReadableStream.from<Uint8Array>([]), exited, kill,
      outlive: () => void this.#scripts.set(child, leave),
    };
  }

  /** All is read by scripts. */
  async *keptFiles(): AsyncGenerator<KeptFile> {}

  async remove(id: string, executionId: string): Promise<void> {
    const folder = join(this.folder(id), executionId);
    await killAll(this.#table, {
      leader: { ...nobody, boot: await this.#table.bootId() }, plan: { mark: keptMark(id, executionId) }, variable: executionVariable,
    });
    await rm(folder, { recursive: true, force: true });
  }

  /** Ends its scripts, or leaves those that outlive it: their input ends. */
  async close(): Promise<void> {
    await Promise.all([...this.#scripts.values()].map((end) => end()));
  }
}
