import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Failure } from '../../../domain/failure.ts';
import { raceSignal } from '../../../ports/abort-signals.ts';
import type { ExecutionStart } from '../../../ports/sandbox-executions.ts';
import type { ExecutionRequest } from '../../../ports/sandbox-runtime.ts';
import { spawned } from '../../shared/spawned.ts';
import type { ExecutionHost, HostExecution, KeptFile, Supervise } from '../execution-host.ts';
import { refusedExecution, whyUnrunnable } from '../execution-streams.ts';
import { sandboxPath } from '../sandbox-path.ts';
import { type Child, type ChildExecution, childExecution, spawnCommand } from './child-execution.ts';
import { passedEnvironment } from './command.ts';
import { makeHome } from './data-folder.ts';
import { hostPath } from './file-transfer.ts';
import type { LiveLaunch, Observer } from './observed-sandbox.ts';
import { findLeader, killAll, type Lineage } from './process-groups.ts';
import { unavailable, withFailures } from './runtime-failures.ts';

const variable = 'SKEP_EXECUTION_MARK';

/** Returns the mark of an execution that outlives the process that started it. */
function keptMark(sandboxId: string, executionId: string): string {
  // The last dot keeps a mark from being the prefix of another one.
  return `kept.${sandboxId}.${executionId}.`;
}

/** Runs a task of a sandbox after its earlier tasks, so not during a freeze. */
type RunExclusive = <T>(sandboxId: string, task: () => Promise<T>) => Promise<T>;

/**
 * Runs additional commands in sandboxes. Their processes belong to the sandbox, so freezing, stopping or removing it affects them too.
 * Durable ones are kept in the data folder. Skep's scripts can read it also while a sandbox is frozen or stopped.
 */
export class ProcessExecutionHost implements ExecutionHost {
  readonly #observer: Observer;
  readonly #runExclusive: RunExclusive;
  /** The running executions with their sandbox's id, or null for a script. */
  readonly #own = new Map<ChildExecution, string | null>();
  #isClosed = false;

  constructor(observer: Observer, runExclusive: RunExclusive) {
    this.#observer = observer;
    this.#runExclusive = runExclusive;
  }

  async observe(id: string): ReturnType<ExecutionHost['observe']> {
    const { observed, live } = await this.#observer.observe(id);
    return { state: live?.isFreezing === true ? 'frozen' : observed.state, runId: live?.claim.plan.mark ?? '' };
  }

  folder(id: string): string {
    return this.#observer.layout.sandbox(id).executions;
  }

  mark(id: string, executionId: string): string {
    return `${variable}=${keptMark(id, executionId)}`;
  }

  launch(id: string, start: ExecutionStart, supervise: Supervise, signal: AbortSignal): Promise<HostExecution> {
    return this.execute(id, start, signal, { mark: keptMark(id, start.executionId), supervise });
  }

  /** With `kept`, runs its supervisor instead of the command. */
  execute(
    id: string, request: ExecutionRequest, signal: AbortSignal, kept?: { readonly mark: string; readonly supervise: Supervise },
  ): Promise<HostExecution> {
    const mark = kept?.mark ?? randomUUID();
    return raceSignal(this.#runExclusive(id, () => this.#execute(id, request, signal, mark, kept?.supervise)), signal);
  }

  async #execute(
    id: string, request: ExecutionRequest, signal: AbortSignal, mark: string, supervise: Supervise | undefined,
  ): Promise<HostExecution> {
    const { live, environment } = await this.#running(id);
    const { plan } = live.claim;
    const { workspace, home, executions: folder } = this.#observer.layout.sandbox(id);
    const workingDir = request.workingDir === undefined ? null : sandboxPath(request.workingDir, 'workingDir');
    const unrunnable = whyUnrunnable(request);
    if (unrunnable !== null) return refusedExecution(126, unrunnable);
    this.#requireOpen(signal);
    const { SKEP_WORKSPACE = '', SKEP_SANDBOX_ID = '', SKEP_SANDBOX_MARK = '' } = environment;
    const cwd = workingDir === null ? workspace : hostPath(workingDir, { folder: workspace, workingDir: plan.workingDir });
    const context = { folder, runId: plan.mark, workingDir: cwd };
    await makeHome(home);
    // The supervisor enters the working directory itself, as on Docker.
    const [command, startDir] = supervise === undefined ? [request.command, cwd] : [supervise(context), '/'];
    const child = await spawnCommand(command, startDir, {
      ...environment,
      // The leader's own PATH is for its tools, so it is replaced here.
      PATH: plan.path ?? passedEnvironment().PATH,
      // In a launch of an earlier version, the workspace is the home.
      ...(environment['HOME'] === SKEP_WORKSPACE && { HOME: home }),
      ...request.env,
      SKEP_WORKSPACE,
      SKEP_SANDBOX_ID,
      SKEP_SANDBOX_MARK,
      [variable]: mark,
    });
    if ('reason' in child) return refusedExecution(child.code, child.reason);
    const execution = await this.#follow(child, mark);
    this.#keep(execution, id);
    try {
      // If the sandbox was changed before the command existed, that change did not affect the command.
      if ((await this.#running(id)).live.number !== live.number) throw notRunning(id, 'started anew');
      this.#requireOpen(signal);
    } catch (error) {
      await execution.kill();
      throw error;
    }
    return { ...execution, workingDir: cwd };
  }

  async run(_id: string, [program = '', ...args]: readonly string[], signal: AbortSignal): Promise<HostExecution> {
    signal.throwIfAborted();
    const options = { cwd: '/', env: passedEnvironment(), detached: true } as const;
    const child = await spawned(spawn(program, args, { ...options, stdio: ['pipe', 'pipe', 'ignore'] }));
    const isOver = (): boolean => child.exitCode !== null || child.signalCode !== null;
    const script = childExecution(child, async () => void (isOver() || process.kill(-(child.pid ?? 0), 'SIGKILL')));
    this.#keep(script, null);
    return { ...script, exited: script.exited.then((code) => (child.signalCode === null ? code : null)) };
  }

  /** Yields nothing, because scripts can read all files. */
  async *keptFiles(): AsyncGenerator<KeptFile> {}

  async remove(id: string, executionId: string): Promise<void> {
    // The sandbox can write an execution's files, so the leader in them is not trusted. Kills all processes with the mark.
    const boot = await this.#observer.table.bootId();
    await this.#killAll(keptMark(id, executionId), { pid: -1, start: '0', boot });
    await rm(join(this.folder(id), executionId), { recursive: true, force: true });
  }

  /** Ends the executions of a sandbox whose own command has ended, since they must not keep it running. */
  async killOrphans(id: string): Promise<void> {
    const orphans = [...this.#own].flatMap(([execution, owner]) => (owner === id ? [execution] : []));
    if (orphans.length === 0) return;
    const { live } = await this.#observer.observe(id);
    if (live !== null && (await findLeader(this.#observer.table, live.claim.leader)) !== null) return;
    for (const execution of orphans) await execution.kill();
  }

  /** Kills the running executions, except durable ones, which continue without input. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#own.keys()].map((execution) => execution.leave()));
  }

  #keep(execution: ChildExecution, id: string | null): void {
    this.#own.set(execution, id);
    void execution.exited.then(() => this.#own.delete(execution));
  }

  async #follow(child: Child, mark: string): Promise<ChildExecution> {
    const execution = childExecution(child, () => withFailures(() => this.#killAll(mark, leader)));
    // If the command has already ended, its remaining processes are found by their mark. They are not older than this process.
    const { table } = this.#observer;
    const pid = child.pid ?? 0;
    const found = (await table.find(pid)) ?? (await table.find(process.pid));
    const leader = found === null ? null : { pid, start: found.start, boot: await table.bootId() };
    return execution;
  }

  #killAll(mark: string, leader: Lineage['leader']): Promise<void> {
    return killAll(this.#observer.table, { leader, plan: { mark }, variable });
  }

  /** Returns the running launch and its environment without its secrets. Throws if there is none. */
  async #running(id: string): Promise<{ readonly live: LiveLaunch; readonly environment: Readonly<Record<string, string>> }> {
    const { live, observed } = await this.#observer.observe(id);
    if (observed.state === 'absent') throw new Failure('sandbox_not_found', { id });
    if (live === null || observed.state !== 'running' || live.isFreezing) throw notRunning(id, observed.state);
    const leader = await findLeader(this.#observer.table, live.claim.leader);
    const environment = leader === null ? null : await this.#observer.table.environment(leader);
    if (environment === null) throw notRunning(id, 'without its own command');
    const { secrets = [] } = live.claim.plan;
    return { live, environment: Object.fromEntries(Object.entries(environment).filter(([name]) => !secrets.includes(name))) };
  }

  #requireOpen(signal: AbortSignal): void {
    signal.throwIfAborted();
    if (this.#isClosed) throw unavailable({ code: 'closed' });
  }
}

function notRunning(id: string, status: string): Failure<'sandbox_not_running'> {
  return new Failure('sandbox_not_running', { id, status });
}
