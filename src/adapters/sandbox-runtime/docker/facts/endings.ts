import type Docker from 'dockerode';
import type { Connection } from '../connect.ts';
import { statusOf } from '../engine-errors.ts';
import type { Runs } from '../events/runs.ts';
import type { EndedFromOutside } from './facts.ts';

const sigkill = 128 + 9;
const sigterm = 128 + 15;

/** How long before it is gone an engine may have begun to end containers, and how long after it is back it may find them ended. */
const shutdownMs = 30_000;
const startupMs = 10_000;

/**
 * Tells how a container ended. The engine notes an exit code, and not who caused it. Who follows its events knows: it says `kill` before
 * `die` where it was asked to end one. Otherwise the exit code tells (a program that ends by SIGTERM or SIGKILL was ended), or the
 * time: with an engine that goes down, all its containers end.
 */
export function createEndings({ docker, call }: Connection, runs: Runs): EndedFromOutside {
  /** When the engine came up, by its own clock: it makes its default network anew then. */
  async function engineStart(): Promise<number | null> {
    try {
      const { Created } = await call(() => docker.getNetwork('bridge').inspect());
      return Date.parse(Created);
    } catch (error) {
      if (statusOf(error) === 404) return null;
      throw error;
    }
  }

  return async ({ Id, State }: Docker.ContainerInspectInfo) => {
    const finishedAt = Date.parse(State.FinishedAt);
    const seen = await runs.ending(Id, finishedAt);
    if (seen !== 'unseen') return seen === 'asked';
    if (State.ExitCode === sigkill || State.ExitCode === sigterm) return true;
    const engineStartedAt = await engineStart();
    if (engineStartedAt === null || Date.parse(State.StartedAt) > engineStartedAt || finishedAt > engineStartedAt + startupMs) return false;
    // What ends well when it is asked to may have been down for as long as the host.
    return State.ExitCode === 0 || finishedAt > engineStartedAt - shutdownMs;
  };
}
