import { addAbortSignal, type Duplex } from 'node:stream';
import { finished } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import type { TerminalSize } from '../../../ports/sandbox-executions.ts';
import type { KeyedMutex } from '../../shared/keyed-mutex.ts';
import type { HostExecution } from '../execution-host.ts';
import { inputStream, outputStream } from '../execution-streams.ts';
import { type Engine, killFailed, statusOf, unlessMissing, withSignal } from './engine.ts';
import type { ExecutionOutput } from './execution-output.ts';
import { labels } from './labels.ts';
import { killCommand, type Leader } from './shell-scripts.ts';
import type { SandboxWatch } from './sandbox-watch.ts';

/**
 * Runs work during which the engine starts a process in a container. A freeze waits until the work is done, because a freeze at that
 * moment can leave a container that accepts no more requests (Docker 20.10). Rejects if the signal fires before the work begins.
 */
export type Unfrozen = <T>(work: () => Promise<T>, signal?: AbortSignal) => Promise<T>;

/** How long a freeze waits at most: if another client has frozen the sandbox, the work ends only after a resume. */
const unfrozenMs = 5_000;

/** The mutex is the one that the steps of sandboxes use, such as a freeze. */
export function unfrozenIn({ Config }: Docker.ContainerInspectInfo, mutex: KeyedMutex): Unfrozen {
  const id = Config.Labels[labels.sandbox] ?? '';
  return async (work, signal) => {
    const { result } = await mutex.runExclusive(id, async () => {
      const result = work();
      await Promise.race([result.catch(() => {}), sleep(unfrozenMs, undefined, { ref: false })]);
      return { result };
    }, signal);
    return result;
  };
}

export interface StartedExecution {
  readonly engine: Engine;
  readonly exec: Docker.Exec;
  readonly watch: SandboxWatch;
  /** The container's state when the execution began. */
  readonly container: Docker.ContainerInspectInfo;
  readonly socket: Duplex;
  /** The value of the environment variable that marks its processes. */
  readonly mark: string;
  readonly unfrozen: Unfrozen;
}

const heldPollMs = 250;
const killPollMs = 25;
const longestPollMs = 1_000;

/**
 * An execution that this runtime began. It checks for the end when the engine reports it, and when the output ends. While the output is
 * paused, the engine can't report the end, so it polls.
 */
export class OwnExecution implements HostExecution {
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  readonly #exited = Promise.withResolvers<number | null>();
  readonly exited = this.#exited.promise;
  readonly #started: StartedExecution;
  readonly #output: ExecutionOutput;
  readonly #leader: Leader;
  /** Fires when nobody waits for the end any more. */
  readonly #givenUp = new AbortController();
  readonly #unwatch: () => void;
  #mark: string;
  #killing: Promise<void> | undefined;
  #isOver = false;
  /** True if the engine's events report the end. */
  #isEndReported = false;
  #outlives = false;

  constructor(started: StartedExecution, output: ExecutionOutput, leader: Leader) {
    const { exec, watch, socket } = started;
    this.#started = started;
    this.#output = output;
    this.#leader = leader;
    this.#mark = started.mark;
    this.stdin = inputStream(socket);
    this.stdout = outputStream(output.stdout);
    this.stderr = outputStream(output.stderr);
    this.#unwatch = watch.watchExecution(exec.id, (isReported) => {
      this.#isEndReported ||= isReported;
      void this.#pollWhile(1, () => false);
    });
    // The output ends a moment before the command, or long before it if the command closes its output.
    const onClose = (): void => void this.#pollWhile(1, () => true);
    if (socket.destroyed) onClose();
    else socket.once('close', onClose);
    output.onHeld = () => void this.#pollWhile(heldPollMs, () => output.isHeld());
    if (output.isHeld()) output.onHeld();
  }

  outlive(): void {
    this.#outlives = true;
  }

  /** Must be called before a shell begins a command whose processes have this mark. The command does not outlive the runtime. */
  beginAnother(mark: string): void {
    this.#mark = mark;
    this.#outlives = false;
  }

  /** Resizes its terminal. Does nothing if the command has ended. */
  async resize({ cols, rows }: TerminalSize): Promise<void> {
    const { engine, exec } = this.#started;
    try {
      await engine.call((abortSignal) => exec.resize(withSignal({ w: cols, h: rows }, abortSignal)));
    } catch (error) {
      // The engine refuses it with various errors if the command has ended.
      if (statusOf(error) === null) throw error;
    }
  }

  kill(): Promise<void> {
    this.#killing ??= this.#kill().catch((error: unknown) => {
      this.#killing = undefined;
      if (!this.#givenUp.signal.aborted) throw error;
    });
    return this.#killing;
  }

  /** Returns true also if the engine does not answer. */
  async isFrozen(): Promise<boolean> {
    const { engine, container } = this.#started;
    return engine.inspect(container.Id).then((found) => found?.State.Paused === true, () => true);
  }

  /** Kills it and ends its connection, unless the sandbox is frozen. */
  async endUnlessFrozen(): Promise<void> {
    const code = await runInContainer(this.#started, killCommand(this.#leader, this.#mark), this.#givenUp.signal).catch(() => 1);
    if (code !== null) this.#started.socket.destroy();
  }

  /** Called when the runtime closes. Kills the execution, unless its sandbox is frozen or it outlives the runtime. Never rejects. */
  async leave(): Promise<void> {
    const { engine, container } = this.#started;
    const found = this.#outlives ? null : await engine.inspect(container.Id).catch(() => null);
    // `outlive` may have been called while we waited for the inspect.
    if (found?.State.Running === true && !found.State.Paused && !this.#outlives) await this.kill().catch(() => {});
    this.#givenUp.abort(new Error('the runtime is closed'));
    this.#end(null);
    this.#started.socket.destroy();
  }

  async #kill(): Promise<void> {
    await killProcesses({ ...this.#started, mark: this.#mark }, this.#leader, this.#givenUp.signal);
    await this.#pollWhile(killPollMs, () => true);
  }

  /** Checks whether it has ended: at once, and then with growing pauses. Asks again if the engine does not answer. */
  async #pollWhile(everyMs: number, isWanted: () => boolean): Promise<void> {
    for (let waitMs = everyMs; !this.#isOver; waitMs = Math.min(waitMs * 2, longestPollMs)) {
      const code = await exitCode(this.#started, () => this.#isEndReported).catch(() => 'unknown' as const);
      if (typeof code !== 'string') return this.#end(code);
      if (code === 'runs' && !isWanted()) return;
      await sleep(waitMs, undefined, { signal: this.#givenUp.signal }).catch(() => {});
    }
  }

  #end(code: number | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#unwatch();
    this.#output.release();
    this.#exited.resolve(code);
  }
}

/** The engine also reports this code for an execution whose container went away. */
const doubtfulCode = 126;
const doubtMs = 5_000;

/** Returns the exit code, `runs` if the command still runs, or null if it ended with an unknown code. Throws the engine's errors. */
async function exitCode({ engine, exec, container }: StartedExecution, isEndReported: () => boolean): Promise<number | null | 'runs'> {
  const found = await unlessMissing(engine.call((abortSignal) => exec.inspect({ abortSignal })));
  if (found?.Running === true) return 'runs';
  if (found?.ExitCode !== doubtfulCode) return found?.ExitCode ?? null;
  // The code is right if the events report the end, or if the container still runs some seconds later.
  const deadline = performance.now() + doubtMs;
  for (let waitMs = 2; !isEndReported(); waitMs = Math.min(waitMs * 2, 200)) {
    const now = await engine.inspect(container.Id);
    if (now?.State.Running !== true || now.State.StartedAt !== container.State.StartedAt) return null;
    if (performance.now() > deadline) break;
    await sleep(waitMs, undefined, { signal: engine.closed });
  }
  return doubtfulCode;
}

const firstThawPollMs = 100;
const longestThawPollMs = 2_000;

/**
 * Kills all processes of an execution with a second execution of the same user, since the engine has no request for that. In a frozen
 * sandbox no command and no signal works, so it waits until the sandbox runs again. Returns when none of the processes is left.
 */
async function killProcesses(started: StartedExecution, leader: Leader, givenUp: AbortSignal): Promise<void> {
  for (let waitMs = firstThawPollMs; ; waitMs = Math.min(waitMs * 2, longestThawPollMs)) {
    const code = await runInContainer(started, killCommand(leader, started.mark), givenUp);
    if (code === 0) return;
    if (code !== null) throw killFailed();
    const found = await started.engine.inspect(started.container.Id);
    if (found === null || !found.State.Running) return;
    await sleep(waitMs, undefined, { signal: givenUp });
  }
}

/** Runs one of Skep's scripts in a container. Returns its exit code. Null if the container can't run anything now. */
export async function runInContainer(
  { engine: { docker, call }, container, unfrozen }: Pick<StartedExecution, 'engine' | 'container' | 'unfrozen'>, command: string[],
  signal?: AbortSignal,
): Promise<number | null> {
  const options = { AttachStdout: true, AttachStderr: true, WorkingDir: '/', Cmd: command };
  try {
    return await unfrozen(() => call(async (abortSignal) => {
      const exec = await docker.getContainer(container.Id).exec({ ...options, abortSignal });
      const stream = await exec.start({ hijack: true, abortSignal });
      // The sandbox may have a shell that never ends.
      addAbortSignal(abortSignal, stream).resume();
      await finished(stream, { writable: false }).catch(() => {});
      for (;;) {
        const { Running, ExitCode } = await exec.inspect({ abortSignal });
        if (!Running) return ExitCode ?? 1;
        await sleep(2, undefined, { signal: abortSignal });
      }
    }), signal);
  } catch (error) {
    const status = statusOf(error);
    if (status === 404 || status === 409) return null;
    throw error;
  }
}
