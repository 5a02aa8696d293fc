import type { DiskSpace } from '../../../domain/disk-pressure.ts';
import { dnsLabel } from '../../../domain/dns-label.ts';
import { Failure } from '../../../domain/failure.ts';
import { absentSandbox, type ObservedSandbox } from '../../../domain/sandbox.ts';
import type { SandboxSpec } from '../../../domain/sandbox-spec.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import type {
  Execution, ExecutionRequest, KeptLaunch, LogRequest, Progress, Provision, RuntimeCapabilities, SandboxLaunch, SandboxRuntime,
  SandboxUsage,
} from '../../../ports/sandbox-runtime.ts';
import { DurableExecutions } from '../durable-executions.ts';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { raceSignal } from '../../shared/timeout.ts';
import { keptLaunch } from './container-config.ts';
import { Containers, isFreezeRefused } from './containers.ts';
import { checkEngine, createEngine, type Engine, hasFreezer, Refusal, statusOf, unavailable, withFailures } from './engine.ts';
import { type Client, configFolder, createClient } from './engine-client.ts';
import { DockerExecutionHost } from './execution-host.ts';
import { Executions } from './executions.ts';
import { RunHistory } from './exit-causes.ts';
import { getFiles, putFiles, Transfers } from './file-transfer.ts';
import { DockerFiles } from './files.ts';
import { Firewall } from './firewall.ts';
import { Images } from './images.ts';
import { Preparation } from './init-container.ts';
import { readLog } from './logs.ts';
import { Networks } from './networks.ts';
import { diskSpace, Observer } from './observed-sandbox.ts';
import { type DockerRuntimeOptions, localHost } from './options.ts';
import { shorten } from './launch-refusals.ts';
import { Watch } from './watch.ts';

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
  readonly #engine: Engine;
  readonly #closing = new AbortController();
  readonly #client: Client;
  readonly #observer: Observer;
  readonly #watch: Watch;
  readonly #images: Images;
  readonly #networks: Networks;
  readonly #firewall: Firewall | null;
  readonly #containers: Containers;
  readonly #executions: Executions;
  /** The steps of one sandbox are done one after another. */
  readonly #mutex = new KeyedMutex();
  readonly #executionHost: DockerExecutionHost;
  readonly executions: DurableExecutions;
  readonly files: DockerFiles;
  readonly #transfers = new Transfers(this.#closing.signal);
  readonly #stopping = new Set<string>();
  #canFreeze = true;

  constructor(options: DockerRuntimeOptions, client: Client) {
    const { deployment, publishAddress = '127.0.0.1', callTimeoutMs = 60_000, stopGraceMs = 10_000, env = process.env } = options;
    const engine = createEngine({ docker: client.docker, deployment, callTimeoutMs, closed: this.#closing.signal });
    const runs = new RunHistory();
    this.#engine = engine;
    this.#client = client;
    this.#observer = new Observer(engine, runs, options.urlHost ?? client.remoteHost ?? localHost(publishAddress));
    this.#networks = new Networks(engine);
    this.#firewall = options.firewall === false ? null : new Firewall(engine);
    this.#containers = new Containers({
      engine,
      observer: this.#observer,
      networks: this.#networks,
      firewall: this.#firewall,
      preparation: new Preparation(engine),
      publishAddress,
      stopGraceMs,
      callTimeoutMs,
    });
    this.#watch = new Watch(engine, runs, options.compareMs ?? 60_000, () => this.#connected());
    this.#images = new Images(engine, {
      configFolder: configFolder(env, options.configDir),
      limitMs: options.pullTimeoutMs ?? 1_800_000,
      progressMs: options.progressMs ?? 500,
    });
    this.#executions = new Executions(engine, this.#watch, this.#mutex);
    this.#executionHost = new DockerExecutionHost(engine, this.#executions, this);
    this.executions = new DurableExecutions(this.#executionHost);
    this.files = new DockerFiles(engine, this.execute.bind(this), this.#transfers);
  }

  get capabilities(): RuntimeCapabilities {
    return { freeze: this.#canFreeze };
  }

  provide(spec: SandboxSpec, progress: Progress, signal: AbortSignal): Promise<Provision> {
    return withFailures(() => this.#images.provide(spec, progress, signal));
  }

  start(launch: SandboxLaunch, progress: Progress, signal: AbortSignal): Promise<ObservedSandbox> {
    return this.#change(launch.id, 'running', () => this.#containers.start(launch, progress, signal), signal);
  }

  freeze(id: string): Promise<ObservedSandbox> {
    return this.#change(id, 'frozen', async () => {
      try {
        return await this.#containers.freeze(id);
      } catch (error) {
        if (isFreezeRefused(error)) throw unavailable({ code: 'freeze_refused' }, error);
        if (statusOf(error) !== null) this.#canFreeze = await hasFreezer(this.#engine);
        throw error;
      }
    });
  }

  stop(id: string): Promise<ObservedSandbox> {
    return this.#change(id, 'stopped', () => {
      this.#stopping.add(id);
      return this.#containers.stop(id).finally(() => this.#stopping.delete(id));
    });
  }

  resume(launch: SandboxLaunch, signal: AbortSignal): Promise<ObservedSandbox> {
    const resumed = this.#change(launch.id, 'running', () => this.#containers.resume(launch, signal), signal);
    // Finishes work that waited while the sandbox was frozen. If this fails, the next execution tries again.
    resumed.then(() => this.#finishPending(launch.id)).catch(() => {});
    return resumed;
  }

  async remove(id: string): Promise<void> {
    const removed = this.#change(id, 'absent', () => this.#containers.remove(id));
    // A removal does not wait for the grace period of a running stop. If the kill comes too late, the removal itself notices that.
    if (this.#stopping.has(id)) await this.#containers.cutStopShort(id).catch(() => {});
    await removed;
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
    return withFailures(() => putFiles(this.#engine, id, directory, archive, this.#transfers.until(id, signal)));
  }

  getFiles(id: string, path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return withFailures(() => getFiles(this.#engine, id, path, this.#transfers.until(id, signal)));
  }

  logs(id: string, request: LogRequest, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return withFailures(() => readLog(this.#engine, id, request, signal));
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

  /** Runs the step after earlier ones of the sandbox. The step leads to the target state. Returns the state afterwards. */
  #change(id: string, target: ObservedSandbox['state'], step: () => Promise<ObservedSandbox | void>, signal?: AbortSignal) {
    if (!dnsLabel.test(id)) return Promise.resolve(absentSandbox(id, { code: 'invalid_id' }));
    const done = this.#mutex.runExclusive(id, () =>
      withFailures(async () => {
        signal?.throwIfAborted();
        this.#transfers.end(id);
        const end = this.#watch.begin(id, target);
        let observed: ObservedSandbox | undefined;
        try {
          observed = (await step().catch((error: unknown) => this.#refused(id, error))) ?? (await this.#observer.inspect(id));
          return observed;
        } finally {
          end(observed);
        }
      }),
    );
    return signal === undefined ? done : raceSignal(done, signal);
  }

  /** Returns the state of a sandbox that the spec or the engine refused. Throws any other error. */
  async #refused(id: string, error: unknown): Promise<ObservedSandbox> {
    if (!(error instanceof Refusal)) throw error;
    const observed = await this.#observer.inspect(id);
    return { ...observed, reason: observed.reason ?? error.reason };
  }
}
