import type Docker from 'dockerode';
import { dnsLabel } from '../../../domain/dns-label.ts';
import { isFailureOf, Refusal } from '../../../domain/failure.ts';
import { absentSandbox, type ObservedSandbox, type ObservedState } from '../../../domain/sandbox.ts';
import { raceSignal } from '../../../ports/abort-signals.ts';
import type { Progress, SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import type { KeyedMutex } from '../../shared/keyed-mutex.ts';
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
    const { engine, observer } = this.#options;
    return this.#step(launch.id, 'running', async () => {
      const found = (await engine.find(launch.id)) ?? (await createContainer(this.#options, launch, progress, signal));
      if (found !== null && stateOf(found.State) === 'created') {
        signal.throwIfAborted();
        const hasProgram = await this.#prepare(found, launch.id);
        signal.throwIfAborted();
        progress({ code: 'starting_command' });
        await startContainer(this.#options, found, launch);
        // Started even without its program, because its exit code and log then say what is wrong. The inspect must see that it exited.
        if (!hasProgram) await this.#waitUntilExited(found.Id);
      }
      return await observer.inspect(launch.id);
    }, signal);
  }

  freeze(id: string): Promise<ObservedSandbox> {
    return this.#step(id, 'frozen', () => this.#repeatWhile('running', () => this.#pause(id)));
  }

  resume(launch: SandboxLaunch, signal: AbortSignal): Promise<ObservedSandbox> {
    return this.#step(launch.id, 'running', () => this.#repeatWhile('frozen', () => this.#unpauseOrStart(launch, signal)), signal);
  }

  stop(id: string): Promise<ObservedSandbox> {
    const { engine, observer, stopGraceMs, callTimeoutMs } = this.#options;
    return this.#step(id, 'stopped', async () => {
      this.#stopping.add(id);
      try {
        const found = await engine.find(id);
        if (found !== null && ['running', 'frozen'].includes(stateOf(found.State))) {
          const t = Math.ceil(stopGraceMs / 1000);
          await this.#change(id, found, (container, options) => container.stop({ t, ...options }), callTimeoutMs + t * 1000);
        }
      } finally {
        this.#stopping.delete(id);
      }
      return await observer.inspect(id);
    });
  }

  async remove(id: string): Promise<void> {
    const { engine, observer } = this.#options;
    const removed = this.#step(id, 'absent', async () => {
      const found = await engine.find(id);
      if (found !== null) await removeContainer(engine, found.Id);
      if (found === null || found.HostConfig.ReadonlyRootfs === true) await removeParts(engine, id);
      return await observer.inspect(id);
    });
    // A removal does not wait for the grace period of a running stop. If the kill comes too late, the removal itself notices that.
    if (this.#stopping.has(id)) await this.#kill(id).catch(() => {});
    await removed;
  }

  async #pause(id: string): Promise<ObservedSandbox> {
    const { engine, observer } = this.#options;
    const found = await engine.find(id);
    if (found === null || stateOf(found.State) !== 'running') return await observer.inspect(id);
    try {
      const isPaused = await this.#change(id, found, (container, options) => container.pause(options));
      return isPaused ? { ...(await observer.observe(id, found)), state: 'frozen' } : await observer.inspect(id);
    } catch (error) {
      if (isFreezeRefused(error)) throw unavailable({ code: 'freeze_refused' }, error);
      if (statusOf(error) !== null) this.canFreeze = await hasFreezer(engine);
      throw error;
    }
  }

  async #unpauseOrStart(launch: SandboxLaunch, signal: AbortSignal): Promise<ObservedSandbox> {
    const { engine, observer } = this.#options;
    const { id } = launch;
    const found = await engine.find(id);
    signal.throwIfAborted();
    if (found !== null && stateOf(found.State) === 'stopped') await startContainer(this.#options, found, launch);
    if (found === null || stateOf(found.State) !== 'frozen') return await observer.inspect(id);
    const isUnpaused = await this.#change(id, found, (container, options) => container.unpause(options));
    return isUnpaused ? { ...(await observer.observe(id, found)), state: 'running' } : await observer.inspect(id);
  }

  async #kill(id: string): Promise<void> {
    const found = await this.#options.engine.find(id);
    if (found !== null) await this.#send(found.Id, (container, options) => container.kill({ signal: 'SIGKILL', ...options }));
  }

  /**
   * Runs a step after earlier ones of the sandbox. The step leads to the target state, and returns the state afterwards. If the spec or the
   * engine refused the step, this method does so.
   */
  #step(id: string, target: ObservedState, step: () => Promise<ObservedSandbox>, signal?: AbortSignal): Promise<ObservedSandbox> {
    const { files, mutex, watch } = this.#options;
    if (!dnsLabel.test(id)) return Promise.resolve(absentSandbox(id, { code: 'invalid_id' }));
    const done = mutex.runExclusive(id, () =>
      withFailures(async () => {
        signal?.throwIfAborted();
        files.endTransfers(id);
        const end = watch.begin(id, target);
        let observed: ObservedSandbox | undefined;
        try {
          observed = await step().catch((error: unknown) => this.#observeRefused(id, error));
          return observed;
        } finally {
          end(observed);
        }
      }),
    );
    return signal === undefined ? done : raceSignal(done, signal);
  }

  /**
   * Does a step that leads out of the given state. Does it again if the sandbox is then in that state after all: Docker 20.10 may notice an
   * earlier pause late, and reports a running container as paused for a moment, or the reverse.
   */
  async #repeatWhile(state: ObservedState, step: () => Promise<ObservedSandbox>): Promise<ObservedSandbox> {
    for (;;) {
      const observed = await step();
      if (observed.state !== state) return observed;
    }
  }

  /** Returns the state of a sandbox that the spec or the engine refused. Throws any other error. */
  async #observeRefused(id: string, error: unknown): Promise<ObservedSandbox> {
    if (!(error instanceof Refusal)) throw error;
    const observed = await this.#options.observer.inspect(id);
    // What a stopped one reports is the end of an earlier run.
    if (observed.state === 'stopped') return { ...observed, reason: error.reason, endedFromOutside: false };
    return { ...observed, reason: observed.reason ?? error.reason };
  }

  /**
   * Sends a request that changes the state. If it returns true, the new state is certain without another inspect. Returns false if the
   * engine refuses the request because the state has changed already.
   */
  async #change(id: string, before: Docker.ContainerInspectInfo, request: Request, limitMs?: number): Promise<boolean> {
    try {
      await this.#send(before.Id, request, limitMs);
      return true;
    } catch (error) {
      if (statusOf(error) === null) throw error;
      const now = await this.#options.engine.find(id);
      if (now !== null && now.Id === before.Id && stateOf(now.State) === stateOf(before.State)) throw error;
      return false;
    }
  }

  /** Waits for a program that is known to end at once. Gives up after 5 seconds. */
  async #waitUntilExited(containerId: string): Promise<void> {
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
