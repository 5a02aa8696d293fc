import type Docker from 'dockerode';
import { pause, realTimers } from '../../../shared/timeout.ts';
import type { Connection } from '../connect.ts';
import type { ExitNotices } from './exit-notices.ts';

export interface ExitQuestion {
  readonly connection: Connection;
  readonly exec: Docker.Exec;
  readonly notices: ExitNotices;
  /** The run of the container in which it was begun. */
  readonly run: ContainerRun;
}

/** Tells one run of a container from the next. */
export interface ContainerRun {
  readonly container: string;
  readonly startedAt: string;
}

/** What the engine also says of an execution whose container went away. */
const doubtful = 126;
const doubtMs = 5_000;

/** How an execution ended; `runs` while it goes on; null where it can't be known. */
export async function exitOf(question: ExitQuestion): Promise<number | null | 'runs'> {
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
