import { absentSandbox, type ObservedSandbox } from '../../src/domain/sandbox.ts';
import type { DiskSpace } from '../../src/domain/disk-pressure.ts';
import { Failure } from '../../src/domain/failure.ts';
import { explained, type Reason } from '../../src/domain/reason.ts';
import type { SandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { type Progress, type Provision, type SandboxLaunch, type SandboxRuntime, unknownUsage } from '../../src/ports/sandbox-runtime.ts';

/** A point where the test can hold calls until it lets them pass. */
export type Gate = 'provide' | 'start' | 'ready' | 'freeze';

interface Container {
  readonly launch: SandboxLaunch;
  state: 'running' | 'frozen' | 'stopped';
  reason: Reason | null;
  endedFromOutside: boolean;
}

function unused(what: string): () => Promise<never> {
  return async () => {
    throw new Failure('runtime_unavailable', { runtime: 'scripted', reason: explained(`it has no ${what}`), retryAfterSeconds: 1 });
  };
}

/** A sandbox host that the test controls: sandboxes crash, the host restarts, and calls wait at a closed gate. */
export class ScriptedEngine {
  #containers = new Map<string, Container>();
  #elsewhere = new Map<string, Container>();
  readonly #listeners = new Set<{ readonly call: (id: string) => void }>();
  readonly #closed = new Map<Gate, { readonly opened: Promise<void>; readonly open: () => void }>();
  /** Specs whose image does not exist. */
  readonly refused = new Set<string>();
  /** Specs whose command ends as soon as it is run. */
  readonly broken = new Set<string>();
  /** The output of the commands, by sandbox. */
  readonly outputs = new Map<string, string>();
  canFreeze = true;
  /** The disk usage that the runtime reports. */
  disk: DiskSpace | null = null;
  /** While it is set, no listener is called. */
  isMute = false;
  /** Called when a container ends or disappears without a request. */
  onDeath: (id: string) => void = () => {};
  /** How many calls of each kind have begun, how many starts are in progress, and the most that were at once. */
  readonly calls = { provide: 0, start: 0, inspect: 0, list: 0 };
  starting = 0;
  mostStarting = 0;

  close(gate: Gate): void {
    if (this.#closed.has(gate)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#closed.set(gate, { opened: promise, open: resolve });
  }

  open(gate: Gate): void {
    this.#closed.get(gate)?.open();
    this.#closed.delete(gate);
  }

  isClosed(gate: Gate): boolean {
    return this.#closed.has(gate);
  }

  async pass(gate: Gate, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const closed = this.#closed.get(gate);
    if (closed === undefined) return;
    const aborted = Promise.withResolvers<never>();
    const abort = (): void => aborted.reject(signal.reason);
    signal.addEventListener('abort', abort);
    await Promise.race([closed.opened, aborted.promise]).finally(() => signal.removeEventListener('abort', abort));
  }

  crash(id: string, reason: Reason = { code: 'process_exited', exitCode: 3, signal: null, program: null }): void {
    this.#end(id, reason, false);
  }

  /** A person stops it. */
  endFromOutside(id: string, reason: Reason = { code: 'processes_killed' }): void {
    this.#end(id, reason, true);
  }

  freezeFromOutside(id: string): void {
    const container = this.#containers.get(id);
    if (container?.state !== 'running') return;
    container.state = 'frozen';
    this.#tell(id);
  }

  /** A person unfreezes it. */
  thawFromOutside(id: string): void {
    const container = this.#containers.get(id);
    if (container?.state === 'frozen') container.state = 'running';
  }

  /** A person removes it. */
  vanish(id: string): void {
    if (!this.#containers.delete(id)) return;
    this.onDeath(id);
    this.#tell(id);
  }

  /** Switches to another engine, which has none of the containers. The next call switches back to the first one. */
  switchEngine(): void {
    [this.#containers, this.#elsewhere] = [this.#elsewhere, this.#containers];
  }

  /** Restarts the engine: running and frozen containers end, and no listener is called. */
  restart(): void {
    const before = this.isMute;
    this.isMute = true;
    for (const id of this.#containers.keys()) this.#end(id, { code: 'host_restarted' }, true);
    this.isMute = before;
  }

  list(): ObservedSandbox[] {
    return [...this.#containers.keys()].toSorted().map((id) => this.inspect(id));
  }

  inspect(id: string): ObservedSandbox {
    const container = this.#containers.get(id);
    if (container === undefined) return absentSandbox(id);
    const { launch, state, reason, endedFromOutside } = container;
    const ports = state === 'stopped' ? [] : launch.spec.ports;
    const exposedUrls = ports.map(({ name, port }) => ({ name, port, url: `http://${id}.invalid:${port}` }));
    return { id, state, exposedUrls, reason, endedFromOutside };
  }

  /** Returns what the container was last run with. */
  launchOf(id: string): SandboxLaunch | undefined {
    return this.#containers.get(id)?.launch;
  }

  run(launch: SandboxLaunch): void {
    const container: Container = { launch, state: 'running', reason: null, endedFromOutside: false };
    this.#containers.set(launch.id, container);
    if (this.broken.has(launch.spec.id)) this.crash(launch.id);
  }

  /** Returns a runtime that uses this engine. */
  runtime(): SandboxRuntime {
    const canFreeze = (): boolean => this.canFreeze;
    return {
      name: 'scripted',
      ignores: ['image', 'resources', 'isolation', 'labels', 'runtimeOptions'],
      get capabilities() {
        return { freeze: canFreeze() };
      },
      provide: (spec, progress, signal) => this.#provide(spec, progress, signal),
      start: (launch, progress, signal) => this.#start(launch, progress, signal),
      freeze: async (id) => {
        await this.pass('freeze', neverAborts);
        return this.#to(id, this.canFreeze ? ['running'] : [], 'frozen');
      },
      stop: async (id) => this.#to(id, ['running', 'frozen'], 'stopped'),
      resume: async (launch, signal) => {
        signal.throwIfAborted();
        if (this.#containers.get(launch.id)?.state === 'stopped') this.run(launch);
        return this.#to(launch.id, ['frozen'], 'running');
      },
      remove: async (id) => void this.#containers.delete(id),
      inspect: async (id) => {
        this.calls.inspect += 1;
        return this.inspect(id);
      },
      list: async () => {
        this.calls.list += 1;
        return this.list();
      },
      keptLaunch: async (id) => {
        const launch = this.#containers.get(id)?.launch;
        if (launch === undefined) return null;
        const { spec, ownerId = '', sessionApiKey } = launch;
        return { specId: spec.id, ownerId: ownerId === '' ? null : ownerId, fixedEnv: { [spec.sessionKeyEnv]: sessionApiKey } };
      },
      execute: unused('execute'),
      executions: {
        start: unused('executions'),
        state: unused('executions'),
        ended: unused('executions'),
        output: unused('executions'),
        write: unused('executions'),
        signal: unused('executions'),
        resize: unused('executions'),
        remove: unused('executions'),
        open: unused('executions'),
        reopen: unused('executions'),
      },
      files: {
        stat: unused('files'),
        read: unused('files'),
        write: unused('files'),
        makeDirectory: unused('files'),
        remove: unused('files'),
        move: unused('files'),
        list: () => ReadableStream.from([]),
      },
      putFiles: unused('files'),
      getFiles: unused('files'),
      usage: async () => unknownUsage,
      diskSpace: async () => this.disk,
      logs: async (id, { tailBytes = Infinity }) => ReadableStream.from([Buffer.from(this.outputs.get(id) ?? '').subarray(-tailBytes)]),
      subscribe: (call) => {
        const listener = { call };
        this.#listeners.add(listener);
        return () => void this.#listeners.delete(listener);
      },
      check: async () => ({ ok: true, detail: 'scripted' }),
      close: async () => {},
    };
  }

  async #provide(spec: SandboxSpec, progress: Progress, signal: AbortSignal): Promise<Provision> {
    this.calls.provide += 1;
    progress({ code: 'pulling_image', image: spec.image ?? '', layers: 0, doneLayers: 0, bytes: null, doneBytes: null });
    await this.pass('provide', signal);
    return this.refused.has(spec.id) ? { kind: 'refused', reason: { code: 'image_not_found', image: spec.image ?? '', registry: 'Docker Hub' } } : { kind: 'provided' };
  }

  async #start(launch: SandboxLaunch, progress: Progress, signal: AbortSignal): Promise<ObservedSandbox> {
    this.calls.start += 1;
    this.starting += 1;
    this.mostStarting = Math.max(this.mostStarting, this.starting);
    try {
      progress({ code: 'starting_command' });
      await this.pass('start', signal);
      if (!this.#containers.has(launch.id)) this.run(launch);
      return this.inspect(launch.id);
    } finally {
      this.starting -= 1;
    }
  }

  #to(id: string, from: readonly Container['state'][], state: Container['state']): ObservedSandbox {
    const container = this.#containers.get(id);
    if (container !== undefined && from.includes(container.state)) Object.assign(container, { state, reason: null, endedFromOutside: false });
    return this.inspect(id);
  }

  #end(id: string, reason: Reason, endedFromOutside: boolean): void {
    const container = this.#containers.get(id);
    if (container === undefined || container.state === 'stopped') return;
    Object.assign(container, { state: 'stopped', reason, endedFromOutside });
    this.onDeath(id);
    this.#tell(id);
  }

  #tell(id: string): void {
    if (!this.isMute) for (const { call } of this.#listeners) call(id);
  }
}
