import type Docker from 'dockerode';
import { killedStatus } from '../../../domain/execution.ts';
import { raceSignal } from '../../shared/timeout.ts';
import { type Engine, engineStartedAt } from './engine.ts';

const sigterm = 128 + 15;

/** How long before its end an engine may have begun to end containers, and how long after its start it may find them ended. */
const shutdownMs = 30_000;
const startupMs = 10_000;

/**
 * Finds out whether something outside of a sandbox ended its container. The engine keeps an exit code, and not who caused it. Its
 * events say more: a `kill` comes before `die` if somebody asked for the end. Without them the exit code decides (a program that ended
 * by SIGTERM or SIGKILL was ended), or the time: when an engine goes down, all its containers end.
 */
export async function endedFromOutside(engine: Engine, runs: RunHistory, { Id, State }: Docker.ContainerInspectInfo): Promise<boolean> {
  const finishedAt = Date.parse(State.FinishedAt);
  const wasAsked = await runs.wasAskedToEnd(Id, finishedAt);
  if (wasAsked !== null) return wasAsked;
  if (State.ExitCode === killedStatus || State.ExitCode === sigterm) return true;
  const startedAt = Date.parse((await engineStartedAt(engine)) ?? '');
  if (!(Date.parse(State.StartedAt) <= startedAt && finishedAt <= startedAt + startupMs)) return false;
  // A program that ends well when it is asked to may have been down for as long as the host.
  return State.ExitCode === 0 || finishedAt > startedAt - shutdownMs;
}

interface Run {
  /** Every request to end it is seen from this time on, in milliseconds of the engine's clock. */
  readonly followedFrom: number;
  isKilled: boolean;
  readonly died: PromiseWithResolvers<void>;
  isOver: boolean;
  /** It was seen through the present connection. */
  isCurrent: boolean;
}

/** Signals that are meant to end a program: HUP, INT, QUIT, KILL, TERM, and a real-time signal that some images use for it. */
const endingSignals = new Set(['2', '3', '9', '15', '37']);

/** How long a request to end a program may take effect that was made before the events were followed. */
const pendingMs = 30_000;

/** How late the event of an end may be that is already known. */
const behindMs = 2_000;

/** Remembers what the engine's events report about the present run of each container. */
export class RunHistory {
  readonly #runs = new Map<string, Run>();

  /** `signal` is the number of the signal that a `kill` sent. */
  note(action: string, containerId: string, signal: string | undefined): void {
    if (action === 'start') this.#begin(containerId, 0);
    const run = this.#runs.get(containerId);
    if (run === undefined) return;
    if (action === 'kill' && signal !== undefined && endingSignals.has(signal)) run.isKilled = true;
    if (action === 'die' || action === 'destroy') {
      run.isOver = true;
      run.died.resolve();
    }
    if (action === 'destroy') this.#runs.delete(containerId);
  }

  /**
   * These are all containers there are. What happens to running ones is seen from `openedAt` on, in milliseconds of the engine's
   * clock. NaN if that is not known.
   */
  follow(containers: readonly Pick<Docker.ContainerInfo, 'Id' | 'State'>[], openedAt: number): void {
    const ids = new Set(containers.map(({ Id }) => Id));
    for (const [id, run] of this.#runs) if (!run.isCurrent && !ids.has(id)) this.#runs.delete(id);
    for (const { Id, State } of containers) {
      if (Number.isNaN(openedAt) || (State !== 'running' && State !== 'paused')) continue;
      if (this.#runs.get(Id)?.isCurrent !== true) this.#begin(Id, openedAt + pendingMs);
    }
  }

  /** The connection is lost: nothing more is seen of those that run. */
  lose(): void {
    for (const [id, run] of this.#runs) {
      run.isCurrent = false;
      if (run.isOver) continue;
      this.#runs.delete(id);
      run.died.resolve();
    }
  }

  /**
   * Returns whether somebody asked the engine to end the run that ended at this time. Null if nobody looked. Waits a little if the event
   * may be on its way.
   */
  async wasAskedToEnd(containerId: string, finishedAt: number): Promise<boolean | null> {
    const run = this.#runs.get(containerId);
    if (run === undefined) return null;
    await raceSignal(run.died.promise, AbortSignal.timeout(behindMs)).catch(() => {});
    if (!run.isOver || this.#runs.get(containerId) !== run) return null;
    if (run.isKilled) return true;
    return finishedAt >= run.followedFrom ? false : null;
  }

  #begin(id: string, followedFrom: number): void {
    this.#runs.get(id)?.died.resolve();
    this.#runs.set(id, { followedFrom, isKilled: false, died: Promise.withResolvers(), isOver: false, isCurrent: true });
  }
}
