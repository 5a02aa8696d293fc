import type Docker from 'dockerode';
import { dnsLabel } from '../../../domain/dns-label.ts';
import { isFailureOf, Refusal } from '../../../domain/failure.ts';
import { absentSandbox, type ObservedSandbox, type ObservedState } from '../../../domain/sandbox.ts';
import type { Progress, SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import type { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { raceSignal } from '../../shared/timeout.ts';
import { removeParts } from './container-mounts.ts';
import { engineMessage, removeContainer, statusOf, unavailable, withFailures } from './engine.ts';
import { hasFreezer } from './engine-info.ts';
import type { DockerFiles } from './files.ts';
import { createPreparation } from './init-container.ts';
import { type Observer, stateOf } from './observed-sandbox.ts';
import { createContainer, startContainer, type StartOptions } from './start-container.ts';
import type { SandboxWatch } from './sandbox-watch.ts';

type Request = (container: Docker.Container, options: { readonly abortSignal: AbortSignal }) => Promise<unknown>;

interface ContainersOptions extends StartOptions {
  readonly observer: Observer;
  readonly watch: SandboxWatch;
  readonly files: DockerFiles;
  /** The steps of one sandbox are done one after another. */
  readonly mutex: KeyedMutex;
  readonly stopGraceMs: number;
}

/**
 * Starts, freezes, stops, resumes and removes the containers of sandboxes, one step at a time for one sandbox. Each step inspects the
 * container and asks the engine for what is left to do. The state afterwards decides, not the engine's response. So each step can be
 * repeated after an interruption at any point.
 */
export class Containers {
  readonly #options: ContainersOptions;
  readonly #prepare: ReturnType<typeof createPreparation>;
  readonly #stopping = new Set<string>();
  /** False if the engine turned out to be unable to freeze. */
  canFreeze = true;

  constructor(options: ContainersOptions) {
    this.#options = options;
    this.#prepare = createPreparation(options.engine);
  }

  start(launch: SandboxLaunch, progress: Progress, signal: AbortSignal): Promise<ObservedSandbox> {
    return this.#step(launch.id, 'running', async () => {
      const found = (await this.#options.engine.find(launch.id)) ?? (await createContainer(this.#options, launch, progress, signal));
      if (found === null || stateOf(found.State) !== 'created') return null;
      signal.throwIfAborted();
      const isRunnable = await this.#prepare(found, launch.id);
      signal.throwIfAborted();
      progress({ code: 'starting_command' });
      await startContainer(this.#options, found, launch);
      if (!isRunnable) await this.#ended(found.Id);
      return null;
    }, signal);
  }

  freeze(id: string): Promise<ObservedSandbox> {
    return this.#step(id, 'frozen', () => this.#repeatWhile(id, 'running', async () => {
      const found = await this.#options.engine.find(id);
      if (found === null || stateOf(found.State) !== 'running') return null;
      try {
        return await this.#ask(id, found, 'frozen', (container, options) => container.pause(options));
      } catch (error) {
        if (isFreezeRefused(error)) throw unavailable({ code: 'freeze_refused' }, error);
        if (statusOf(error) !== null) this.canFreeze = await hasFreezer(this.#options.engine);
        throw error;
      }
    }));
  }

  resume(launch: SandboxLaunch, signal: AbortSignal): Promise<ObservedSandbox> {
    const { id } = launch;
    return this.#step(id, 'running', () => this.#repeatWhile(id, 'frozen', async () => {
      const found = await this.#options.engine.find(id);
      signal.throwIfAborted();
      if (found !== null && stateOf(found.State) === 'stopped') await startContainer(this.#options, found, launch);
      if (found === null || stateOf(found.State) !== 'frozen') return null;
      return await this.#ask(id, found, 'running', (container, options) => container.unpause(options));
    }), signal);
  }

  stop(id: string): Promise<ObservedSandbox> {
    const { stopGraceMs, callTimeoutMs } = this.#options;
    return this.#step(id, 'stopped', async () => {
      this.#stopping.add(id);
      try {
        const found = await this.#options.engine.find(id);
        if (found === null || (stateOf(found.State) !== 'running' && stateOf(found.State) !== 'frozen')) return null;
        const t = Math.ceil(stopGraceMs / 1000);
        return await this.#ask(id, found, null, (container, options) => container.stop({ t, ...options }), callTimeoutMs + t * 1000);
      } finally {
        this.#stopping.delete(id);
      }
    });
  }

  async remove(id: string): Promise<void> {
    const { engine } = this.#options;
    const removed = this.#step(id, 'absent', async () => {
      const found = await engine.find(id);
      if (found !== null) await removeContainer(engine, found.Id);
      if (found !== null && found.HostConfig.ReadonlyRootfs !== true) return null;
      await removeParts(engine, id);
      return null;
    });
    // A removal does not wait for the grace period of a running stop. If the kill comes too late, the removal itself notices that.
    if (this.#stopping.has(id)) await this.#kill(id).catch(() => {});
    await removed;
  }

  async #kill(id: string): Promise<void> {
    const found = await this.#options.engine.find(id);
    if (found !== null) await this.#send(found.Id, (container, options) => container.kill({ signal: 'SIGKILL', ...options }));
  }

  /**
   * Runs a step after earlier ones of the sandbox. The step leads to the target state. It returns the new state if that is certain without
   * another inspect, otherwise null. Returns the state afterwards, also if the spec or the engine refused the step.
   */
  #step(id: string, target: ObservedState, step: () => Promise<ObservedSandbox | null>, signal?: AbortSignal): Promise<ObservedSandbox> {
    const { files, mutex, observer, watch } = this.#options;
    if (!dnsLabel.test(id)) return Promise.resolve(absentSandbox(id, { code: 'invalid_id' }));
    const done = mutex.runExclusive(id, () =>
      withFailures(async () => {
        signal?.throwIfAborted();
        files.endTransfers(id);
        const end = watch.begin(id, target);
        let observed: ObservedSandbox | undefined;
        try {
          observed = (await step().catch((error: unknown) => this.#refused(id, error))) ?? (await observer.inspect(id));
          return observed;
        } finally {
          end(observed);
        }
      }),
    );
    return signal === undefined ? done : raceSignal(done, signal);
  }

  /**
   * Does a step that leads out of the given state, and returns null if there is nothing to do. Does it again if the sandbox is then in that
   * state after all: Docker 20.10 may notice an earlier pause late, and reports a running container as paused for a moment, or the reverse.
   */
  async #repeatWhile(id: string, state: ObservedState, step: () => Promise<ObservedSandbox | null>): Promise<ObservedSandbox> {
    for (;;) {
      const observed = (await step()) ?? (await this.#options.observer.inspect(id));
      if (observed.state !== state) return observed;
    }
  }

  /** Returns the state of a sandbox that the spec or the engine refused. Throws any other error. */
  async #refused(id: string, error: unknown): Promise<ObservedSandbox> {
    if (!(error instanceof Refusal)) throw error;
    const observed = await this.#options.observer.inspect(id);
    return { ...observed, reason: observed.reason ?? error.reason };
  }

  /**
   * Sends a request that leads to the state. Returns the sandbox in that state if it is certain. Returns null if the engine refuses the
   * request. That is an error only if the state is unchanged.
   */
  async #ask(
    id: string, before: Docker.ContainerInspectInfo, state: ObservedState | null, request: Request, limitMs?: number,
  ): Promise<ObservedSandbox | null> {
    try {
      await this.#send(before.Id, request, limitMs);
    } catch (error) {
      if (statusOf(error) === null) throw error;
      const now = await this.#options.engine.find(id);
      if (now !== null && now.Id === before.Id && stateOf(now.State) === stateOf(before.State)) throw error;
      return null;
    }
    return state === null ? null : { ...(await this.#options.observer.observe(id, before)), state };
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
}

/**
 * Returns whether runc failed to freeze a container, which still runs. With cgroups version 1, the kernel can't freeze reliably while new
 * processes appear. runc tries many times, thaws the container, and then reports this error (opencontainers/runc, pull requests 2774 and
 * 2791: "still a game of chances"). So this adapter does not try again at once.
 */
function isFreezeRefused(error: unknown): boolean {
  return /\bunable to freeze\b/.test(engineMessage(error) ?? '');
}
