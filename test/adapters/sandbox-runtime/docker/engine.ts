import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, readlink } from 'node:fs/promises';
import { posix } from 'node:path';
import { text } from 'node:stream/consumers';
import Docker from 'dockerode';
import { extract } from 'tar-stream';
import { onTestFailed } from 'vitest';
import { createDockerRuntime, type DockerRuntimeOptions } from '../../../../src/adapters/sandbox-runtime/docker/index.ts';
import type { SandboxSpec } from '../../../../src/domain/sandbox-spec.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { SandboxLaunch, SandboxRuntime } from '../../../../src/ports/sandbox-runtime.ts';
import { until } from '../../../support/until.ts';
import { launchOf } from './programs.ts';

/** A deployment of its own on the real engine, and what can be seen of it without a runtime. */
export interface Engine {
  readonly docker: Docker;
  readonly deployment: string;
  readonly open: (options?: Partial<DockerRuntimeOptions>) => SandboxRuntime;
  readonly nameOf: (id: string) => string;
  readonly container: (id: string) => Docker.Container;
  /** Starts a sandbox that `clear` leaves alone, and returns it to every test. After a test has failed, it starts another. */
  readonly share: (launch: () => SandboxLaunch) => () => Promise<SandboxLaunch>;
  /** Starts a sandbox, and waits until its command has made the file `begun`. */
  readonly begun: (runtime: SandboxRuntime, command: readonly string[], changes?: Partial<SandboxSpec>) => Promise<SandboxLaunch>;
  /** A file of the sandbox, by its path; null where there is none. */
  readonly readFile: (id: string, path: string) => Promise<string | null>;
  /** Runs a command in the container, and answers with what it says. */
  readonly ask: (id: string, script: string, user?: string) => Promise<string>;
  /** Kills the sandbox's processes from inside, as far as the engine can tell: nobody asked it for that. */
  readonly crash: (id: string) => Promise<void>;
  readonly leftovers: (id: string) => Promise<readonly string[]>;
  /** Ends the runtimes, and removes whatever is on the engine of this deployment, but shared sandboxes and networks. */
  readonly clear: () => Promise<void>;
  /** Removes everything. */
  readonly close: () => Promise<void>;
}

/** Of no interest to a test, and so short that nobody waits for it. */
const quick = { stopGraceMs: 1_000, progressMs: 0, firewall: false };

export function createEngine(defaults: Partial<DockerRuntimeOptions> = {}): Engine {
  const docker = new Docker();
  const deployment = `test-${randomBytes(5).toString('hex')}`;
  const opened: SandboxRuntime[] = [];
  const shared: string[] = [];
  /** The layers of containers, by their names. */
  const layers = new Map<string, string>();
  const nameOf = (id: string): string => `skep_${deployment}_${id}`;
  const container = (id: string): Docker.Container => docker.getContainer(nameOf(id));
  const isShared = (name: string): boolean => shared.some((id) => name.includes(id));
  const ours = { label: [`skep.deployment=${deployment}`] };

  /** Where the engine keeps what the sandbox wrote, where this process may look there: much quicker than an archive. */
  async function layerOf(id: string): Promise<string | null> {
    const known = layers.get(id);
    if (isThere(known)) return known;
    const { GraphDriver } = await container(id).inspect();
    const layer = new Map(Object.entries(GraphDriver.Data)).get('UpperDir');
    if (!isThere(layer)) return null;
    layers.set(id, layer);
    return layer;
  }

  function open(options: Partial<DockerRuntimeOptions> = {}): SandboxRuntime {
    const runtime = createDockerRuntime({ deployment, ...quick, ...defaults, ...options });
    opened.push(runtime);
    return runtime;
  }

  async function clear(): Promise<void> {
    await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
    const containers = (await docker.listContainers({ all: true, filters: ours })).filter(({ Names }) => !Names.some(isShared));
    await Promise.all(containers.map(({ Id }) => docker.getContainer(Id).remove({ force: true, v: true }).catch(unlessGone)));
    const { Volumes } = await docker.listVolumes({ filters: ours });
    const volumes = Volumes.filter(({ Name }) => !isShared(Name));
    await Promise.all(volumes.map(({ Name }) => docker.getVolume(Name).remove().catch(unlessGone)));
  }

  async function readFileOf(id: string, path: string): Promise<string | null> {
    try {
      const layer = await layerOf(id);
      return layer === null ? await readArchived(container(id), path) : await readBelow(layer, path);
    } catch (error) {
      unlessGone(error);
      return null;
    }
  }

  return {
    docker,
    deployment,
    open,
    nameOf,
    container,
    async begun(runtime, command, changes) {
      const launch = launchOf(command, changes);
      await runtime.start(launch, () => {}, neverAborts);
      await until(() => readFileOf(launch.id, '/workspace/begun'), (text) => text !== null);
      return launch;
    },
    readFile: readFileOf,
    async ask(id, script, user) {
      const exec = await container(id).exec({
        Cmd: ['sh', '-c', script],
        AttachStdout: true,
        AttachStderr: true,
        Tty: true,
        ...(user !== undefined && { User: user }),
      });
      return (await text(await exec.start({ Tty: true }))).replaceAll('\r\n', '\n').trim();
    },
    async crash(id) {
      const { State } = await container(id).inspect();
      process.kill(State.Pid, 'SIGKILL');
    },
    async leftovers(id) {
      const containers = await docker.listContainers({ all: true });
      const { Volumes } = await docker.listVolumes();
      return [...containers.flatMap(({ Names }) => Names), ...Volumes.map(({ Name }) => Name)].filter((name) => name.includes(id));
    },
    share(launch) {
      let current: Promise<SandboxLaunch> | null = null;
      const start = async (): Promise<SandboxLaunch> => {
        const launched = launch();
        shared.push(launched.id);
        const { state, reason } = await open().start(launched, () => {}, neverAborts);
        assert.equal(state, 'running', JSON.stringify(reason));
        return launched;
      };
      return () => {
        onTestFailed(() => void (current = null));
        return (current ??= start());
      };
    },
    clear,
    async close() {
      shared.length = 0;
      await clear();
      const networks = await docker.listNetworks({ filters: ours });
      for (const { Id } of networks) await docker.getNetwork(Id).remove().catch(unlessGone);
    },
  };
}

function isThere(layer: string | undefined): layer is string {
  return layer !== undefined && existsSync(layer);
}

/** Links are followed as they are meant inside. */
async function readBelow(root: string, path: string): Promise<string | null> {
  const target = await readlink(`${root}${path}`).catch(() => null);
  if (target !== null) return readBelow(root, posix.resolve(posix.dirname(path), target));
  return readFile(`${root}${path}`, 'utf8').catch(() => null);
}

async function readArchived(container: Docker.Container, path: string): Promise<string | null> {
  const entries = extract();
  const archive = await container.getArchive({ path });
  archive.pipe(entries);
  for await (const entry of entries) {
    if (entry.header.type !== 'symlink') return text(entry);
    return readArchived(container, posix.resolve(posix.dirname(path), entry.header.linkname));
  }
  return null;
}

function unlessGone(error: unknown): void {
  if (!(error instanceof Error && 'statusCode' in error && error.statusCode === 404)) throw error;
}
