import type { Reason } from '../../../src/domain/reason.ts';
import type { DiskSpace } from '../../../src/domain/disk-pressure.ts';
import { Failure } from '../../../src/domain/failure.ts';
import { LocalExecution } from '../../../src/adapters/sandbox-runtime/local-execution.ts';
import { absentSandbox, type ObservedSandbox } from '../../../src/domain/sandbox.ts';
import type { SandboxSpec } from '../../../src/domain/sandbox-spec.ts';
import type { ExecutionStart } from '../../../src/ports/sandbox-executions.ts';
import type { ExecutionRequest, KeptLaunch, LogRequest, Progress, Provision, SandboxLaunch } from '../../../src/ports/sandbox-runtime.ts';
import { noCommand, runInMemory, type MemoryCommand, type OwnExecution } from './sandbox-execution.ts';
import { executionNotFound, harmlessSignals } from './sandbox-executions.ts';
import { MemoryFiles } from './sandbox-files.ts';
import { MemoryLog } from './sandbox-log.ts';

/** The abilities of a program in a sandbox in memory. */
export interface MemorySandbox {
  readonly launch: SandboxLaunch;
  /** Kept until the sandbox is removed. */
  readonly files: MemoryFiles;
  readonly isFrozen: () => boolean;
  /** Writes to its standard output. */
  readonly write: (output: string | Uint8Array) => void;
  /** Ends the program for this reason. */
  readonly end: (reason: Reason) => void;
}

/**
 * Replaces the command of a spec. Called at each start of the command. Returns a function that is called when it ends: true if it was asked
 * to, by a stop or a removal.
 */
export type MemoryProgram = (sandbox: MemorySandbox) => ((wasAsked: boolean) => void) | void;

/** Replaces the download of what a spec needs. It may take time, report progress, and refuse. */
export type MemoryProvider = (spec: SandboxSpec, progress: Progress, signal: AbortSignal) => Promise<Provision>;

interface Entry {
  readonly files: MemoryFiles;
  readonly executions: Set<OwnExecution>;
  /** The executions that have an id, until they are removed. */
  readonly kept: Map<string, { readonly attached: LocalExecution; readonly end: OwnExecution['end'] }>;
  launch: SandboxLaunch;
  state: 'running' | 'frozen' | 'stopped';
  reason: Reason | null;
  endedFromOutside: boolean;
  run: object;
  undo: ReturnType<MemoryProgram>;
  thawed: PromiseWithResolvers<void>;
  readonly removed: AbortController;
  readonly log: MemoryLog;
}

/** The host on which sandboxes of memory runtimes run. It outlives the runtimes that use it. */
export class MemoryEngine {
  /** What `provide` does. By default, nothing is missing. */
  provider: MemoryProvider = async () => ({ kind: 'provided' });
  canFreeze = true;
  /** The disk space that the runtime reports. */
  disk: DiskSpace | null = { totalBytes: 100, freeBytes: 90 };
  readonly #sandboxes = new Map<string, Entry>();
  readonly #listeners = new Set<{ readonly call: (id: string) => void }>();
  readonly #program: MemoryProgram;
  readonly #command: MemoryCommand;

  /** Default: every program runs until it is stopped, and no command can be executed. */
  constructor(program: MemoryProgram = () => {}, command: MemoryCommand = noCommand) {
    this.#program = program;
    this.#command = command;
  }

  /** Ends a sandbox's program, like a crash, and notifies the listeners. */
  crash(id: string, reason: Reason = { code: 'processes_killed' }): void {
    const entry = this.#sandboxes.get(id);
    if (entry !== undefined && entry.state !== 'stopped') this.#end(entry, reason, { unasked: true });
  }

  /** Ends a sandbox, like a person who stops it by hand, and notifies the listeners. */
  stopFromOutside(id: string, reason: Reason = { code: 'processes_killed' }): void {
    const entry = this.#sandboxes.get(id);
    if (entry !== undefined && entry.state !== 'stopped') this.#end(entry, reason, { unasked: true, endedFromOutside: true });
  }

  /** Ends all sandboxes, like a restart of the engine, and notifies the listeners. */
  restart(): void {
    for (const id of this.#sandboxes.keys()) this.stopFromOutside(id, { code: 'host_restarted' });
  }

  /** Writes to the standard output of the sandbox's program. */
  write(id: string, output: string | Uint8Array): void {
    this.#demand(id).log.write(output);
  }

  /** Returns the output of its program. Throws `sandbox_not_found`. */
  logs(id: string, request: LogRequest, signal: AbortSignal): ReadableStream<Uint8Array> {
    const entry = this.#demand(id);
    const { run } = entry;
    return entry.log.read(request, () => entry.run !== run || entry.state === 'stopped', signal);
  }

  /** Returns the text of the file. Null if there is none. */
  readFile(id: string, name: string): string | null {
    return this.#sandboxes.get(id)?.files.get(name) ?? null;
  }

  list(): ObservedSandbox[] {
    return [...this.#sandboxes.keys()].toSorted().map((id) => this.inspect(id));
  }

  inspect(id: string): ObservedSandbox {
    const entry = this.#sandboxes.get(id);
    if (entry === undefined) return absentSandbox(id);
    const { state, reason, launch, endedFromOutside } = entry;
    const ports = state === 'stopped' ? [] : launch.spec.ports;
    // A host name that can't be resolved, because nothing listens there.
    const exposedUrls = ports.map(({ name, port }) => ({ name, port, url: `http://${id}.invalid:${port}` }));
    return { id, state, exposedUrls, reason, endedFromOutside };
  }

  keptLaunch(id: string): KeptLaunch | null {
    const launch = this.#sandboxes.get(id)?.launch;
    return launch === undefined ? null : { specId: launch.spec.id, ownerId: launch.ownerId ?? null, fixedEnv: {} };
  }

  start(launch: SandboxLaunch): void {
    if (this.#sandboxes.has(launch.id)) return;
    const entry: Entry = {
      files: new MemoryFiles(launch.spec.workingDir),
      executions: new Set(),
      kept: new Map(),
      log: new MemoryLog(),
      launch,
      state: 'stopped',
      reason: null,
      endedFromOutside: false,
      run: {},
      undo: undefined,
      thawed: Promise.withResolvers(),
      removed: new AbortController(),
    };
    this.#sandboxes.set(launch.id, entry);
    this.#run(entry, launch);
  }

  freeze(id: string): void {
    const entry = this.#sandboxes.get(id);
    if (entry?.state !== 'running') return;
    entry.state = 'frozen';
    entry.thawed = Promise.withResolvers();
  }

  stop(id: string): void {
    const entry = this.#sandboxes.get(id);
    if (entry !== undefined && entry.state !== 'stopped') this.#end(entry, { code: 'processes_ended' }, {});
  }

  resume(launch: SandboxLaunch): void {
    const entry = this.#sandboxes.get(launch.id);
    if (entry?.state === 'stopped') this.#run(entry, launch);
    else if (entry?.state === 'frozen') {
      entry.state = 'running';
      entry.thawed.resolve();
    }
  }

  remove(id: string): void {
    this.stop(id);
    this.#sandboxes.get(id)?.removed.abort(new Failure('sandbox_not_found', { id }));
    this.#sandboxes.delete(id);
  }

  /** Throws `sandbox_not_found`, `sandbox_not_running`. */
  execute(id: string, request: ExecutionRequest): OwnExecution {
    const entry = this.requireRunning(id);
    const unfrozen = async (): Promise<void> => {
      while (entry.state === 'frozen') await entry.thawed.promise;
    };
    const execution = runInMemory({ launch: entry.launch, files: entry.files, command: this.#command, unfrozen }, request);
    entry.executions.add(execution);
    void execution.exited.then(() => entry.executions.delete(execution));
    return execution;
  }

  /** Throws `sandbox_not_found`, `sandbox_not_running`. */
  startExecution(id: string, request: ExecutionStart): LocalExecution {
    const { kept } = this.requireRunning(id);
    const earlier = kept.get(request.executionId);
    if (earlier !== undefined) return earlier.attached;
    const execution = this.execute(id, request);
    const attached = new LocalExecution(request, execution, null);
    kept.set(request.executionId, { attached, end: (code) => execution.end(code) });
    return attached;
  }

  /** Throws `sandbox_not_found`, `execution_not_found`. */
  execution(id: string, executionId: string): LocalExecution {
    const kept = this.#demand(id).kept.get(executionId);
    if (kept === undefined) throw executionNotFound(executionId);
    return kept.attached;
  }

  signalExecution(id: string, executionId: string, name: string, number: number): void {
    if (!harmlessSignals.has(name)) this.#demand(id).kept.get(executionId)?.end(128 + number);
  }

  async removeExecution(id: string, executionId: string): Promise<void> {
    const { kept } = this.#demand(id);
    await kept.get(executionId)?.attached.execution.kill();
    kept.delete(executionId);
  }

  /** Throws `sandbox_not_found`. */
  files = (id: string): MemoryFiles => this.#demand(id).files;

  /** Returns a signal that fires when the sandbox is removed. Throws `sandbox_not_found`. */
  removed(id: string): AbortSignal {
    return this.#demand(id).removed.signal;
  }

  subscribe(call: (id: string) => void): () => void {
    const listener = { call };
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Throws `sandbox_not_found`, `sandbox_not_running`. */
  requireRunning(id: string): Entry {
    const entry = this.#demand(id);
    if (entry.state !== 'running') throw new Failure('sandbox_not_running', { id, status: entry.state });
    return entry;
  }

  #demand(id: string): Entry {
    const entry = this.#sandboxes.get(id);
    if (entry === undefined) throw new Failure('sandbox_not_found', { id });
    return entry;
  }

  #run(entry: Entry, launch: SandboxLaunch): void {
    const run = {};
    Object.assign(entry, { launch, run, state: 'running', reason: null, endedFromOutside: false, undo: undefined });
    const undo = this.#program({
      launch,
      files: entry.files,
      isFrozen: () => entry.run === run && entry.state === 'frozen',
      write: (output) => entry.log.write(output),
      end: (reason) => {
        if (entry.run === run && entry.state !== 'stopped') this.#end(entry, reason, { unasked: true });
      },
    });
    if (entry.run === run && entry.state !== 'stopped') entry.undo = undo;
    else undo?.(false);
  }

  #end(entry: Entry, reason: Reason, how: { readonly unasked?: boolean; readonly endedFromOutside?: boolean }): void {
    const { unasked = false, endedFromOutside = false } = how;
    Object.assign(entry, { state: 'stopped', reason, endedFromOutside });
    entry.thawed.resolve();
    entry.log.runEnded();
    entry.undo?.(!unasked);
    for (const execution of entry.executions) execution.end(null);
    if (unasked) for (const listener of this.#listeners) listener.call(entry.launch.id);
  }
}
