import type Docker from 'dockerode';
import { raceSignal } from '../../shared/timeout.ts';
import type { EngineEvent } from './engine-events.ts';
import { type Connection, statusOf } from './engine.ts';
import type { EndedFromOutside } from './observed-sandbox.ts';

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

/** What was seen of how a run of a container ended: somebody asked the engine to end it, it ended by itself, or nobody looked. */
type SeenEnding = 'asked' | 'by itself' | 'unseen';

interface Run {
  /** Whatever asks for its end from then on is seen, in milliseconds of the engine's clock. */
  readonly followedFrom: number;
  killed: boolean;
  readonly died: PromiseWithResolvers<void>;
  over: boolean;
  /** It was seen through the present connection. */
  current: boolean;
}

/** Signals that are meant to end a program: HUP, INT, QUIT, KILL, TERM, and what a real-time signal of an image means. */
const endingSignals = new Set(['2', '3', '9', '15', '37']);

/** What asks a program to end before somebody listens may take effect for so long after. */
const pendingMs = 30_000;

/** How long the word of an end that is already known may be behind. */
const behindMs = 2_000;

/** Remembers of the containers what the engine's events tell about their present run. */
export interface Runs {
  note(event: EngineEvent): void;
  /**
   * These are all there are. What happens to those that run is seen from `openedAt` on, in milliseconds of the engine's clock;
   * undefined where that is not known.
   */
  follow(containers: readonly Pick<Docker.ContainerInfo, 'Id' | 'State'>[], openedAt: number | undefined): void;
  /** Nothing is seen any more of those that run. */
  lose(): void;
  /** How the run that ended then ended. Waits a little where the word of it is on the way. */
  ending(containerId: string, finishedAt: number): Promise<SeenEnding>;
}

export function createRuns(): Runs {
  const runs = new Map<string, Run>();
  const begin = (id: string, followedFrom: number): void => {
    runs.get(id)?.died.resolve();
    runs.set(id, { followedFrom, killed: false, died: Promise.withResolvers(), over: false, current: true });
  };
  return {
    note({ action, containerId, signal }) {
      if (action === 'start') begin(containerId, 0);
      const run = runs.get(containerId);
      if (run === undefined) return;
      if (action === 'kill' && signal !== null && endingSignals.has(signal)) run.killed = true;
      if (action === 'die' || action === 'destroy') {
        run.over = true;
        run.died.resolve();
      }
      if (action === 'destroy') runs.delete(containerId);
    },
    follow(containers, openedAt) {
      const ids = new Set(containers.map(({ Id }) => Id));
      for (const [id, run] of runs) if (!run.current && !ids.has(id)) runs.delete(id);
      for (const { Id, State } of containers) {
        if (openedAt === undefined || (State !== 'running' && State !== 'paused')) continue;
        if (runs.get(Id)?.current !== true) begin(Id, openedAt + pendingMs);
      }
    },
    lose() {
      for (const [id, run] of runs) {
        run.current = false;
        if (run.over) continue;
        runs.delete(id);
        run.died.resolve();
      }
    },
    async ending(containerId, finishedAt) {
      const run = runs.get(containerId);
      if (run === undefined) return 'unseen';
      await raceSignal(run.died.promise, AbortSignal.timeout(behindMs)).catch(() => {});
      if (!run.over || runs.get(containerId) !== run) return 'unseen';
      if (run.killed) return 'asked';
      return finishedAt >= run.followedFrom ? 'by itself' : 'unseen';
    },
  };
}
