import type Docker from 'dockerode';
import { isFailureOf } from '../../../domain/failure.ts';
import type { ObservedSandbox } from '../../../domain/sandbox.ts';
import type { Progress, SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { removeVolumes } from './container-mounts.ts';
import { createContainer, type CreateOptions } from './create-container.ts';
import { engineMessage, removeContainer, statusOf } from './engine.ts';
import { type Preparation, removeInitContainers } from './init-container.ts';
import { isFull, isGone, maxNetworks } from './networks.ts';
import { type Observer, stateOf } from './observed-sandbox.ts';
import { putSecrets } from './secret-file.ts';

type Found = Docker.ContainerInspectInfo;
type State = ObservedSandbox['state'];

/** A request to the engine about one container. */
type Request = (container: Docker.Container, options: { readonly abortSignal: AbortSignal }) => Promise<unknown>;

export interface ContainersOptions extends CreateOptions {
  readonly observer: Observer;
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

  constructor(options: ContainersOptions) {
    this.#options = options;
  }

  async start(launch: SandboxLaunch, progress: Progress, signal: AbortSignal): Promise<void> {
    const { engine, preparation } = this.#options;
    const found = (await engine.find(launch.id)) ?? (await createContainer(this.#options, launch, progress, signal));
    if (found === 'foreign' || stateNow(found) !== 'created') return;
    signal.throwIfAborted();
    const isRunnable = await preparation.prepare(found, launch.id);
    signal.throwIfAborted();
    progress({ code: 'starting_command' });
    await this.#run(found, launch);
    if (!isRunnable) await this.#ended(found.Id);
  }

  /** Returns the new state if it is certain without another inspect. Otherwise undefined. */
  async freeze(id: string): Promise<ObservedSandbox | undefined> {
    const found = await this.#find(id);
    if (found === null || stateNow(found) !== 'running') return undefined;
    const isDone = await this.#ask(id, found, (container, options) => container.pause(options));
    return isDone ? { ...(await this.#options.observer.observe(id, found)), state: 'frozen' } : undefined;
  }

  /** Returns the same as `freeze`. */
  async resume(launch: SandboxLaunch, signal: AbortSignal): Promise<ObservedSandbox | undefined> {
    const { id } = launch;
    const found = await this.#find(id);
    signal.throwIfAborted();
    if (found !== null && stateNow(found) === 'stopped') await this.#run(found, launch);
    if (found === null || stateNow(found) !== 'frozen') return undefined;
    const isDone = await this.#ask(id, found, (container, options) => container.unpause(options));
    return isDone ? { ...(await this.#options.observer.observe(id, found)), state: 'running' } : undefined;
  }

  async stop(id: string): Promise<void> {
    const { stopGraceMs, callTimeoutMs } = this.#options;
    const found = await this.#find(id);
    if (found === null || (stateNow(found) !== 'running' && stateNow(found) !== 'frozen')) return;
    const t = Math.ceil(stopGraceMs / 1000);
    await this.#ask(id, found, (container, options) => container.stop({ t, ...options }), callTimeoutMs + t * 1000);
  }

  /** Kills a sandbox while its stop is running. */
  async cutStopShort(id: string): Promise<void> {
    const found = await this.#find(id);
    if (found !== null) await this.#ask(id, found, (container, options) => container.kill({ signal: 'SIGKILL', ...options }));
  }

  async remove(id: string): Promise<void> {
    const { engine } = this.#options;
    const found = await engine.find(id);
    if (found === 'foreign') return;
    if (found !== null) {
      await removeContainer(engine, found.Id);
      if (found.HostConfig.ReadonlyRootfs !== true) return;
    }
    await removeInitContainers(engine, id);
    await removeVolumes(engine, id);
  }

  /** Sends a request. Returns false if the engine refuses it. That is an error only if the state is unchanged. */
  async #ask(id: string, before: Found, request: Request, limitMs?: number): Promise<boolean> {
    try {
      await this.#send(before.Id, request, limitMs);
      return true;
    } catch (error) {
      if (statusOf(error) === null) throw error;
      const now = await this.#find(id);
      if (now !== null && now.Id === before.Id && stateNow(now) === stateNow(before)) throw error;
      return false;
    }
  }

  /** Starts a container, in another network if its own is full or gone. If it can't start, the engine keeps the reason. */
  async #run(found: Found, { id, spec, secrets = {} }: SandboxLaunch): Promise<void> {
    const { Id, HostConfig, NetworkSettings } = found;
    const { engine, networks, firewall } = this.#options;
    if (spec.isolation.network !== 'none') await firewall?.ensure();
    await putSecrets(engine, found, secrets);
    const full: string[] = [];
    let network = Object.keys(NetworkSettings.Networks)[0] ?? HostConfig.NetworkMode ?? 'none';
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

  /** Waits for a program that is known to end at once. Gives up after 5 seconds. */
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

/**
 * Returns whether runc failed to freeze a container, which still runs. With cgroups version 1, the kernel can't freeze reliably while new
 * processes appear. runc tries many times, thaws the container, and then reports this error (opencontainers/runc, pull requests 2774 and
 * 2791: "still a game of chances"). So this adapter does not try again at once.
 */
export function isFreezeRefused(error: unknown): boolean {
  return /\bunable to freeze\b/.test(engineMessage(error) ?? '');
}
