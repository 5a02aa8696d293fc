import type Docker from 'dockerode';
import { Failure } from '../../../domain/failure.ts';
import { absentSandbox, type ObservedSandbox } from '../../../domain/sandbox.ts';
import type { SandboxRuntime } from '../../../ports/sandbox-runtime.ts';
import { createKeyedMutex } from '../../shared/keyed-mutex.ts';
import { raceSignal } from '../../shared/timeout.ts';
import { createActions } from './containers.ts';
import { configFolder, type Endpoint, type Environment, findEndpoint } from './engine-address.ts';
import { createClient } from './engine-client.ts';
import { checkEngine, connect, Refusal, withFailures } from './engine.ts';
import { createExecutions } from './executions.ts';
import { createEndings, createRuns } from './exit-causes.ts';
import { createFiles } from './file-transfer.ts';
import { createProvisioning } from './images.ts';
import { createPreparation } from './init-container.ts';
import { isDnsLabel } from './labels.ts';
import { createNetworks } from './networks.ts';
import { createFacts, listContainers, listFacts } from './observed-sandbox.ts';
import { createWatch, type Move } from './watch.ts';

export interface DockerRuntimeOptions {
  /**
   * A lower-case DNS label, which names and marks what belongs to this deployment on its engine. What bears another one, or none,
   * is never touched.
   */
  readonly deployment: string;
  /** The engine: `unix:///path`, `tcp://host:port`, `ssh://user@host`. Otherwise Docker's own variables and configuration tell. */
  readonly host?: string;
  /** A ready-made client, instead. It stays its maker's to close. */
  readonly docker?: Docker;
  /** The address of the engine's host that exposed ports are bound to. Default: `127.0.0.1`. */
  readonly publishAddress?: string;
  /** The host in exposed URLs. Default: the publish address; a remote engine's host. */
  readonly urlHost?: string;
  /** The folder of Docker's `config.json`, which has the logins for registries. Default: `DOCKER_CONFIG`, or `~/.docker`. */
  readonly configDir?: string;
  /** How long a call on the engine may take. Default: 60,000. */
  readonly callTimeoutMs?: number;
  /** How long pulling an image may take. Default: half an hour. */
  readonly pullTimeoutMs?: number;
  /** How long a sandbox's processes may take to end when they are asked to, in whole seconds. Default: 10,000. */
  readonly stopGraceMs?: number;
  /** How often what was told of sandboxes is compared with what is, besides following the engine's events. Default: 60,000. */
  readonly compareMs?: number;
  /** The least time between two lines of progress of a pull. Default: 500. */
  readonly progressMs?: number;
  /** Where Docker's variables are. Default: this process's environment. */
  readonly env?: Environment;
}

/**
 * Runs sandboxes as containers of a Docker engine, each held apart from the host and from the others as its spec says. All that it
 * knows is on the engine, so that nothing is lost when this process ends. The engine is not spoken to before the first call. Throws
 * `runtime_unavailable` where it is configured in a way that can't work.
 */
export function createDockerRuntime(options: DockerRuntimeOptions): SandboxRuntime {
  const { deployment, publishAddress = '127.0.0.1', callTimeoutMs = 60_000, stopGraceMs = 10_000, env = process.env } = options;
  if (!isDnsLabel(deployment)) throw new TypeError(`createDockerRuntime: deployment is a lower-case DNS label, for example "main", and not ${JSON.stringify(deployment)}.`);
  const endpoint = options.docker === undefined ? findEndpoint(options.host, env, options.configDir) : null;
  const client = options.docker === undefined && endpoint !== null ? createClient(endpoint) : { docker: options.docker!, close: () => {} };
  const closing = new AbortController();
  const connection = connect({ docker: client.docker, deployment, callTimeoutMs, closed: closing.signal });

  const runs = createRuns();
  const facts = createFacts(options.urlHost ?? urlHost(endpoint, publishAddress), createEndings(connection, runs));
  const watch = createWatch({ connection, runs, list: () => listContainers(connection), news: (id) => actions.forget(id), compareMs: options.compareMs ?? 60_000 });
  const provisioning = createProvisioning(
    { configFolder: configFolder(env, options.configDir), limitMs: options.pullTimeoutMs ?? 1_800_000, progressMs: options.progressMs ?? 500 },
    connection,
  );
  const networks = createNetworks(connection);
  const actions = createActions({
    connection,
    networks,
    preparation: createPreparation(connection),
    publishAddress,
    stopGraceMs,
    callTimeoutMs,
  });
  const executions = createExecutions(connection);
  const files = createFiles(connection);
  const { inTurn, settled } = createKeyedMutex();
  const stopping = new Set<string>();

  const read = async (id: string): Promise<ObservedSandbox> => {
    const found = await connection.find(id);
    const fact = await facts.of(id, found);
    actions.note(found, fact);
    return fact;
  };

  /** Does it when earlier calls for the sandbox are over, and answers with the fact that holds then. */
  const act = (id: string, action: (move: Move) => Promise<ObservedSandbox | null>, signal?: AbortSignal): Promise<ObservedSandbox> => {
    if (!isDnsLabel(id)) return Promise.resolve(absentSandbox(id, 'its id is not a DNS label'));
    const done = inTurn(id, () =>
      withFailures(async () => {
        signal?.throwIfAborted();
        const move = watch.move(id);
        let fact: ObservedSandbox | null = null;
        try {
          fact = await withRefusals(() => action(move), () => read(id));
          return fact;
        } finally {
          move.end(fact);
        }
      }),
    );
    return signal === undefined ? done : raceSignal(done, signal);
  };

  return {
    name: 'docker',
    provide: (spec, progress, signal) => withFailures(() => provisioning.provide(spec, progress, signal)),
    start: (launch, progress, signal) => act(launch.id, (move) => actions.start(launch, progress, signal, move), signal),
    freeze: (id) => act(id, (move) => actions.freeze(id, move)),
    stop: (id) =>
      act(id, (move) => {
        stopping.add(id);
        return actions.stop(id, move).finally(() => stopping.delete(id));
      }),
    resume: (launch, signal) => act(launch.id, (move) => actions.resume(launch, signal, move), signal),
    async remove(id) {
      const removed = act(id, (move) => actions.remove(id, move));
      // A removal does not wait for the grace of a stop that is under way; whether this came too late shows in its turn.
      if (stopping.has(id)) await actions.hurry(id).catch(() => {});
      await removed;
    },
    inspect: (id) =>
      withFailures(async () => {
        if (!isDnsLabel(id)) return absentSandbox(id);
        const fact = await read(id);
        watch.told(fact);
        return fact;
      }),
    list: () =>
      withFailures(async () => {
        const found = await listFacts(connection, facts);
        for (const fact of found) watch.told(fact);
        return found;
      }),
    execute: (id, request, signal) => withFailures(() => executions.execute(known(id), request, signal)),
    putFiles: (id, directory, archive, signal) => withFailures(() => files.putFiles(known(id), directory, archive, signal)),
    getFiles: (id, path, signal) => withFailures(() => files.getFiles(known(id), path, signal)),
    subscribe: watch.subscribe,
    check: () => checkEngine(connection),
    async close() {
      await executions.close();
      closing.abort(new Failure('shutting_down', { retryAfterSeconds: 5 }));
      await watch.close();
      await provisioning.settled();
      // Whoever asked may have left; what goes on for them is not left half done.
      await settled();
      // Where the engine does not let it, nothing is lost.
      await networks.tidy().catch(() => {});
      client.close();
    },
  };
}

/** An id that can be one. Throws `sandbox_not_found` otherwise: such a name could not be asked for. */
function known(id: string): string {
  if (!isDnsLabel(id)) throw new Failure('sandbox_not_found', { id });
  return id;
}

/** Where the engine, or we, refuse what the sandbox is to do, that is its fact's detail. */
async function withRefusals(action: () => Promise<ObservedSandbox | null>, read: () => Promise<ObservedSandbox>): Promise<ObservedSandbox> {
  let refused: string | null = null;
  try {
    const known = await action();
    if (known !== null) return known;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    refused = error.detail;
  }
  const fact = await read();
  return { ...fact, detail: fact.detail ?? refused };
}

function urlHost(endpoint: Endpoint | null, publishAddress: string): string {
  if (endpoint !== null && endpoint.kind !== 'socket') return endpoint.host;
  return publishAddress === '0.0.0.0' || publishAddress === '::' || publishAddress === '' ? '127.0.0.1' : publishAddress;
}
