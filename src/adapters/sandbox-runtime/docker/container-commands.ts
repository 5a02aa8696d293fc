import { randomUUID } from 'node:crypto';
import { addAbortSignal, type Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import { LRUCache } from 'lru-cache';
import { Failure } from '../../../domain/failure.ts';
import type { ExecutionRequest } from '../../../ports/sandbox-runtime.ts';
import type { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { raceSignal } from '../../shared/timeout.ts';
import type { HostExecution, Supervise } from '../execution-host.ts';
import { refusedExecution, whyUnrunnable } from '../execution-streams.ts';
import { sandboxPath } from '../sandbox-path.ts';
import { notBegun, refusedBy } from './command-refusals.ts';
import { type Engine, findContainer, statusOf, unavailable } from './engine.ts';
import { OwnExecution, runInContainer, type StartedExecution, type Unfrozen } from './execution.ts';
import { type Beginning, ExecutionOutput } from './execution-output.ts';
import { listContainers } from './observed-sandbox.ts';
import { labels } from './labels.ts';
import {
  beginCommand, keptMark, killCommand, killLeftoversCommand, markVariable, newMark, noLeader, shellCommand, shellLine,
} from './shell-scripts.ts';
import type { SandboxWatch } from './sandbox-watch.ts';
import { type BegunExecution, type RefusedCommand, type ShellCommand, ShellPool } from './shell-pool.ts';

/** How to run a command, if not with plain pipes. */
interface ExecutionForm {
  /** True for a terminal instead of pipes. All its output is standard output. */
  readonly isTerminal?: boolean;
  /** Runs the command for a kept execution, so no later process ends it as a leftover. `supervise`: runs a supervisor instead. */
  readonly kept?: { readonly executionId: string; readonly supervise?: Supervise };
  /** Lets a waiting shell run it, without input. */
  readonly inShell?: Pick<ShellCommand, 'leavesNoProcesses'>;
}

/** What the engine starts in a container. */
type Program = Pick<Required<ExecutionRequest>, 'command' | 'env'> & Pick<ExecutionForm, 'isTerminal'> & Pick<StartedExecution, 'mark'>;

/** The folder of kept executions in each container. It is writable also if the root is read-only. */
export const keptFolder = '/tmp/.skep-executions';

/** How long a freeze waits for an execution to begin. */
const unfrozenMs = 5_000;
/** How long a close waits for executions that begin. Then it ends them. */
const beginMs = 5_000;
/** How long an execution may take to begin. Longer than a step of the sandbox waits for it. */
const beginLimitMs = 20_000;

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

  async execute(id: string, request: ExecutionRequest, signal: AbortSignal, form: ExecutionForm = {}): Promise<HostExecution> {
    signal.throwIfAborted();
    if (this.#isClosing) throw closed();
    // The work continues if the caller leaves, so that a command that still begins is ended.
    const beginning = this.#begin(id, request, form, signal);
    const settled = beginning.catch(() => {}).finally(() => this.#pending.delete(settled));
    this.#pending.add(settled);
    return raceSignal(beginning, signal);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all([...this.#own].map((execution) => execution.leave()));
    // In a sandbox that was frozen at that moment, the command never begins.
    await raceSignal(Promise.all(this.#pending), AbortSignal.timeout(beginMs)).catch(() => this.#left.abort());
    await Promise.all(this.#pending);
  }

  async #begin(id: string, request: ExecutionRequest, form: ExecutionForm, signal: AbortSignal): Promise<HostExecution> {
    const workingDir = request.workingDir === undefined ? null : sandboxPath(request.workingDir, 'workingDir');
    const unrunnable = whyUnrunnable(request);
    const found = await this.#runningContainer(id, signal).catch((error: unknown) => {
      throw form.kept?.supervise === undefined ? error : notBegun(error);
    });
    if (unrunnable !== null) return refusedExecution(126, unrunnable);
    // What an earlier process left, for example git in the same work tree, ends before the first command begins.
    await this.#clear(found);
    try {
      const execution = await this.#run(found, { ...request, workingDir: workingDir ?? (found.Config.WorkingDir || '/') }, form, signal);
      if ('refusal' in execution) return await this.#refused(id, execution.refusal);
      if (signal.aborted) {
        await execution.kill();
        signal.throwIfAborted();
      }
      if (this.#isClosing) {
        await execution.leave();
        throw closed();
      }
      return execution;
    } catch (error) {
      if (statusOf(error) !== 404 && statusOf(error) !== 409) throw error;
      await this.#runningContainer(id, this.#engine.closed);
      throw new Failure('sandbox_not_running', { id, status: 'restarting' });
    }
  }

  /** If the command can't begin, returns the engine's message. */
  async #run(
    container: Docker.ContainerInspectInfo, request: ExecutionRequest & { workingDir: string },
    { isTerminal = false, kept, inShell }: ExecutionForm, signal: AbortSignal,
  ): Promise<BegunExecution | RefusedCommand> {
    const mark = newMark();
    const { workingDir } = request;
    const context = { folder: keptFolder, runId: container.State.StartedAt, workingDir, fallbackMark: `${markVariable}=${mark}` };
    const env = { ...request.env, [markVariable]: kept === undefined ? mark : keptMark(kept.executionId) };
    if (inShell !== undefined) {
      const line = shellLine(kept?.supervise?.({ ...context, announce: false, codeMark: this.#shells.mark }) ?? request.command, env);
      if (line !== null) return this.#runInShell(container, { line, mark, ...inShell }, signal);
    }
    const command = kept?.supervise?.({ ...context, announce: true }) ?? beginCommand(request, workingDir);
    return this.#unfrozenOf(container)(() => this.#start(container, { command, env, mark, isTerminal }, signal));
  }

  async #runInShell(
    container: Docker.ContainerInspectInfo, command: ShellCommand, signal: AbortSignal,
  ): Promise<BegunExecution | RefusedCommand> {
    const unfrozen = this.#unfrozenOf(container);
    const begun = await unfrozen(() => this.#shells.run(container.Id, command));
    // A new shell starts in a step of its own: a freeze does not wait long enough for a waiting shell that does not answer. The command
    // begins in the same step, so that many commands do not wait until the shells of all have started.
    return begun ?? unfrozen(async () => {
      // The shell ends with its connection, so no later process ends it as a leftover.
      const mark = keptMark(`shell-${randomUUID()}`);
      const program = { command: shellCommand(this.#shells.mark), env: { [markVariable]: mark }, mark };
      const shell = await this.#start(container, program, signal);
      return 'refusal' in shell ? shell : this.#shells.runInNew(container.Id, command, shell);
    });
  }

  /** Must run within `#unfrozenOf`. */
  async #start(
    container: Docker.ContainerInspectInfo, { command, env, mark, isTerminal = false }: Program, signal: AbortSignal,
  ): Promise<OwnExecution | RefusedCommand> {
    const { docker, call } = this.#engine;
    const unfrozen = this.#unfrozenOf(container);
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
    const started = { engine: this.#engine, container, unfrozen: this.#unfrozenOf(container) };
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

  /** Stops waiting after some seconds, since another client may have frozen the sandbox. */
  #unfrozenOf({ Config }: Docker.ContainerInspectInfo): Unfrozen {
    const id = Config.Labels[labels.sandbox] ?? '';
    return async (work, signal) => {
      const { result } = await this.#mutex.runExclusive(id, async () => {
        const result = work();
        await Promise.race([result.catch(() => {}), sleep(unfrozenMs, undefined, { ref: false })]);
        return { result };
      }, signal);
      return result;
    };
  }

  async #refused(id: string, message: string): Promise<HostExecution> {
    await this.#runningContainer(id, this.#engine.closed);
    return refusedBy(message);
  }

  async #runningContainer(id: string, signal: AbortSignal): Promise<Docker.ContainerInspectInfo> {
    const found = await findContainer(this.#engine, id, signal);
    const { Running, Paused, Status } = found.State;
    if (!Running || Paused) throw new Failure('sandbox_not_running', { id, status: Paused ? 'frozen' : Status });
    return found;
  }
}

function closed(): Failure<'runtime_unavailable'> {
  return unavailable({ code: 'closed' }, undefined, 1);
}
