import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionStart } from '../../../ports/sandbox-executions.ts';
import type { ExecutionHost, HostExecution, KeptFile, Supervise } from '../execution-host.ts';
import { passedEnvironment } from './command.ts';
import { type ChildExecution, childExecution, type Kept, executionVariable, keptMark } from './executions.ts';
import type { Observer } from './observed-sandbox.ts';
import { killAll } from './process-groups.ts';

/** Starts a command of a sandbox, while no freeze of it is under way. */
type Execute = (sandboxId: string, start: ExecutionStart, signal: AbortSignal, kept: Kept) => Promise<HostExecution>;

/**
 * A leader that is no process, and older than any. The sandbox can write the files of an execution, so they are not trusted to name its
 * leader. Its processes are found by their mark.
 */
const nobody = { pid: -1, start: '0' };

/** Keeps executions in the data folder of the runtime. Its scripts run beside the sandboxes, also while these are frozen or stopped. */
export class ProcessExecutionHost implements ExecutionHost {
  readonly launchTerminal = null;
  readonly #observer: Observer;
  readonly #execute: Execute;
  readonly #scripts = new Set<ChildExecution>();

  constructor(observer: Observer, execute: Execute) {
    this.#observer = observer;
    this.#execute = execute;
  }

  async observe(id: string): ReturnType<ExecutionHost['observe']> {
    const { observed, live } = await this.#observer.observe(id);
    return { state: live?.isFreezing === true ? 'frozen' : observed.state, run: live?.claim.plan.mark ?? '' };
  }

  folder(id: string): string {
    return this.#observer.layout.sandbox(id).executions;
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
    const isOver = (): boolean => child.exitCode !== null || child.signalCode !== null;
    const script = childExecution(child, async () => void (isOver() || process.kill(-(child.pid ?? 0), 'SIGKILL')));
    this.#scripts.add(script);
    void script.exited.then(() => this.#scripts.delete(script));
    return { ...script, exited: script.exited.then((code) => (child.signalCode === null ? code : null)) };
  }

  /** None, because scripts can read all of it. */
  async *keptFiles(): AsyncGenerator<KeptFile> {}

  async remove(id: string, executionId: string): Promise<void> {
    const folder = join(this.folder(id), executionId);
    await killAll(this.#observer.table, {
      leader: { ...nobody, boot: await this.#observer.table.bootId() }, plan: { mark: keptMark(id, executionId) }, variable: executionVariable,
    });
    await rm(folder, { recursive: true, force: true });
  }

  /** Ends its scripts, or leaves those that outlive it: their input ends. */
  async close(): Promise<void> {
    await Promise.all([...this.#scripts].map((script) => script.leave()));
  }
}
