import type { ChildProcess } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { sentenceOfFailure } from '../../shared/status-and-error-messages.ts';
import { Failure, isFailure } from '../../../domain/failure.ts';
import { absentSandbox, type ObservedSandbox } from '../../../domain/sandbox.ts';
import type { SandboxSpec } from '../../../domain/sandbox-spec.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import type {
  Execution, ExecutionRequest, Progress, Provision, SandboxLaunch, SandboxRuntime,
} from '../../../ports/sandbox-runtime.ts';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { raceSignal } from '../../shared/timeout.ts';
import { createLayout, isSandboxId, keepLogsSmall, type Layout, Opening } from './data-folder.ts';
import { Executions } from './executions.ts';
import { FileTransfer } from './file-transfer.ts';
import { Observer } from './observed-sandbox.ts';
import { PortReservations } from './port-reservations.ts';
import { createProcTable, createPsTable, type ProcessTable } from './process-table.ts';
import { Sandboxes } from './sandboxes.ts';
import { reasons } from './status-reasons.ts';
import { unavailable, withFailures } from './system-errors.ts';
import { Watch } from './watch.ts';

export interface ProcessRuntimeOptions {
  /** Absolute path of a folder of the runtime's own, which is made if it is not there, and closed to other users. */
  readonly root: string;
  /** How long a sandbox's processes may take to end when they are asked to. Default: 5,000. */
  readonly stopGraceMs?: number;
  /** How often sandboxes that an earlier process started are polled while somebody listens. Default: 250. */
  readonly pollMs?: number;
  /** Size from which a sandbox's output is moved to an old log, in place of the one before. Default: 16 MiB. */
  readonly logLimitBytes?: number;
  /** How processes are found. Default: in `/proc` on Linux and with `ps` elsewhere. */
  readonly processTable?: ProcessTable['kind'];
}

/**
 * Runs sandboxes as process groups of this host, without isolation: for one's own machine, and programs that one trusts.
 * All state is in `root` and in the host's process table, so that nothing is lost when this process ends.
 * Throws `runtime_unavailable` on a system that has no process groups.
 */
export function createProcessRuntime(options: ProcessRuntimeOptions): SandboxRuntime {
  if (process.platform === 'win32') throw unavailable('it needs a POSIX system; use Docker on this one');
  return new ProcessRuntime(options);
}

class ProcessRuntime implements SandboxRuntime {
  readonly name = 'process';
  readonly ignores = ['image', 'resources', 'isolation', 'labels', 'runtimeOptions'] as const;
  readonly #layout: Layout;
  readonly #table: ProcessTable;
  readonly #opening: Opening;
  readonly #observer: Observer;
  readonly #sandboxes: Sandboxes;
  readonly #executions: Executions;
  readonly #files: FileTransfer;
  readonly #watch: Watch;
  readonly #stopCuttingLogs: () => void;
  /** The steps of one sandbox are done one after another. */
  readonly #mutex = new KeyedMutex();
  readonly #removals = new Set<string>();

  constructor({ root, stopGraceMs = 5_000, pollMs = 250, logLimitBytes = 16 << 20, processTable }: ProcessRuntimeOptions) {
    const kind = processTable ?? (process.platform === 'linux' ? 'proc' : 'ps');
    const table = kind === 'proc' ? createProcTable() : createPsTable();
    const layout = createLayout(root);
    const ports = new PortReservations(layout.ports);
    const observer = new Observer(layout, table);
    const onOwnLeader = (id: string, leader: ChildProcess): void => this.#watch.addOwn(id, leader);
    this.#layout = layout;
    this.#table = table;
    this.#observer = observer;
    this.#opening = new Opening(layout, table, ports);
    this.#stopCuttingLogs = keepLogsSmall(layout, logLimitBytes);
    this.#files = new FileTransfer(layout, observer);
    this.#executions = new Executions(layout, table, observer);
    this.#watch = new Watch(observer, pollMs, (id) => this.#mutex.inTurn(id, () => this.#clearUp(id)));
    this.#sandboxes = new Sandboxes({ layout, table, ports, logLimitBytes, observer, stopGraceMs, onOwnLeader });
  }

  async provide(_spec: SandboxSpec, _progress: Progress, signal: AbortSignal): Promise<Provision> {
    signal.throwIfAborted();
    return { kind: 'provided' };
  }

  start(launch: SandboxLaunch, progress: Progress, signal: AbortSignal): Promise<ObservedSandbox> {
    return this.#change(launch.id, () => this.#sandboxes.start(launch, progress), signal);
  }

  freeze(id: string): Promise<ObservedSandbox> {
    return this.#change(id, () => this.#sandboxes.freeze(id));
  }

  stop(id: string): Promise<ObservedSandbox> {
    return this.#change(id, () => this.#sandboxes.stop(id, () => this.#removals.has(id)));
  }

  resume(launch: SandboxLaunch, signal: AbortSignal): Promise<ObservedSandbox> {
    return this.#change(launch.id, () => this.#sandboxes.resume(launch), signal);
  }

  async remove(id: string): Promise<void> {
    // A removal does not wait for the grace of a stop that is under way.
    this.#removals.add(id);
    await this.#files.end(new Failure('sandbox_not_found', { id }), id);
    await this.#change(id, () => this.#sandboxes.remove(id)).finally(() => this.#removals.delete(id));
  }

  inspect(id: string): Promise<ObservedSandbox> {
    return this.#opened(async () => (isSandboxId(id) ? (await this.#observer.observe(id)).observed : absentSandbox(id)));
  }

  list(): Promise<readonly ObservedSandbox[]> {
    return this.#opened(async () => (await this.#observer.list()).map(({ observed }) => observed));
  }

  execute(id: string, request: ExecutionRequest, signal: AbortSignal): Promise<Execution> {
    const begun = this.#within(id, () => this.#mutex.inTurn(id, () => this.#executions.execute(id, request, signal)));
    return raceSignal(begun, signal);
  }

  putFiles(id: string, directory: string, archive: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void> {
    return this.#within(id, () => this.#files.putFiles(id, directory, archive, signal));
  }

  getFiles(id: string, path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return this.#within(id, () => this.#files.getFiles(id, path, signal));
  }

  subscribe(listener: (id: string) => void): () => void {
    return this.#watch.subscribe(listener);
  }

  async check(): Promise<CheckResult> {
    try {
      await this.#opened(async () => {
        await access(this.#layout.root, constants.W_OK);
        await access('/bin/sh', constants.X_OK);
      });
      const isReadable = (await this.#table.find(process.pid)) !== null;
      if (!isReadable) return { ok: false, detail: `this host's processes can't be read with ${this.#table.kind}` };
      return { ok: true, detail: 'sandboxes are process groups of this host, without isolation' };
    } catch (error) {
      return { ok: false, detail: isFailure(error) ? sentenceOfFailure(error) : "this host's processes can't be read" };
    }
  }

  async close(): Promise<void> {
    this.#watch.close();
    this.#stopCuttingLogs();
    await this.#executions.close();
    await this.#files.end(unavailable({ code: 'closed' }));
    // A step whose caller has left is finished, not left half done.
    await this.#mutex.settled();
    await this.#opening.close();
  }

  async #clearUp(id: string): Promise<void> {
    await this.#sandboxes.clearUp(id);
    await this.#executions.endWithout(id);
  }

  /** Runs the step after earlier ones of the sandbox, and returns the state afterwards. */
  async #change(id: string, step: () => Promise<void>, signal?: AbortSignal): Promise<ObservedSandbox> {
    if (!isSandboxId(id)) return absentSandbox(id, reasons.invalidId);
    const done = this.#opened(() =>
      this.#mutex.inTurn(id, async () => {
        signal?.throwIfAborted();
        await step();
        const sighting = await this.#observer.observe(id);
        this.#watch.seen(sighting);
        return sighting.observed;
      }),
    );
    return signal === undefined ? done : raceSignal(done, signal);
  }

  async #within<T>(id: string, work: () => Promise<T>): Promise<T> {
    if (!isSandboxId(id)) throw new Failure('sandbox_not_found', { id });
    return this.#opened(work);
  }

  /** Runs the work when the data folder is ready, and gives system errors the form that callers know. */
  #opened<T>(work: () => Promise<T>): Promise<T> {
    return withFailures(async () => {
      await this.#opening.done();
      return work();
    });
  }
}
