import type Docker from 'dockerode';
import { isFailureOf } from '../../../domain/failure.ts';
import type { ObservedSandbox } from '../../../domain/sandbox.ts';
import type { Progress, SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { createContainer } from './create-container.ts';
import { type Engine, removeContainer, statusOf } from './engine.ts';
import { type Preparation, removeInitContainers } from './init-container.ts';
import { isFull, isGone, maxNetworks, type Networks } from './networks.ts';
import { stateOf } from './observed-sandbox.ts';
import { reasons } from './status-reasons.ts';
import { removeVolumes } from './volumes.ts';
import type { ExpectedChange } from './watch.ts';

type Found = Docker.ContainerInspectInfo;
type State = ObservedSandbox['state'];

/** The new state if it is certain without a new inspect. Otherwise null. */
type Outcome = Promise<ObservedSandbox | null>;

export interface ContainersOptions {
  readonly engine: Engine;
  readonly networks: Networks;
  readonly preparation: Preparation;
  /** The address of the engine's host that exposed ports are bound to. */
  readonly publishAddress: string;
  readonly stopGraceMs: number;
  readonly callTimeoutMs: number;
}

/**
 * Starts, freezes, stops, resumes and removes the containers of sandboxes, one step at a time for one sandbox. Each step inspects the
 * container and asks the engine for what is left to do. The state afterwards decides, not the engine's response. So each step can be
 * repeated after an interruption at any point.
 */
export class Containers {
  readonly #options: ContainersOptions;
  /** How each was seen last: the container, which stays the sandbox's own, and the state, which may have changed since. */
  readonly #last = new Map<string, { readonly container: string; readonly observed: ObservedSandbox }>();

  constructor(options: ContainersOptions) {
    this.#options = options;
  }

  async start(launch: SandboxLaunch, progress: Progress, signal: AbortSignal, change: ExpectedChange): Outcome {
    const { engine, preparation } = this.#options;
    const found = (await engine.find(launch.id)) ?? (await createContainer(this.#options, launch, progress, signal));
    if (found === 'foreign' || stateNow(found) !== 'created') return null;
    signal.throwIfAborted();
    const isRunnable = await preparation.prepare(found, launch.id);
    signal.throwIfAborted();
    progress(reasons.startingCommand);
    await this.#run(found, launch, change);
    if (!isRunnable) await this.#ended(found.Id);
    return null;
  }

  async freeze(id: string, change: ExpectedChange): Outcome {
    const { docker, call } = this.#options.engine;
    const pause = (container: string): Promise<unknown> =>
      call((abortSignal) => docker.getContainer(container).pause({ abortSignal }));
    change.expect('frozen');
    const observed = await this.#tryAtOnce(id, 'running', 'frozen', pause);
    if (observed !== null) return observed;
    const found = await this.#find(id);
    if (found === null || stateNow(found) !== 'running') change.expect();
    else await this.#ask(id, found, () => pause(found.Id));
    return null;
  }

  async resume(launch: SandboxLaunch, signal: AbortSignal, change: ExpectedChange): Outcome {
    const { docker, call } = this.#options.engine;
    const unpause = (container: string): Promise<unknown> =>
      call((abortSignal) => docker.getContainer(container).unpause({ abortSignal }));
    change.expect('running');
    const observed = await this.#tryAtOnce(launch.id, 'frozen', 'running', unpause);
    if (observed !== null) return observed;
    const found = await this.#find(launch.id);
    signal.throwIfAborted();
    const state = found === null ? 'absent' : stateNow(found);
    if (found !== null && state === 'stopped') await this.#run(found, launch, change);
    else if (found !== null && state === 'frozen') await this.#ask(launch.id, found, () => unpause(found.Id));
    else change.expect();
    return null;
  }

  async stop(id: string, change: ExpectedChange): Outcome {
    const { engine, stopGraceMs, callTimeoutMs } = this.#options;
    const found = await this.#find(id);
    if (found === null || (stateNow(found) !== 'running' && stateNow(found) !== 'frozen')) return null;
    change.expect('running', 'stopped');
    const t = Math.ceil(stopGraceMs / 1000);
    const limitMs = callTimeoutMs + t * 1000;
    const container = engine.docker.getContainer(found.Id);
    await this.#ask(id, found, () => engine.call((abortSignal) => container.stop({ t, abortSignal }), { limitMs }));
    return null;
  }

  /** Kills a sandbox whose stop is under way. */
  async cutStopShort(id: string): Promise<void> {
    const { docker, call } = this.#options.engine;
    const found = await this.#find(id);
    if (found === null) return;
    await this.#ask(id, found, () => call((abortSignal) => docker.getContainer(found.Id).kill({ signal: 'SIGKILL', abortSignal })));
  }

  async remove(id: string, change: ExpectedChange): Outcome {
    const { engine } = this.#options;
    const found = await engine.find(id);
    if (found === 'foreign') return null;
    if (found !== null) {
      change.expect('running', 'stopped', 'absent');
      await removeContainer(engine, found.Id);
      if (found.HostConfig.ReadonlyRootfs !== true) return null;
    }
    await removeInitContainers(engine, id);
    await removeVolumes(engine, id);
    return null;
  }

  /** Remembers how a sandbox was seen, which saves the next step an inspect. */
  remember(found: Found | 'foreign' | null, observed: ObservedSandbox): void {
    if (found === null || found === 'foreign') this.#last.delete(observed.id);
    else this.#last.set(observed.id, { container: found.Id, observed });
  }

  /** Something happened to it. */
  forget(id: string): void {
    this.#last.delete(id);
  }

  /** Sends a request that only a container in state `from` accepts, without an inspect. Null if it was not seen so, or is not so. */
  async #tryAtOnce(id: string, from: State, to: State, request: (container: string) => Promise<unknown>): Outcome {
    const known = this.#last.get(id);
    if (known?.observed.state !== from) return null;
    try {
      await request(known.container);
    } catch (error) {
      if (statusOf(error) === null) throw error;
      return null;
    }
    const observed = { ...known.observed, state: to };
    // What was seen of it meanwhile is newer.
    if (this.#last.get(id) === known) this.#last.set(id, { ...known, observed });
    return observed;
  }

  /** Sends a request. If the engine refuses it, that is an error only if the state is unchanged. */
  async #ask(id: string, before: Found, request: () => Promise<unknown>): Promise<void> {
    try {
      await request();
    } catch (error) {
      if (statusOf(error) === null) throw error;
      const now = await this.#find(id);
      if (now !== null && now.Id === before.Id && stateNow(now) === stateNow(before)) throw error;
    }
  }

  /** Runs a container that does not run, in another network if its own is full or gone. The engine keeps why one can't be run. */
  async #run({ Id, HostConfig, NetworkSettings }: Found, { id, spec }: SandboxLaunch, change: ExpectedChange): Promise<void> {
    const { networks } = this.#options;
    const full: string[] = [];
    let network = Object.keys(NetworkSettings.Networks)[0] ?? HostConfig.NetworkMode ?? 'none';
    change.expect('running');
    let error = await this.#tryRun(Id);
    for (let moves = 0; moves <= maxNetworks && (isFull(error) || isGone(error)); moves += 1) {
      if (isFull(error)) full.push(network);
      const next = await networks.next(spec.isolation.network, full);
      if (next === null) break;
      await networks.move(Id, network, next);
      network = next;
      error = await this.#tryRun(Id);
    }
    if (error === null) return;
    const now = await this.#find(id);
    if (now?.Id === Id && stateNow(now) === 'created') throw error;
  }

  /** Returns the error if the engine refused. */
  async #tryRun(containerId: string): Promise<unknown> {
    const { docker, call } = this.#options.engine;
    try {
      await call((abortSignal) => docker.getContainer(containerId).start({ abortSignal }));
      return null;
    } catch (error) {
      if (statusOf(error) === null) throw error;
      return statusOf(error) === 304 ? null : error;
    }
  }

  /** Waits for a program that is known to end at once, but not for ever if it does not. */
  async #ended(containerId: string): Promise<void> {
    const { docker, call } = this.#options.engine;
    try {
      await call((abortSignal) => docker.getContainer(containerId).wait({ abortSignal }), { limitMs: 5_000 });
    } catch (error) {
      if (statusOf(error) === null && !isFailureOf(error, 'runtime_timeout')) throw error;
    }
  }

  /** A container that is not the deployment's own is treated as absent. */
  async #find(id: string): Promise<Found | null> {
    const found = await this.#options.engine.find(id);
    return found === 'foreign' ? null : found;
  }
}

function stateNow({ State }: Found): State {
  return stateOf(State.Status, State.Error);
}
