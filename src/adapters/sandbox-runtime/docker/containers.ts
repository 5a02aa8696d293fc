import type Docker from 'dockerode';
import { isFailureOf } from '../../../domain/failure.ts';
import type { ObservedSandbox } from '../../../domain/sandbox.ts';
import type { Progress, SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { removeVolumes } from './container-config.ts';
import { createContainer, type CreateOptions } from './create-container.ts';
import { removeContainer, statusOf } from './engine.ts';
import { type Preparation, removeInitContainers } from './init-container.ts';
import { isFull, isGone, maxNetworks } from './networks.ts';
import { stateOf } from './observed-sandbox.ts';
import { reasons } from './status-reasons.ts';
import type { ExpectedChange } from './watch.ts';

type Found = Docker.ContainerInspectInfo;
type State = ObservedSandbox['state'];

/** The new state if it is certain without a new inspect. Otherwise undefined. */
export type Outcome = Promise<ObservedSandbox | undefined>;

/** A request to the engine about one container. */
type Request = (container: Docker.Container, options: { readonly abortSignal: AbortSignal }) => Promise<unknown>;

const pause: Request = (container, options) => container.pause(options);
const unpause: Request = (container, options) => container.unpause(options);

export interface ContainersOptions extends CreateOptions {
  readonly preparation: Preparation;
  readonly stopGraceMs: number;
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
    if (found === 'foreign' || stateNow(found) !== 'created') return;
    signal.throwIfAborted();
    const isRunnable = await preparation.prepare(found, launch.id);
    signal.throwIfAborted();
    progress(reasons.startingCommand);
    await this.#run(found, launch, change);
    if (!isRunnable) await this.#ended(found.Id);
  }

  async freeze(id: string, change: ExpectedChange): Outcome {
    change.expect('frozen');
    const observed = await this.#tryAtOnce(id, 'running', 'frozen', pause);
    if (observed !== undefined) return observed;
    const found = await this.#find(id);
    if (found === null || stateNow(found) !== 'running') change.expect();
    else await this.#ask(id, found, pause);
  }

  async resume(launch: SandboxLaunch, signal: AbortSignal, change: ExpectedChange): Outcome {
    change.expect('running');
    const observed = await this.#tryAtOnce(launch.id, 'frozen', 'running', unpause);
    if (observed !== undefined) return observed;
    const found = await this.#find(launch.id);
    signal.throwIfAborted();
    const state = found === null ? 'absent' : stateNow(found);
    if (found !== null && state === 'stopped') await this.#run(found, launch, change);
    else if (found !== null && state === 'frozen') await this.#ask(launch.id, found, unpause);
    else change.expect();
  }

  async stop(id: string, change: ExpectedChange): Outcome {
    const { stopGraceMs, callTimeoutMs } = this.#options;
    const found = await this.#find(id);
    if (found === null || (stateNow(found) !== 'running' && stateNow(found) !== 'frozen')) return;
    change.expect('running', 'stopped');
    const t = Math.ceil(stopGraceMs / 1000);
    await this.#ask(id, found, (container, options) => container.stop({ t, ...options }), callTimeoutMs + t * 1000);
  }

  /** Kills a sandbox whose stop is under way. */
  async cutStopShort(id: string): Promise<void> {
    const found = await this.#find(id);
    if (found !== null) await this.#ask(id, found, (container, options) => container.kill({ signal: 'SIGKILL', ...options }));
  }

  async remove(id: string, change: ExpectedChange): Outcome {
    const { engine } = this.#options;
    const found = await engine.find(id);
    if (found === 'foreign') return;
    if (found !== null) {
      change.expect('running', 'stopped', 'absent');
      await removeContainer(engine, found.Id);
      if (found.HostConfig.ReadonlyRootfs !== true) return;
    }
    await removeInitContainers(engine, id);
    await removeVolumes(engine, id);
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

  /** Sends a request that only a container in state `from` accepts, without an inspect. Undefined if it was not seen so, or is not so. */
  async #tryAtOnce(id: string, from: State, to: State, request: Request): Outcome {
    const known = this.#last.get(id);
    if (known?.observed.state !== from) return undefined;
    try {
      await this.#send(known.container, request);
    } catch (error) {
      if (statusOf(error) === null) throw error;
      return undefined;
    }
    const observed = { ...known.observed, state: to };
    // What was seen of it meanwhile is newer.
    if (this.#last.get(id) === known) this.#last.set(id, { ...known, observed });
    return observed;
  }

  /** Sends a request. If the engine refuses it, that is an error only if the state is unchanged. */
  async #ask(id: string, before: Found, request: Request, limitMs?: number): Promise<void> {
    try {
      await this.#send(before.Id, request, limitMs);
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
    try {
      await this.#send(containerId, (container, options) => container.start(options));
      return null;
    } catch (error) {
      if (statusOf(error) === null) throw error;
      return statusOf(error) === 304 ? null : error;
    }
  }

  /** Waits for a program that is known to end at once, but not for ever if it does not. */
  async #ended(containerId: string): Promise<void> {
    try {
      await this.#send(containerId, (container, options) => container.wait(options), 5_000);
    } catch (error) {
      if (statusOf(error) === null && !isFailureOf(error, 'runtime_timeout')) throw error;
    }
  }

  #send(containerId: string, request: Request, limitMs?: number): Promise<unknown> {
    const { docker, call } = this.#options.engine;
    return call((abortSignal) => request(docker.getContainer(containerId), { abortSignal }), { limitMs });
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
