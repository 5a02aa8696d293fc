import type Docker from 'dockerode';
import pLimit from 'p-limit';
import { z } from 'zod';
import { explained, type Reason } from '../../../domain/reason.ts';
import { absentSandbox, type ObservedSandbox, type ObservedState } from '../../../domain/sandbox.ts';
import { type SandboxUsage, unknownUsage } from '../../../ports/sandbox-runtime.ts';
import { parseJson } from '../../shared/json.ts';
import { dial, type Engine, reasonOfStartError, unlessMissing, withSignal } from './engine.ts';
import { endCause, type RunEvents } from './exit-causes.ts';
import { containerName, isOwn, labels } from './labels.ts';
import type { SandboxWatch } from './sandbox-watch.ts';
import { signalName } from '../signal-numbers.ts';

const inspectionsAtOnce = 8;

const foreignContainer = explained(
  'the engine has a container of its name that is not of this deployment; remove or rename that container',
);

const Ports = z.array(z.object({ name: z.string(), port: z.number() }));

const Sized = z.object({ SizeRw: z.number().nullish() });
const DiskUsage = z.object({
  Volumes: z.array(z.object({
    Labels: z.record(z.string(), z.string()).nullish(),
    UsageData: z.object({ Size: z.number() }).nullish(),
  })).nullish(),
});

/** Reads the state of sandboxes from the engine's reports about their containers. */
export class Observer {
  readonly #engine: Engine;
  readonly #runEvents: RunEvents;
  readonly #watch: SandboxWatch;
  readonly #urlHost: string;

  constructor(engine: Engine, runEvents: RunEvents, watch: SandboxWatch, urlHost: string) {
    this.#engine = engine;
    this.#runEvents = runEvents;
    this.#watch = watch;
    this.#urlHost = urlHost.includes(':') ? `[${urlHost}]` : urlHost;
  }

  async inspect(id: string): Promise<ObservedSandbox> {
    const found = await this.#engine.findByName(id);
    if (found !== null && !isOwn(found, this.#engine.deployment, id)) return absentSandbox(id, foreignContainer);
    return this.observe(id, found);
  }

  async observe(id: string, found: Docker.ContainerInspectInfo | null): Promise<ObservedSandbox> {
    if (found === null) return absentSandbox(id);
    const reported = stateOf(found.State);
    const state = reported === 'frozen' && this.#watch.mayRepeatPause(id) ? 'running' : reported;
    if (state === 'stopped') return await this.#stopped(id, found);
    const bound = state === 'created' ? {} : (found.NetworkSettings.Ports ?? {});
    const ports = parseJson(Ports, found.Config.Labels[labels.ports] ?? '[]') ?? [];
    const exposedUrls = ports.flatMap(({ name, port }) => {
      const [binding] = bound[`${port}/tcp`] ?? [];
      return binding === undefined ? [] : [{ name, url: `http://${this.#urlHost}:${binding.HostPort}`, port }];
    });
    return { id, state, exposedUrls, reason: null, endedFromOutside: false };
  }

  /** Returns every sandbox of the deployment, in the order of their ids. */
  async list(): Promise<ObservedSandbox[]> {
    const limit = pLimit(inspectionsAtOnce);
    const listed = await listContainers(this.#engine);
    const found = await Promise.all(listed.map(({ Labels }) => limit(() => this.inspect(Labels[labels.sandbox] ?? ''))));
    return found.filter(({ state }) => state !== 'absent').toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  async usage(id: string): Promise<SandboxUsage> {
    const { docker, call, find, closed } = this.#engine;
    const found = await find(id);
    if (found === null) return unknownUsage;
    const container = docker.getContainer(found.Id);
    const running = found.State.Running ? await unlessMissing(call(() => container.stats({ stream: false }))) : null;
    const stats: Partial<Docker.ContainerStats> = running ?? {};
    const sized = await unlessMissing(call(() => container.inspect(withSignal({ size: true }, closed))));
    // The statistics take a second or two, so the container can be removed meanwhile.
    if (sized === null) return unknownUsage;
    const { SizeRw } = Sized.parse(sized);
    const inVolumes = found.HostConfig.ReadonlyRootfs === true ? await this.#volumeBytes(id) : 0;
    // An engine leaves out what its machine does not report.
    const { cpu_stats: cpu, precpu_stats: earlier, memory_stats: memory, pids_stats: processes } = stats;
    const limit = found.HostConfig.Memory ?? 0;
    const { inactive_file: cacheV2, total_inactive_file: cacheV1 }: Partial<Docker.MemoryStats['stats']> = memory?.stats ?? {};
    return {
      cpuMs: cpu === undefined ? null : Math.round(cpu.cpu_usage.total_usage / 1e6),
      cpuPercent: percentOf(cpu, earlier),
      // Without the file cache that the kernel can free.
      memoryBytes: memory?.usage === undefined ? null : memory.usage - (cacheV2 ?? cacheV1 ?? 0),
      memoryLimitBytes: limit > 0 ? limit : null,
      diskBytes: (SizeRw ?? 0) + inVolumes,
      pids: processes?.current ?? null,
    };
  }

  async #volumeBytes(id: string): Promise<number> {
    const { docker, call, closed } = this.#engine;
    // Only volumes: an engine also measures all containers, images and its build cache. One that does not know the type does so anyway.
    const request = { path: '/system/df?', options: { type: 'volume' }, method: 'GET', statusCodes: { 200: true, 500: 'server error' } };
    const usage = await call((abortSignal) => dial(docker, withSignal(request, abortSignal)), { signal: closed });
    const { Volumes } = DiskUsage.parse(usage);
    const own = (Volumes ?? []).filter(({ Labels }) => Labels?.[labels.partOf] === id);
    return own.reduce((bytes, { UsageData }) => bytes + Math.max(0, UsageData?.Size ?? 0), 0);
  }

  async #stopped(id: string, found: Docker.ContainerInspectInfo): Promise<ObservedSandbox> {
    const { Status, Error: error, ExitCode } = found.State;
    const stopped = (reason: Reason, endedFromOutside = false): ObservedSandbox =>
      ({ id, state: 'stopped', exposedUrls: [], reason, endedFromOutside });
    if (couldNotStart(found.State)) return stopped(reasonOfStartError(error));
    // Skep requests a removal only after the sandbox is deleted, so this one came from outside.
    if (Status === 'removing' || Status === 'dead') return stopped({ code: 'being_removed' }, true);
    const exit = { exitCode: ExitCode, signal: signalName(ExitCode - 128) };
    const cause = await endCause(this.#engine, this.#runEvents, found);
    if (cause === 'out_of_memory') return stopped({ code: cause, ...exit });
    return stopped({ code: 'process_exited', ...exit, program: found.Path }, cause === 'outside');
  }
}

const states: Readonly<Record<string, ObservedState>> = {
  created: 'created', running: 'running', restarting: 'running', paused: 'frozen',
};

interface EngineState {
  readonly Status: string;
  readonly Error?: string;
}

/** For Skep, a container that could not start is `stopped`. The engine keeps its status `created`, with an error. */
export function stateOf(state: EngineState): ObservedState {
  return couldNotStart(state) ? 'stopped' : (states[state.Status] ?? 'stopped');
}

function couldNotStart({ Status, Error: error = '' }: EngineState): boolean {
  return Status === 'created' && error !== '';
}

/** Returns the CPU use between two measurements of the engine, a second apart. 100 is one whole CPU. */
function percentOf(now: Docker.CPUStats | undefined, earlier: Docker.CPUStats | undefined): number | null {
  const passed = (now?.system_cpu_usage ?? 0) - (earlier?.system_cpu_usage ?? 0);
  if (now === undefined || earlier?.system_cpu_usage === undefined || passed <= 0) return null;
  const used = now.cpu_usage.total_usage - earlier.cpu_usage.total_usage;
  return Math.round((used / passed) * (now.online_cpus ?? 1) * 10_000) / 100;
}

/** Returns the containers of the deployment's sandboxes. A container made from a copy of one has the same labels, but another name. */
export async function listContainers({ docker, deployment, call }: Engine): Promise<Docker.ContainerInfo[]> {
  const filters = { label: [`${labels.deployment}=${deployment}`] };
  const found = await call((abortSignal) => docker.listContainers({ all: true, filters, abortSignal }));
  return found.filter(({ Names, Labels }) => Names.includes(`/${containerName(deployment, Labels[labels.sandbox] ?? '')}`));
}
