import type { Duplex } from 'node:stream';
import type { Execution } from '../../../../ports/sandbox-runtime.ts';
import { pause, realTimers } from '../../../shared/timeout.ts';
import { inputStream, outputStream } from '../../web-streams.ts';
import { demultiplex, type Outputs } from './demultiplex.ts';
import { exitOf, type ExitQuestion } from './exit-code.ts';
import { killExecution } from './kill.ts';
import type { Leader } from './programs.ts';

export interface StartedExecution extends ExitQuestion {
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
