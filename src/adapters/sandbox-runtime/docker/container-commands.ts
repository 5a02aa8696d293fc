import { randomUUID } from 'node:crypto';
import { addAbortSignal, type Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { LRUCache } from 'lru-cache';
import { Failure } from '../../../domain/failure.ts';
import { raceSignal } from '../../../ports/abort-signals.ts';
import type { ExecutionStart } from '../../../ports/sandbox-executions.ts';
import type { ExecutionRequest } from '../../../ports/sandbox-runtime.ts';
import type { KeyedMutex } from '../../shared/keyed-mutex.ts';
import type { HostExecution, ScriptOptions, Supervise } from '../execution-host.ts';
import { refusedExecution, whyUnrunnable } from '../execution-streams.ts';
import { sandboxPath } from '../sandbox-path.ts';
import { notBegun, refusedBy } from './command-refusals.ts';
import { type Engine, findContainer, requireRunning, statusOf, unavailable } from './engine.ts';
import { OwnExecution, runInContainer, type StartedExecution, unfrozenIn } from './execution.ts';
import { type Beginning, ExecutionOutput } from './execution-output.ts';
import { listContainers } from './observed-sandbox.ts';
import { labels } from './labels.ts';
import {
  beginCommand, keptMark, killCommand, killLeftoversCommand, markVariable, newMark, noLeader, shellCommand, shellLine,
} from './shell-scripts.ts';
import type { SandboxWatch } from './sandbox-watch.ts';
import { type BegunExecution, type RefusedCommand, type ShellCommand, ShellPool } from './shell-pool.ts';

/** Starts a command in the container of a running sandbox. */
type Start = (container: Docker.ContainerInspectInfo, workingDir: string) => Promise<BegunExecution | RefusedCommand>;

/** What the engine starts in a container. In a terminal, all output is standard output. */
type Program = Pick<Required<ExecutionRequest>, 'command' | 'env'> & Pick<StartedExecution, 'mark'> & { readonly isTerminal?: boolean };

/** The folder of kept executions in each container. It is writable also if the root is read-only. */
export const keptFolder = '/tmp/.skep-executions';

/** How long a close waits for executions that begin. Then it ends them. */
const beginMs = 5_000;
/** How long an execution may take to begin. Longer than a step of the sandbox waits for it. */
const beginLimitMs = 20_000;

const closedFailure = (): Failure => unavailable({ code: 'closed' }, undefined, 1);

/** Runs commands in the containers of sandboxes. The image only needs `/bin/sh`. */
export class ContainerCommands {
  readonly #engine: Engine;
  readonly #watch: SandboxWatch;
  readonly #mutex: KeyedMutex;
  /** By container: kills what earlier processes of Skep left in it. Not set after a failure. */
  readonly #cleared = new LRUCache<string, Promise<number | null>>({ max: 10_000 });
  readonly #own = new Set<OwnExecution>();
  readonly #shells = new ShellPool();
  readonly #pending = new Set<Promise<unknown>>();
  /** Fires when nobody waits any more for executions to begin. */
  readonly #left = new AbortController();
  #isClosing = false;

  constructor(engine: Engine, watch: SandboxWatch, mutex: KeyedMutex) {
    this.#engine = engine;
    this.#watch = watch;
    this.#mutex = mutex;
  }

  /** Starts a command with pipes or a terminal. It ends with this process. */
  startAttached(id: string, request: ExecutionRequest, signal: AbortSignal, isTerminal = false): Promise<HostExecution> {
    return this.#begin(id, request, signal, (container, workingDir) => {
      const mark = newMark();
      const env = { ...request.env, [markVariable]: mark };
      return this.#startProgram(container, { command: beginCommand(request.command, workingDir), env, mark, isTerminal }, signal);
    });
  }

  /** Starts a durable command: its supervisor, in a waiting shell if the command needs neither input nor a terminal. */
  startDurable(id: string, request: ExecutionStart, supervise: Supervise, signal: AbortSignal): Promise<HostExecution> {
    return this.#begin(id, request, signal, (container, workingDir) => {
      const mark = newMark();
      const context = { folder: keptFolder, runId: container.State.StartedAt, workingDir, fallbackMark: `${markVariable}=${mark}` };
      const env = { ...request.env, [markVariable]: keptMark(request.executionId) };
      if (!request.stdin && request.tty === null) {
        const line = shellLine(supervise({ ...context, codeMark: this.#shells.mark }), env);
        if (line !== null) return this.#runLine(container, { line, mark, leavesNoProcesses: false }, signal);
      }
      return this.#startProgram(container, { command: supervise({ ...context, announce: true }), env, mark }, signal);
    }, notBegun);
  }

  /** Starts a script: a short one in a waiting shell. */
  startScript(
    id: string, command: readonly string[], signal: AbortSignal, { executionId, isShort = false }: ScriptOptions = {},
  ): Promise<HostExecution> {
    return this.#begin(id, { command, workingDir: '/' }, signal, (container) => {
      const mark = newMark();
      const env = { [markVariable]: executionId === undefined ? mark : keptMark(executionId) };
      const line = isShort ? shellLine(command, env) : null;
      if (line !== null) return this.#runLine(container, { line, mark, leavesNoProcesses: true }, signal);
      return this.#startProgram(container, { command: beginCommand(command, '/'), env, mark }, signal);
    });
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all([...this.#own].map((execution) => execution.leave()));
    // In a sandbox that was frozen at that moment, the command never begins.
    await raceSignal(Promise.all(this.#pending), AbortSignal.timeout(beginMs)).catch(() => this.#left.abort());
    await Promise.all(this.#pending);
  }

  /** Begins a command in a running sandbox. `unreached` makes the failure if it is unknown whether the sandbox runs. */
  async #begin(
    id: string, request: ExecutionRequest, signal: AbortSignal, start: Start, unreached = (error: unknown): unknown => error,
  ): Promise<HostExecution> {
    signal.throwIfAborted();
    if (this.#isClosing) throw closedFailure();
    const workingDir = request.workingDir === undefined ? null : sandboxPath(request.workingDir, 'workingDir');
    const begin = async (): Promise<HostExecution> => {
      const unrunnable = whyUnrunnable(request);
      const container = await this.#runningContainer(id, signal).catch((error: unknown) => Promise.reject(unreached(error)));
      // Checked after the sandbox, so "not running" wins over "cannot run".
      if (unrunnable !== null) return refusedExecution(126, unrunnable);
      // What an earlier process left, for example git in the same work tree, ends before the first command begins.
      await this.#clear(container);
      return this.#startIn(id, () => start(container, workingDir ?? (container.Config.WorkingDir || '/')), signal);
    };
    // The work continues if the caller leaves, so that a command that still begins is ended.
    const beginning = begin();
    const settled = beginning.catch(() => {}).finally(() => this.#pending.delete(settled));
    this.#pending.add(settled);
    return raceSignal(beginning, signal);
  }

  async #startIn(id: string, start: () => ReturnType<Start>, signal: AbortSignal): Promise<HostExecution> {
    try {
      const execution = await start();
      if ('refusal' in execution) {
        // A stopped container looks like a refusal, so look first.
        await this.#runningContainer(id, this.#engine.closed);
        return refusedBy(execution.refusal);
      }
      if (signal.aborted) {
        await execution.kill();
        signal.throwIfAborted();
      }
      if (this.#isClosing) {
        await execution.leave();
        throw closedFailure();
      }
      return execution;
    } catch (error) {
      if (statusOf(error) !== 404 && statusOf(error) !== 409) throw error;
      await this.#runningContainer(id, this.#engine.closed);
      // The engine refused the exec, but the container runs: it was restarted meanwhile.
      throw new Failure('sandbox_not_running', { id, status: 'restarting' });
    }
  }

  /** Runs a line in a waiting shell, or in a new one. */
  async #runLine(
    container: Docker.ContainerInspectInfo, command: ShellCommand, signal: AbortSignal,
  ): Promise<BegunExecution | RefusedCommand> {
    const unfrozen = unfrozenIn(container, this.#mutex);
    const begun = await unfrozen(() => this.#shells.run(container.Id, command));
    // A new shell starts in a step of its own: a freeze does not wait long enough for a waiting shell that does not answer. The command
    // begins in the same step, so that many commands do not wait until the shells of all have started.
    return begun ?? unfrozen(async () => {
      // The shell ends with its connection, so no later process ends it as a leftover.
      const mark = keptMark(`shell-${randomUUID()}`);
      const program = { command: shellCommand(this.#shells.mark), env: { [markVariable]: mark }, mark };
      const shell = await this.#startUnfrozen(container, program, signal);
      return 'refusal' in shell ? shell : this.#shells.runInNew(container.Id, command, shell);
    });
  }

  #startProgram(container: Docker.ContainerInspectInfo, program: Program, signal: AbortSignal): Promise<OwnExecution | RefusedCommand> {
    return unfrozenIn(container, this.#mutex)(() => this.#startUnfrozen(container, program, signal));
  }

  /** Must run within `Unfrozen`. */
  async #startUnfrozen(
    container: Docker.ContainerInspectInfo, { command, env, mark, isTerminal = false }: Program, signal: AbortSignal,
  ): Promise<OwnExecution | RefusedCommand> {
    const { docker, call } = this.#engine;
    const unfrozen = unfrozenIn(container, this.#mutex);
    const options: Docker.ExecCreateOptions = {
      Tty: isTerminal,
      AttachStdin: true,
      AttachStdout: true,
      AttachStderr: true,
      Cmd: [...command],
      Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      WorkingDir: '/',
    };
    const exec = await call((abortSignal) => docker.getContainer(container.Id).exec({ ...options, abortSignal }), { signal });
    // From here on, the call can't be cancelled: nobody would know whether the command has begun.
    const socket: Duplex = await call((abortSignal) => exec.start({ hijack: true, stdin: true, Tty: isTerminal, abortSignal }));
    addAbortSignal(this.#left.signal, socket);
    const output = new ExecutionOutput(socket, isTerminal);
    const started = { engine: this.#engine, exec, watch: this.#watch, container, socket, mark, unfrozen };
    const leader = await this.#begun(output, started);
    if ('refusal' in leader) return leader;
    const execution = new OwnExecution(started, output, leader);
    this.#own.add(execution);
    void execution.exited.then(() => this.#own.delete(execution));
    return execution;
  }

  /** Waits until an execution begins. Refuses it after a time if the sandbox is not frozen, since its shell may be replaced. */
  async #begun(output: ExecutionOutput, started: Pick<StartedExecution, 'engine' | 'container' | 'unfrozen' | 'mark'>): Promise<Beginning> {
    for (;;) {
      const begun = await raceSignal(output.begun, AbortSignal.timeout(beginLimitMs)).catch(() => null);
      if (begun !== null) return begun;
      const killed = runInContainer(started, killCommand(noLeader, started.mark)).catch(() => 1);
      if ((await Promise.race([output.begun.then(() => null), killed])) !== null) output.refuse();
    }
  }

  /** Kills the executions that earlier processes of Skep left in running sandboxes, if the engine still lists them. */
  async endLeftovers(): Promise<void> {
    for (const { State, Labels } of await listContainers(this.#engine)) {
      // If that fails in one container, the next execution in it tries again.
      if (State === 'running') await this.endLeftoversOf(Labels[labels.sandbox] ?? '').catch(() => {});
    }
  }

  /** Kills the executions that earlier processes left in the sandbox, if it runs. Returns true if the sandbox has any executions. */
  async endLeftoversOf(id: string): Promise<boolean> {
    const found = await this.#engine.find(id);
    if (found === null || !found.State.Running || found.State.Paused) return false;
    return await this.#clear(found);
  }

  /** Kills the executions that earlier processes left in the container, once. Returns true if it has any executions. */
  async #clear(container: Docker.ContainerInspectInfo): Promise<boolean> {
    const { Id, ExecIDs } = container;
    const hasExecutions = ExecIDs !== undefined && ExecIDs !== null && ExecIDs.length > 0;
    const started = { engine: this.#engine, container, unfrozen: unfrozenIn(container, this.#mutex) };
    const clearing = this.#cleared.get(Id) ?? (hasExecutions ? runInContainer(started, killLeftoversCommand()) : Promise.resolve(0));
    this.#cleared.set(Id, clearing);
    // Ignores exit codes: an image without a shell never had executions.
    let code: number | null = null;
    try {
      code = await clearing;
    } finally {
      if (code === null) this.#cleared.delete(Id);
    }
    return hasExecutions;
  }

  async #runningContainer(id: string, signal: AbortSignal): Promise<Docker.ContainerInspectInfo> {
    const found = await findContainer(this.#engine, id, signal);
    requireRunning(id, found);
    return found;
  }
}
