import type Docker from 'dockerode';
import { dnsLabel } from '../../../domain/dns-label.ts';
import { Failure } from '../../../domain/failure.ts';
import type { SandboxRuntime } from '../../../ports/sandbox-runtime.ts';
import { DurableExecutions } from '../durable-executions.ts';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { Containers } from './containers.ts';
import { createEngine, shorten, withFailures } from './engine.ts';
import { configFolder, createClient, type Environment } from './engine-client.ts';
import { checkEngine, diskSpace } from './engine-info.ts';
import { DockerExecutionHost } from './execution-host.ts';
import { ContainerCommands } from './container-commands.ts';
import { RunEvents } from './exit-causes.ts';
import { DockerFiles } from './files.ts';
import { Firewall } from './firewall.ts';
import { createImages } from './images.ts';
import { readLog } from './logs.ts';
import { Networks } from './networks.ts';
import { Observer } from './observed-sandbox.ts';
import { SandboxWatch } from './sandbox-watch.ts';
import { minMemoryBytes } from './spec-options.ts';
import { keptLaunch } from './start-container.ts';

export interface DockerRuntimeOptions {
  /**
   * A lower-case DNS label. It is in the names and labels of this deployment's objects on the engine. Objects without it are never touched.
   */
  readonly deployment: string;
  /** The engine: `unix:///path`, `tcp://host:port`, `ssh://user@host`. Default: from Docker's variables and configuration. */
  readonly host?: string;
  /** A ready client instead of `host`. The runtime does not close it. */
  readonly docker?: Docker;
  /** The address of the engine's machine that exposed ports are bound to. Default: `127.0.0.1`. */
  readonly publishAddress?: string;
  /** The host name in exposed URLs. Default: that of a remote engine, otherwise the publish address. */
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
  const {
    engine, remoteHost, mutex, observer, watch, images, firewall, containers, commands, files, executionHost, close,
  } = assemble(options);
  const executions = new DurableExecutions(executionHost);
  return {
    name: 'docker',
    ignores: [],
    minMemoryBytes,
    get capabilities() {
      return { freeze: containers.canFreeze };
    },
    executions,
    files,
    provide: (spec, progress, signal) => withFailures(() => images.provide(spec, progress, signal)),
    start: (launch, progress, signal) => containers.start(launch, progress, signal),
    freeze: (id) => containers.freeze(id),
    stop: (id) => containers.stop(id),
    resume(launch, signal) {
      const resumed = containers.resume(launch, signal);
      const finishPending = async (): Promise<void> => executionHost.finishRemovals(launch.id, await commands.endLeftoversOf(launch.id));
      // Finishes work that waited while the sandbox was frozen. If this fails, the next execution or resumption tries again.
      resumed.then(finishPending).catch(() => {});
      return resumed;
    },
    async remove(id) {
      await containers.remove(id);
      executions.forget(id);
      executionHost.forget(id);
    },
    inspect: (id) => withFailures(() => observer.inspect(id)),
    list: () => withFailures(() => observer.list()),
    keptLaunch: (id) => withFailures(async () => keptLaunch(await engine.find(id))),
    execute: (id, request, signal) => withFailures(() => commands.startAttached(id, request, signal)),
    putFiles: (id, directory, archive, signal) => files.putFiles(id, directory, archive, signal),
    getFiles: (id, path, signal) => files.getFiles(id, path, signal),
    logs: (id, request, signal) => withFailures(() => readLog(engine, id, request, signal), id),
    usage: (id) => withFailures(() => observer.usage(id)),
    diskSpace: async () => (remoteHost === null ? await withFailures(() => diskSpace(engine)) : null),
    subscribe: (listener) => watch.subscribe(listener),
    async check() {
      const { ok, detail } = await checkEngine(engine);
      const problem = ok && firewall !== null ? await firewall.check().catch(() => null) : null;
      return { ok, detail: problem === null ? detail : `${detail}; isolated sandboxes reach services of its machine: ${shorten(problem)}` };
    },
    /** Resolves when no step is running. Steps whose caller has left count too. */
    settled: () => mutex.settled(),
    close,
  };
}

/** Creates the parts of the runtime, and the function that closes them. */
function assemble(options: DockerRuntimeOptions) {
  const { deployment, publishAddress = '127.0.0.1', callTimeoutMs = 60_000, stopGraceMs = 10_000, env = process.env } = options;
  if (!dnsLabel.test(deployment)) {
    const given = JSON.stringify(deployment);
    throw new TypeError(`createDockerRuntime: deployment is a lower-case DNS label, for example "main", and not ${given}.`);
  }
  const given = options.docker && { docker: options.docker, remoteHost: null, close: () => {} };
  const client = given ?? createClient(options.host, env, options.configDir);
  const { docker, remoteHost } = client;
  const closing = new AbortController();
  const engine = createEngine({ docker, deployment, callTimeoutMs, closed: closing.signal });
  /** Delays a step of a sandbox while a command begins in it. */
  const mutex = new KeyedMutex();
  const runEvents = new RunEvents();
  // The address at which this machine reaches published ports.
  const localHost = ['0.0.0.0', '::', ''].includes(publishAddress) ? '127.0.0.1' : publishAddress;
  const watch = new SandboxWatch(engine, runEvents, () => {
    // After a reconnect the engine may have restarted, so its firewall rules are unknown.
    firewall?.forget();
    // If this fails, the next execution in a sandbox tries again.
    commands.endLeftovers().catch(() => {});
  });
  const observer = new Observer(engine, runEvents, watch, options.urlHost ?? remoteHost ?? localHost);
  const networks = new Networks(engine);
  const firewall = options.firewall === false ? null : new Firewall(engine);
  const images = createImages(engine, {
    configFolder: configFolder(env, options.configDir),
    limitMs: options.pullTimeoutMs ?? 1_800_000,
    progressMs: options.progressMs ?? 500,
  });
  const commands = new ContainerCommands(engine, watch, mutex);
  const files = new DockerFiles(engine, (id, command, input, signal) =>
    withFailures(() => commands.startScript(id, command, signal, { isShort: !input })));
  const executionHost = new DockerExecutionHost(engine, commands, files);
  const containers = new Containers({
    engine, observer, networks, firewall, watch, files, mutex, publishAddress, stopGraceMs, callTimeoutMs,
  });
  const close = async (): Promise<void> => {
    await commands.close();
    closing.abort(new Failure('shutting_down', { retryAfterSeconds: 5 }));
    await watch.closed();
    await images.settled();
    // A step whose caller has left still runs to its end.
    await mutex.settled();
    // If the engine refuses, nothing is lost.
    await networks.removeUnused().catch(() => {});
    client.close();
  };
  return { engine, remoteHost, mutex, observer, watch, images, firewall, containers, commands, files, executionHost, close };
}
