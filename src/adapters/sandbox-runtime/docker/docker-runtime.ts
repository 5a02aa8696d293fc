import type Docker from 'dockerode';
import type { DiskSpace } from '../../../domain/disk-pressure.ts';
import { dnsLabel } from '../../../domain/dns-label.ts';
import { Failure } from '../../../domain/failure.ts';
import type { ObservedSandbox } from '../../../domain/sandbox.ts';
import type { SandboxSpec } from '../../../domain/sandbox-spec.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import type {
  Execution, ExecutionRequest, KeptLaunch, LogRequest, Progress, Provision, RuntimeCapabilities, SandboxLaunch, SandboxRuntime,
  SandboxUsage,
} from '../../../ports/sandbox-runtime.ts';
import { DurableExecutions } from '../durable-executions.ts';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { keptLaunch } from './container-config.ts';
import { Containers } from './containers.ts';
import { createEngine, type Engine, withFailures } from './engine.ts';
import { type Client, configFolder, createClient, type Environment } from './engine-client.ts';
import { checkEngine, diskSpace } from './engine-info.ts';
import { DockerExecutionHost } from './execution-host.ts';
import { Executions } from './executions.ts';
import { RunEvents } from './exit-causes.ts';
import { DockerFiles } from './files.ts';
import { Firewall } from './firewall.ts';
import { Images } from './images.ts';
import { readLog } from './logs.ts';
import { Networks } from './networks.ts';
import { Observer } from './observed-sandbox.ts';
import { shorten } from './launch-refusals.ts';
import { SandboxWatch } from './sandbox-watch.ts';
import { minMemoryBytes } from './spec-options.ts';

export interface DockerRuntimeOptions {
  /**
   * A lower-case DNS label. It is in the names and labels of this deployment's objects on the engine. Objects without it are never touched.
   */
  readonly deployment: string;
  /** The engine: `unix:///path`, `tcp://host:port`, `ssh://user@host`. Default: from Docker's variables and configuration. */
  readonly host?: string;
  /** A ready client instead of `host`. The runtime does not close it. */
  readonly docker?: Docker;
  /** The address of the engine's host that exposed ports are bound to. Default: `127.0.0.1`. */
  readonly publishAddress?: string;
  /** The host in exposed URLs. Default: a remote engine's host, otherwise the publish address. */
  readonly urlHost?: string;
  /**
   * Whether Skep adds rules to the firewall of the engine's machine, so that isolated sandboxes reach neither the machine's own services
   * nor metadata services. Default: true.
   */
  readonly firewall?: boolean;
  /** The folder of Docker's `config.json` with the registry logins. Default: `DOCKER_CONFIG`, or `~/.docker`. */
  readonly configDir?: string;
  /** The time limit of a call to the engine, in milliseconds. Default: 60,000. */
  readonly callTimeoutMs?: number;
  /** The time limit for pulling an image, in milliseconds. Default: half an hour. */
  readonly pullTimeoutMs?: number;
  /** How long a sandbox's processes may take to end after the stop signal, in milliseconds, rounded up to seconds. Default: 10,000. */
  readonly stopGraceMs?: number;
  /** How often the known states are compared with a list, in addition to the engine's events, in milliseconds. Default: 60,000. */
  readonly compareMs?: number;
  /** The minimum time between two progress reports of a pull, in milliseconds. Default: 500. */
  readonly progressMs?: number;
  /** The environment with Docker's variables. Default: this process's own. */
  readonly env?: Environment;
}

/**
 * Runs sandboxes as containers of a Docker engine. The spec sets how each one is isolated from the host and from the others. The engine
 * holds all state, so nothing is lost when this process ends. The first call connects to the engine. Throws `runtime_unavailable` if the
 * configuration can't work.
 */
export function createDockerRuntime(options: DockerRuntimeOptions): SandboxRuntime & { settled(): Promise<void> } {
  const { deployment, docker, env = process.env } = options;
  if (!dnsLabel.test(deployment)) {
    const given = JSON.stringify(deployment);
    throw new TypeError(`createDockerRuntime: deployment is a lower-case DNS label, for example "main", and not ${given}.`);
  }
  const given = docker && { docker, remoteHost: null, close: () => {} };
  return new DockerRuntime(options, given ?? createClient(options.host, env, options.configDir));
}

class DockerRuntime implements SandboxRuntime {
  readonly name = 'docker';
  readonly ignores = [];
  readonly minMemoryBytes = minMemoryBytes;
  readonly #engine: Engine;
  readonly #closing = new AbortController();
  readonly #client: Client;
  readonly #observer: Observer;
  readonly #watch: SandboxWatch;
  readonly #images: Images;
  readonly #networks: Networks;
  readonly #firewall: Firewall | null;
  readonly #containers: Containers;
  readonly #executions: Executions;
  /** Delays a step of a sandbox while a command begins in it. */
  readonly #mutex = new KeyedMutex();
  readonly #executionHost: DockerExecutionHost;
  readonly executions: DurableExecutions;
  readonly files: DockerFiles;

  constructor(options: DockerRuntimeOptions, client: Client) {
    const { deployment, publishAddress = '127.0.0.1', callTimeoutMs = 60_000, stopGraceMs = 10_000, env = process.env } = options;
    const engine = createEngine({ docker: client.docker, deployment, callTimeoutMs, closed: this.#closing.signal });
    const runs = new RunEvents();
    this.#engine = engine;
    this.#client = client;
    this.#observer = new Observer(engine, runs, options.urlHost ?? client.remoteHost ?? localHost(publishAddress));
    this.#networks = new Networks(engine);
    this.#firewall = options.firewall === false ? null : new Firewall(engine);
    this.#watch = new SandboxWatch(engine, runs, options.compareMs ?? 60_000, () => this.#connected());
    this.#images = new Images(engine, {
      configFolder: configFolder(env, options.configDir),
      limitMs: options.pullTimeoutMs ?? 1_800_000,
      progressMs: options.progressMs ?? 500,
    });
    this.#executions = new Executions(engine, this.#watch, this.#mutex);
    this.files = new DockerFiles(engine, this.execute.bind(this));
    this.#executionHost = new DockerExecutionHost(engine, this.#executions, this.files);
    this.executions = new DurableExecutions(this.#executionHost);
    this.#containers = new Containers({
      engine,
      observer: this.#observer,
      networks: this.#networks,
      firewall: this.#firewall,
      watch: this.#watch,
      files: this.files,
      mutex: this.#mutex,
      publishAddress,
      stopGraceMs,
      callTimeoutMs,
    });
  }

  get capabilities(): RuntimeCapabilities {
    return { freeze: this.#containers.canFreeze };
  }

  provide(spec: SandboxSpec, progress: Progress, signal: AbortSignal): Promise<Provision> {
    return withFailures(() => this.#images.provide(spec, progress, signal));
  }

  start(launch: SandboxLaunch, progress: Progress, signal: AbortSignal): Promise<ObservedSandbox> {
    return this.#containers.start(launch, progress, signal);
  }

  freeze(id: string): Promise<ObservedSandbox> {
    return this.#containers.freeze(id);
  }

  stop(id: string): Promise<ObservedSandbox> {
    return this.#containers.stop(id);
  }

  resume(launch: SandboxLaunch, signal: AbortSignal): Promise<ObservedSandbox> {
    const resumed = this.#containers.resume(launch, signal);
    // Finishes work that waited while the sandbox was frozen. If this fails, the next execution tries again.
    resumed.then(() => this.#finishPending(launch.id)).catch(() => {});
    return resumed;
  }

  async remove(id: string): Promise<void> {
    await this.#containers.remove(id);
    this.executions.forget(id);
  }

  inspect(id: string): Promise<ObservedSandbox> {
    return withFailures(() => this.#observer.inspect(id));
  }

  list(): Promise<readonly ObservedSandbox[]> {
    return withFailures(() => this.#observer.list());
  }

  keptLaunch(id: string): Promise<KeptLaunch | null> {
    return withFailures(async () => keptLaunch(await this.#engine.find(id)));
  }

  execute(id: string, request: ExecutionRequest, signal: AbortSignal): Promise<Execution> {
    return withFailures(() => this.#executions.execute(id, request, signal));
  }

  putFiles(id: string, directory: string, archive: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void> {
    return this.files.putFiles(id, directory, archive, signal);
  }

  getFiles(id: string, path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return this.files.getFiles(id, path, signal);
  }

  logs(id: string, request: LogRequest, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return withFailures(() => readLog(this.#engine, id, request, signal), id);
  }

  usage(id: string): Promise<SandboxUsage> {
    return withFailures(() => this.#observer.usage(id));
  }

  diskSpace(): Promise<DiskSpace | null> {
    return this.#client.remoteHost === null ? withFailures(() => diskSpace(this.#engine)) : Promise.resolve(null);
  }

  subscribe(listener: (id: string) => void): () => void {
    return this.#watch.subscribe(listener);
  }

  async check(): Promise<CheckResult> {
    const { ok, detail } = await checkEngine(this.#engine);
    const problem = ok && this.#firewall !== null ? await this.#firewall.check().catch(() => null) : null;
    return { ok, detail: problem === null ? detail : `${detail}; isolated sandboxes reach services of its machine: ${shorten(problem)}` };
  }

  /** Resolves when no step is running. Steps whose caller has left count too. */
  settled(): Promise<void> {
    return this.#mutex.settled();
  }

  async close(): Promise<void> {
    await this.#executions.close();
    this.#closing.abort(new Failure('shutting_down', { retryAfterSeconds: 5 }));
    await this.#watch.closed();
    await this.#images.settled();
    // A step whose caller has left still runs to its end.
    await this.#mutex.settled();
    // If the engine refuses, nothing is lost.
    await this.#networks.removeUnused().catch(() => {});
    this.#client.close();
  }

  /** The event stream is connected again. The engine may have been away, or this process may have replaced one that ended. */
  #connected(): void {
    this.#firewall?.forget();
    // If this fails, the next execution in a sandbox tries again.
    this.#executions.endLeftovers().catch(() => {});
  }

  /** Does the work that had to wait until the sandbox runs. */
  async #finishPending(id: string): Promise<void> {
    await this.#executionHost.finishRemovals(id, await this.#executions.endLeftoversOf(id));
  }
}

/** Returns the address at which this machine reaches published ports. */
function localHost(publishAddress: string): string {
  return ['0.0.0.0', '::', ''].includes(publishAddress) ? '127.0.0.1' : publishAddress;
}
