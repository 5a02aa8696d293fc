import { Failure } from '../../../../domain/failure.ts';
import { pause, realTimers } from '../../../shared/timeout.ts';
import type { Connection } from '../connect.ts';
import { statusOf } from '../engine-errors.ts';
import { killingOf, type Leader } from './programs.ts';

export interface KillOptions {
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
export async function killExecution(options: KillOptions): Promise<void> {
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
