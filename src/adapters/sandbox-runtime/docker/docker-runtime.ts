import type Docker from 'dockerode';
import { Failure } from '../../../domain/failure.ts';
import { absentSandbox, type ObservedSandbox } from '../../../domain/sandbox.ts';
import type { SandboxSpec } from '../../../domain/sandbox-spec.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import type {
  Execution, ExecutionRequest, Progress, Provision, SandboxLaunch, SandboxRuntime,
} from '../../../ports/sandbox-runtime.ts';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { raceSignal } from '../../shared/timeout.ts';
import { Containers, type Outcome } from './containers.ts';
import { checkEngine, createEngine, type Engine, Refusal, withFailures } from './engine.ts';
import { type Client, configFolder, createClient, type Environment } from './engine-client.ts';
import { Executions } from './executions.ts';
import { RunHistory } from './exit-causes.ts';
import { getFiles, putFiles } from './file-transfer.ts';
import { Images } from './images.ts';
import { Preparation } from './init-container.ts';
import { isDnsLabel } from './labels.ts';
import { Networks } from './networks.ts';
import { Observer } from './observed-sandbox.ts';
import { reasons } from './status-reasons.ts';
import { type ExpectedChange, Watch } from './watch.ts';

export interface DockerRuntimeOptions {
  /**
   * A lower-case DNS label, which names and marks what belongs to this deployment on its engine. Anything with another one, or none,
   * is never touched.
   */
  readonly deployment: string;
  /** The engine: `unix:///path`, `tcp://host:port`, `ssh://user@host`. Default: what Docker's variables and configuration say. */
  readonly host?: string;
  /** A ready-made client instead. The runtime does not close it. */
  readonly docker?: Docker;
  /** The address of the engine's host that exposed ports are bound to. Default: `127.0.0.1`. */
  readonly publishAddress?: string;
  /** The host in exposed URLs. Default: a remote engine's host, otherwise the publish address. */
  readonly urlHost?: string;
  /** The folder of Docker's `config.json`, which has the logins for registries. Default: `DOCKER_CONFIG`, or `~/.docker`. */
  readonly configDir?: string;
  /** The time limit of a call to the engine, in milliseconds. Default: 60,000. */
  readonly callTimeoutMs?: number;
  /** The time limit for pulling an image, in milliseconds. Default: half an hour. */
  readonly pullTimeoutMs?: number;
  /** How long a sandbox's processes may take to end when they are asked to, in whole seconds as milliseconds. Default: 10,000. */
  readonly stopGraceMs?: number;
  /** How often the known states are compared with a list, besides following the engine's events. Default: 60,000. */
  readonly compareMs?: number;
  /** The least time between two progress lines of a pull, in milliseconds. Default: 500. */
  readonly progressMs?: number;
  /** The environment with Docker's variables. Default: this process's own. */
  readonly env?: Environment;
}

/**
 * Runs sandboxes as containers of a Docker engine, each isolated from the host and from the others as its spec says. All state is on
 * the engine, so that nothing is lost when this process ends. The engine is first contacted by the first call. Throws
 * `runtime_unavailable` if the configuration can't work.
 */
export function createDockerRuntime(options: DockerRuntimeOptions): SandboxRuntime {
  const { deployment, docker, env = process.env } = options;
  if (!isDnsLabel(deployment)) {
    const given = JSON.stringify(deployment);
    throw new TypeError(`createDockerRuntime: deployment is a lower-case DNS label, for example "main", and not ${given}.`);
  }
  const given = docker && { docker, remoteHost: null, close: () => {} };
  return new DockerRuntime(options, given ?? createClient(options.host, env, options.configDir));
}

class DockerRuntime implements SandboxRuntime {
  readonly name = 'docker';
  readonly ignores = [];
  readonly #engine: Engine;
  readonly #closing = new AbortController();
  readonly #client: Client;
  readonly #observer: Observer;
  readonly #watch: Watch;
  readonly #images: Images;
  readonly #networks: Networks;
  readonly #containers: Containers;
  readonly #executions: Executions;
  /** The steps of one sandbox are done one after another. */
  readonly #mutex = new KeyedMutex();
  readonly #stopping = new Set<string>();

  constructor(options: DockerRuntimeOptions, client: Client) {
    const { deployment, publishAddress = '127.0.0.1', callTimeoutMs = 60_000, stopGraceMs = 10_000, env = process.env } = options;
    const engine = createEngine({ docker: client.docker, deployment, callTimeoutMs, closed: this.#closing.signal });
    const runs = new RunHistory();
    this.#engine = engine;
    this.#client = client;
    this.#observer = new Observer(engine, runs, options.urlHost ?? client.remoteHost ?? localHost(publishAddress));
    this.#networks = new Networks(engine);
    const preparation = new Preparation(engine);
    this.#containers = new Containers({ engine, networks: this.#networks, preparation, publishAddress, stopGraceMs, callTimeoutMs });
    this.#watch = new Watch({
      engine,
      runs,
      onNews: (id) => this.#containers.forget(id),
      compareMs: options.compareMs ?? 60_000,
    });
    this.#images = new Images(engine, {
      configFolder: configFolder(env, options.configDir),
      limitMs: options.pullTimeoutMs ?? 1_800_000,
      progressMs: options.progressMs ?? 500,
    });
    this.#executions = new Executions(engine);
  }

  provide(spec: SandboxSpec, progress: Progress, signal: AbortSignal): Promise<Provision> {
    return withFailures(() => this.#images.provide(spec, progress, signal));
  }

  start(launch: SandboxLaunch, progress: Progress, signal: AbortSignal): Promise<ObservedSandbox> {
    return this.#change(launch.id, (change) => this.#containers.start(launch, progress, signal, change), signal);
  }

  freeze(id: string): Promise<ObservedSandbox> {
    return this.#change(id, (change) => this.#containers.freeze(id, change));
  }

  stop(id: string): Promise<ObservedSandbox> {
    return this.#change(id, (change) => {
      this.#stopping.add(id);
      return this.#containers.stop(id, change).finally(() => this.#stopping.delete(id));
    });
  }

  resume(launch: SandboxLaunch, signal: AbortSignal): Promise<ObservedSandbox> {
    return this.#change(launch.id, (change) => this.#containers.resume(launch, signal, change), signal);
  }

  async remove(id: string): Promise<void> {
    const removed = this.#change(id, (change) => this.#containers.remove(id, change));
    // A removal does not wait for the grace of a stop that is under way. If this comes too late, the removal itself finds out.
    if (this.#stopping.has(id)) await this.#containers.cutStopShort(id).catch(() => {});
    await removed;
  }

  inspect(id: string): Promise<ObservedSandbox> {
    return withFailures(async () => {
      const observed = await this.#observe(id);
      this.#watch.seen(observed);
      return observed;
    });
  }

  list(): Promise<readonly ObservedSandbox[]> {
    return withFailures(async () => {
      const found = await this.#observer.list();
      for (const observed of found) this.#watch.seen(observed);
      return found;
    });
  }

  execute(id: string, request: ExecutionRequest, signal: AbortSignal): Promise<Execution> {
    return withFailures(() => this.#executions.execute(id, request, signal));
  }

  putFiles(id: string, directory: string, archive: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void> {
    return withFailures(() => putFiles(this.#engine, id, directory, archive, signal));
  }

  getFiles(id: string, path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return withFailures(() => getFiles(this.#engine, id, path, signal));
  }

  subscribe(listener: (id: string) => void): () => void {
    return this.#watch.subscribe(listener);
  }

  check(): Promise<CheckResult> {
    return checkEngine(this.#engine);
  }

  async close(): Promise<void> {
    await this.#executions.close();
    this.#closing.abort(new Failure('shutting_down', { retryAfterSeconds: 5 }));
    await this.#watch.close();
    await this.#images.settled();
    // A step whose caller has left is finished, not left half done.
    await this.#mutex.settled();
    // If the engine refuses, nothing is lost.
    await this.#networks.removeUnused().catch(() => {});
    this.#client.close();
  }

  /** Runs the step after earlier ones of the sandbox, and returns the state afterwards. A refusal becomes its reason. */
  #change(id: string, step: (change: ExpectedChange) => Outcome, signal?: AbortSignal): Promise<ObservedSandbox> {
    if (!isDnsLabel(id)) return Promise.resolve(absentSandbox(id, reasons.invalidId));
    const done = this.#mutex.inTurn(id, () =>
      withFailures(async () => {
        signal?.throwIfAborted();
        const change = this.#watch.begin(id);
        let observed: ObservedSandbox | undefined;
        try {
          observed = await step(change).catch((error: unknown) => this.#observeRefused(id, error));
          observed ??= await this.#observe(id);
          return observed;
        } finally {
          change.finish(observed);
        }
      }),
    );
    return signal === undefined ? done : raceSignal(done, signal);
  }

  async #observe(id: string): Promise<ObservedSandbox> {
    const found = await this.#engine.find(id);
    const observed = await this.#observer.observe(id, found);
    this.#containers.remember(found, observed);
    return observed;
  }

  async #observeRefused(id: string, error: unknown): Promise<ObservedSandbox> {
    if (!(error instanceof Refusal)) throw error;
    const observed = await this.#observe(id);
    return { ...observed, reason: observed.reason ?? error.reason };
  }
}

function localHost(publishAddress: string): string {
  return publishAddress === '0.0.0.0' || publishAddress === '::' || publishAddress === '' ? '127.0.0.1' : publishAddress;
}
