import type Docker from 'dockerode';
import { sigkillExitCode } from '../../../domain/execution.ts';
import { raceSignal } from '../../../ports/abort-signals.ts';
import { stopSignalNumber } from '../signal-numbers.ts';
import type { Engine } from './engine.ts';
import { engineStartedAt } from './engine-info.ts';

const sigterm = 128 + 15;

/** How long before its own end an engine may begin to end containers, and how long after its start it may record their end. */
const shutdownMs = 30_000;
const startupMs = 10_000;

type Inspected = Docker.ContainerInspectInfo & { readonly Config: { readonly StopSignal?: string } };

/** What ended a container: a request from outside, its memory limit, or anything else. */
export type EndCause = 'outside' | 'out_of_memory' | 'itself';

/**
 * Returns what ended a container. The engine keeps an exit code, and whether any process of the container was killed for its memory, but
 * not the cause. Its events show more: a `kill` before `die` means a request.
 */
export async function endCause(engine: Engine, runEvents: RunEvents, found: Inspected): Promise<EndCause> {
  const { Id, State, Config, HostConfig } = found;
  const stopSignal = stopSignalNumber(Config.StopSignal ?? 'SIGTERM');
  const wasAsked = await runEvents.wasAskedToEnd(Id, Date.parse(State.FinishedAt), stopSignal);
  if (wasAsked === true) return 'outside';
  const isKilled = State.ExitCode === sigkillExitCode;
  const isLimited = (HostConfig.Memory ?? 0) > 0;
  const ranOutOfMemory = State.OOMKilled || (isKilled && isLimited && runEvents.ranOutOfMemory(Id));
  if (isKilled && ranOutOfMemory) return 'out_of_memory';
  if (wasAsked === null && (await seemsEndedFromOutside(engine, found, stopSignal))) return 'outside';
  return ranOutOfMemory ? 'out_of_memory' : 'itself';
}

/**
 * Decides without events. By the exit code: SIGKILL, SIGTERM and the stop signal came from outside. Or by the time: when an engine shuts
 * down, all its containers end.
 */
async function seemsEndedFromOutside(engine: Engine, { State }: Inspected, stopSignal: number): Promise<boolean> {
  const finishedAt = Date.parse(State.FinishedAt);
  if (State.ExitCode === sigkillExitCode || State.ExitCode === sigterm || State.ExitCode === 128 + stopSignal) return true;
  const startedAt = Date.parse((await engineStartedAt(engine)) ?? '');
  if (!(Date.parse(State.StartedAt) <= startedAt && finishedAt <= startedAt + startupMs)) return false;
  // A program that exits with 0 on request may have been down for as long as the host.
  return State.ExitCode === 0 || finishedAt > startedAt - shutdownMs;
}

interface Run {
  /** From this time on, all requests to end it are seen. In milliseconds of the engine's clock. */
  readonly followedFrom: number;
  /** The numbers of the signals that it got by requests to the engine. */
  readonly signals: Set<string>;
  readonly died: PromiseWithResolvers<void>;
  /** True if a process of it was killed for its memory. The engine may notice that after the end. Then it does not keep it (20.10). */
  ranOutOfMemory: boolean;
  isOver: boolean;
  /** True if its events came through the present connection. */
  isCurrent: boolean;
}

/** The signals that usually end a program: INT, QUIT, KILL, TERM, and a real-time signal that some images use for it. */
const endingSignals = new Set(['2', '3', '9', '15', '37']);

/** A request from before the connection may still end a program for this long. */
const pendingMs = 30_000;

/** How late the event of a known end may arrive. */
const behindMs = 2_000;

/** Keeps the engine's events about the present run of each container: from its last start to its end. */
export class RunEvents {
  readonly #runs = new Map<string, Run>();

  /** `signal` is the number of the signal that a `kill` sent. Returns true if the event tells more about an end that is already known. */
  note(action: string, containerId: string, signal: string | undefined): boolean {
    if (action === 'start') this.#begin(containerId, 0);
    const run = this.#runs.get(containerId);
    if (run === undefined) return false;
    if (action === 'kill' && signal !== undefined) run.signals.add(signal);
    if (action === 'oom') run.ranOutOfMemory = true;
    if (action === 'die' || action === 'destroy') {
      run.isOver = true;
      run.died.resolve();
    }
    if (action === 'destroy') this.#runs.delete(containerId);
    return action === 'oom' && run.isOver;
  }

  /**
   * Takes the list of all containers. Events of running ones are seen from `openedAt` on, in milliseconds of the engine's clock. NaN if
   * that time is unknown.
   */
  follow(containers: readonly Pick<Docker.ContainerInfo, 'Id' | 'State'>[], openedAt: number): void {
    const ids = new Set(containers.map(({ Id }) => Id));
    for (const [id, run] of this.#runs) if (!run.isCurrent && !ids.has(id)) this.#runs.delete(id);
    for (const { Id, State } of containers) {
      if (Number.isNaN(openedAt) || (State !== 'running' && State !== 'paused')) continue;
      if (this.#runs.get(Id)?.isCurrent !== true) this.#begin(Id, openedAt + pendingMs);
    }
  }

  /** Called when the connection is lost, so that the events of running containers are missed. */
  lose(): void {
    for (const [id, run] of this.#runs) {
      run.isCurrent = false;
      if (run.isOver) continue;
      this.#runs.delete(id);
      run.died.resolve();
    }
  }

  /**
   * Returns whether a request to the engine caused the end at this time. Null if unknown. Waits a little for an event that may come late.
   * `stopSignal` is the number of the signal with which the engine stops the container.
   */
  async wasAskedToEnd(containerId: string, finishedAt: number, stopSignal: number): Promise<boolean | null> {
    const run = this.#runs.get(containerId);
    if (run === undefined) return null;
    await raceSignal(run.died.promise, AbortSignal.timeout(behindMs)).catch(() => {});
    if (!run.isOver || this.#runs.get(containerId) !== run) return null;
    if ([...run.signals].some((signal) => endingSignals.has(signal) || signal === String(stopSignal))) return true;
    return finishedAt >= run.followedFrom ? false : null;
  }

  /** Returns whether a process of the present run was killed for its memory, as far as it is known now. */
  ranOutOfMemory(containerId: string): boolean {
    return this.#runs.get(containerId)?.ranOutOfMemory === true;
  }

  #begin(id: string, followedFrom: number): void {
    this.#runs.get(id)?.died.resolve();
    const died = Promise.withResolvers<void>();
    this.#runs.set(id, { followedFrom, signals: new Set(), died, ranOutOfMemory: false, isOver: false, isCurrent: true });
  }
}
