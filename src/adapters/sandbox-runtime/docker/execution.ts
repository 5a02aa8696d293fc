import type { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { Failure } from '../../../domain/failure.ts';
import type { Execution } from '../../../ports/sandbox-runtime.ts';
import { pause, realTimers } from '../../shared/timeout.ts';
import { inputStream, outputStream } from '../execution-streams.ts';
import type { ExitNotices } from './engine-events.ts';
import { type Connection, statusOf } from './engine.ts';
import { demultiplex, type Outputs } from './execution-output.ts';
import { killingOf, type Leader } from './shell-scripts.ts';

interface StartedExecution extends ExitQuestion {
  readonly socket: Duplex;
  readonly mark: string;
}

/** An execution, and how to let go of it when the runtime is closed. */
export interface OwnExecution extends Execution {
  /** Ends it, unless its sandbox is frozen, and lets go of it. Never rejects. */
  leave(): Promise<void>;
}

const heldPollMs = 250;
const killPollMs = 25;
const longestPollMs = 1_000;

/** Waits until it has begun. Answers with what the engine says where it can't begin it. */
export async function createExecution(started: StartedExecution): Promise<OwnExecution | { readonly refusal: string }> {
  let held: (() => void) | null = null;
  const outputs = demultiplex(started.socket, () => held?.());
  const leader = await outputs.begun;
  if ('refusal' in leader) return leader;
  const exit = followExit(started, outputs);
  held = () => void exit.lookWhile(heldPollMs, () => outputs.isHeld());
  if (outputs.isHeld()) held();
  return withControls(started, outputs, leader, exit);
}

interface Exit {
  readonly exited: Promise<number | null>;
  /** Looks whether it has ended, at once and then again and again. */
  lookWhile(everyMs: number, wanted: () => boolean): Promise<void>;
  /** From now on nobody knows how it ends. */
  giveUp(): void;
  /** Fires when it is given up. */
  readonly givenUp: AbortSignal;
}

/**
 * Finds out how it ends: when the engine tells, when the output is over, and while the output is held back, when the engine can't
 * tell yet.
 */
function followExit(started: StartedExecution, outputs: Outputs): Exit {
  const { exec, notices, socket } = started;
  const exited = Promise.withResolvers<number | null>();
  const givenUp = new AbortController();
  const state = { over: false };
  const end = (code: number | null): void => {
    state.over = true;
    unwatch();
    outputs.release();
    exited.resolve(code);
  };
  const look = async (): Promise<void> => {
    const code = await exitOf(started);
    if (code !== 'runs' && !state.over) end(code);
  };
  const lookWhile = async (everyMs: number, wanted: () => boolean): Promise<void> => {
    for (let waitMs = everyMs; !state.over && wanted(); waitMs = Math.min(waitMs * 2, Math.max(everyMs, longestPollMs))) {
      await look();
      if (!state.over) await pause(realTimers, waitMs, givenUp.signal).catch(() => {});
    }
  };
  const unwatch = notices.watch(exec.id, () => void look());
  // The output ends a moment before the command does, or long before where the command closed it.
  const closed = (): void => void lookWhile(1, () => true);
  if (socket.destroyed) closed();
  else socket.once('close', closed);
  return {
    exited: exited.promise,
    lookWhile,
    giveUp() {
      givenUp.abort(new Error('the runtime is closed'));
      if (!state.over) end(null);
    },
    givenUp: givenUp.signal,
  };
}

function withControls(started: StartedExecution, outputs: Outputs, leader: Leader, exit: Exit): OwnExecution {
  const { connection, run, socket, mark } = started;
  let killing: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    let killed = false;
    const looking = exit.lookWhile(killPollMs, () => !killed);
    await killExecution({ connection, container: run.container, leader, mark, giveUp: exit.givenUp }).finally(() => (killed = true));
    await looking;
    await exit.lookWhile(killPollMs, () => true);
  };
  const kill = (): Promise<void> => {
    killing ??= end().catch((error: unknown) => {
      killing = undefined;
      if (!exit.givenUp.aborted) throw error;
    });
    return killing;
  };
  return {
    stdin: inputStream(socket),
    stdout: outputStream(outputs.stdout),
    stderr: outputStream(outputs.stderr),
    exited: exit.exited,
    kill,
    async leave() {
      const { docker, call } = connection;
      const found = await call((abortSignal) => docker.getContainer(run.container).inspect({ abortSignal })).catch(() => null);
      if (found?.State.Running === true && !found.State.Paused) await kill().catch(() => {});
      exit.giveUp();
      socket.destroy();
    },
  };
}

interface ExitQuestion {
  readonly connection: Connection;
  readonly exec: Docker.Exec;
  readonly notices: ExitNotices;
  /** The run of the container in which it was begun. */
  readonly run: ContainerRun;
}

/** Tells one run of a container from the next. */
interface ContainerRun {
  readonly container: string;
  readonly startedAt: string;
}

/** What the engine also says of an execution whose container went away. */
const doubtful = 126;
const doubtMs = 5_000;

/** How an execution ended; `runs` while it goes on; null where it can't be known. */
async function exitOf(question: ExitQuestion): Promise<number | null | 'runs'> {
  const { connection, exec } = question;
  try {
    const found = await connection.call((abortSignal) => exec.inspect({ abortSignal }));
    if (found.Running) return 'runs';
    return found.ExitCode === doubtful ? await withoutDoubt(question) : found.ExitCode;
  } catch {
    return null;
  }
}

// The events tell of an end that the container survived; so does the container, after a while.
async function withoutDoubt({ connection, exec, notices, run }: ExitQuestion): Promise<number | null> {
  const deadline = performance.now() + doubtMs;
  for (let waitMs = 2; !notices.told(exec.id); waitMs = Math.min(waitMs * 2, 200)) {
    const { State } = await connection.call((abortSignal) => connection.docker.getContainer(run.container).inspect({ abortSignal }));
    if (!State.Running || State.StartedAt !== run.startedAt) return null;
    if (performance.now() > deadline) break;
    await pause(realTimers, waitMs, connection.closed);
  }
  return doubtful;
}

interface KillOptions {
  readonly connection: Connection;
  readonly container: string;
  readonly leader: Leader;
  readonly mark: string;
  /** When it fires, nobody waits any more for a frozen sandbox to go on. */
  readonly giveUp: AbortSignal;
}

const thawPollMs = 100;

/**
 * Ends all that an execution started, by a second one, as the same user: the engine itself can't. In a frozen sandbox nothing can be
 * run, nor does anything take a signal: there it is done when the sandbox goes on. Answers when nothing of it is left.
 */
async function killExecution(options: KillOptions): Promise<void> {
  const { connection, container, giveUp } = options;
  for (;;) {
    const status = await runKilling(options);
    if (status === 0) return;
    if (status !== null) throw unkillable();
    const found = await connection.call((abortSignal) => connection.docker.getContainer(container).inspect({ abortSignal })).catch((error: unknown) => {
      if (statusOf(error) === 404) return null;
      throw error;
    });
    if (found === null || !found.State.Running) return;
    await pause(realTimers, thawPollMs, giveUp);
  }
}

/** The exit code of the program that kills; null where the sandbox runs none now. */
async function runKilling({ connection: { docker, call }, container, leader, mark }: KillOptions): Promise<number | null> {
  try {
    const exec = await call((abortSignal) =>
      docker.getContainer(container).exec({ AttachStdout: true, AttachStderr: true, WorkingDir: '/', Cmd: killingOf(leader, mark), abortSignal }),
    );
    return await call(async (abortSignal) => {
      const stream = await exec.start({ hijack: true, abortSignal });
      stream.resume();
      await new Promise<void>((resolve) => {
        stream.once('close', resolve);
        stream.once('end', resolve);
        stream.once('error', () => resolve());
      });
      for (;;) {
        const { Running, ExitCode } = await exec.inspect({ abortSignal });
        if (!Running) return ExitCode ?? 1;
        await pause(realTimers, 2, abortSignal);
      }
    });
  } catch (error) {
    const status = statusOf(error);
    if (status === 404 || status === 409) return null;
    throw error;
  }
}

function unkillable(): Failure<'runtime_unavailable'> {
  const reason = 'the sandbox could not run what ends a command in it; stop the sandbox';
  return new Failure('runtime_unavailable', { runtime: 'docker', reason, retryAfterSeconds: 5 });
}
