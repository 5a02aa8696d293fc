import { access, constants } from 'node:fs/promises';
import { diskSpaceOf } from '../../shared/disk-space.ts';
import { sentenceOfFailure } from '../../shared/failure-sentences.ts';
import { dnsLabel } from '../../../domain/dns-label.ts';
import { sigkillExitCode } from '../../../domain/execution.ts';
import { Failure, isFailure, isFailureOf } from '../../../domain/failure.ts';
import { absentSandbox, type ObservedSandbox } from '../../../domain/sandbox.ts';
import { raceSignal } from '../../../ports/abort-signals.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import { type Progress, type SandboxLaunch, type SandboxRuntime, unknownUsage } from '../../../ports/sandbox-runtime.ts';
import { DurableExecutions } from '../durable-executions.ts';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { createLazy } from '../../shared/single-flight.ts';
import {
  createLayout, discardSandbox, endDiscarded, type Layout, makeSandbox, openRoot, removeDiscarded, sizeOfFiles,
} from './data-folder.ts';
import { ProcessExecutionHost } from './execution-host.ts';
import { FileTransfer } from './file-transfer.ts';
import { ProcessFiles } from './files.ts';
import { addNote, keptLaunch, type LaunchRecord, removeFreezeNote, readExit } from './launch-records.ts';
import { runLaunch } from './launches.ts';
import { Observer } from './observed-sandbox.ts';
import { PortReservations } from './port-reservations.ts';
import { endAll, findLeader, freezeAll, killAll, thawAll } from './process-groups.ts';
import { createProcTable, createPsTable, type ProcessTable } from './process-table.ts';
import { SandboxLogs } from './sandbox-logs.ts';
import { unavailable, withFailures } from './runtime-failures.ts';
import { SandboxWatch } from './sandbox-watch.ts';

export interface ProcessRuntimeOptions {
  /** The absolute path of the runtime's own folder. Created if it does not exist, and closed to other users. */
  readonly root: string;
  /** How long a sandbox's processes may take to end after SIGTERM, in milliseconds. Default: 5,000. */
  readonly stopGraceMs?: number;
  /** The interval for polling sandboxes that an earlier process started, while somebody listens, in milliseconds. Default: 250. */
  readonly pollMs?: number;
  /** The size at which a sandbox's output becomes the old log and replaces the previous one. Default: 16 MiB. */
  readonly logLimitBytes?: number;
  /** How processes are found. Default: in `/proc` on Linux and with `ps` elsewhere. */
  readonly processTable?: ProcessTable['kind'];
}

/**
 * Runs sandboxes as process groups of this host, without isolation: only for your own machine and trusted programs. All state is in `root`
 * and in the host's process table, so nothing is lost when this process ends. Throws `runtime_unavailable` on a system without process
 * groups.
 */
export function createProcessRuntime(options: ProcessRuntimeOptions): SandboxRuntime & { settled(): Promise<void> } {
  if (process.platform === 'win32') throw unavailable('it needs a POSIX system; use Docker on this one');
  return new ProcessRuntime(options);
}

/**
 * Runs sandboxes as process groups of this host. The steps of one sandbox run one after another. Each step reads the state and does what is
 * left to do, so it can be repeated after an interruption at any point.
 */
class ProcessRuntime implements SandboxRuntime {
  readonly name = 'process';
  readonly ignores = ['image', 'resources', 'isolation', 'labels', 'runtimeOptions'] as const;
  readonly capabilities = { freeze: true };
  readonly #options: Required<ProcessRuntimeOptions>;
  readonly #layout: Layout;
  readonly #table: ProcessTable;
  readonly #ports: PortReservations;
  readonly #observer: Observer;
  readonly #executionHost: ProcessExecutionHost;
  readonly #transfer: FileTransfer;
  readonly #watch: SandboxWatch;
  readonly #logs: SandboxLogs;
  readonly #mutex = new KeyedMutex();
  readonly executions: DurableExecutions;
  readonly files = new ProcessFiles((id, signal) => this.#withOpenRoot(() => this.#transfer.enter(id, signal)));
  readonly #removals = new Set<string>();
  readonly #root = createLazy(() => openRoot(this.#layout, this.#table, this.#ports));

  constructor(options: ProcessRuntimeOptions) {
    const processTable = process.platform === 'linux' ? 'proc' : 'ps';
    this.#options = { stopGraceMs: 5_000, pollMs: 250, logLimitBytes: 16 << 20, processTable, ...options };
    this.#layout = createLayout(options.root);
    this.#table = this.#options.processTable === 'proc' ? createProcTable() : createPsTable();
    this.#ports = new PortReservations(this.#layout.ports);
    this.#observer = new Observer(this.#layout, this.#table);
    this.#executionHost = new ProcessExecutionHost(this.#observer, (id, task) =>
      this.#withOpenRoot(() => this.#mutex.runExclusive(id, task)));
    this.executions = new DurableExecutions(this.#executionHost);
    this.#transfer = new FileTransfer(this.#observer);
    this.#logs = new SandboxLogs(this.#observer, this.#options.logLimitBytes);
    this.#watch = new SandboxWatch(this.#observer, this.#options.pollMs, (id) => this.#mutex.runExclusive(id, async () => {
      await this.#killLeftovers(id);
      await this.#executionHost.killOrphans(id);
    }));
  }

  readonly provide: SandboxRuntime['provide'] = async (_spec, _progress, signal) => {
    signal.throwIfAborted();
    return { kind: 'provided' };
  };

  start(launch: SandboxLaunch, progress: Progress, signal: AbortSignal): Promise<ObservedSandbox> {
    return this.#change(launch.id, async () => {
      await makeSandbox(this.#layout, launch.id);
      const { observed, record } = await this.#observer.observe(launch.id);
      if (observed.state === 'created') await this.#run(launch, record, progress);
    }, signal);
  }

  freeze(id: string): Promise<ObservedSandbox> {
    return this.#change(id, async () => {
      const { live, observed } = await this.#observer.observe(id);
      if (live === null || observed.state === 'frozen') return;
      await addNote(live, 'freezing');
      try {
        await freezeAll(this.#table, live.claim);
      } catch (error) {
        if (!isFailureOf(error, 'runtime_timeout')) throw error;
        await thawAll(this.#table, live.claim);
        await removeFreezeNote(live);
        throw unavailable({ code: 'freeze_refused' }, error);
      }
      await removeFreezeNote(live);
    });
  }

  stop(id: string): Promise<ObservedSandbox> {
    return this.#change(id, async () => {
      const { live } = await this.#observer.observe(id);
      if (live === null) return;
      const isKilled = await endAll(this.#table, live.claim, this.#options.stopGraceMs, () => this.#removals.has(id));
      if (isKilled) await addNote(live, 'exit', `${sigkillExitCode}\n`);
      await addNote(live, 'gone');
    });
  }

  resume(launch: SandboxLaunch, signal: AbortSignal): Promise<ObservedSandbox> {
    return this.#change(launch.id, async () => {
      await this.#killLeftovers(launch.id);
      const { live, observed, record } = await this.#observer.observe(launch.id);
      if (observed.state === 'stopped') await this.#run(launch, record, () => {});
      if (live === null || (observed.state !== 'frozen' && !live.isFreezing)) return;
      await thawAll(this.#table, live.claim);
      await removeFreezeNote(live);
    }, signal);
  }

  async remove(id: string): Promise<void> {
    // A removal does not wait for the grace period of a running stop.
    this.#removals.add(id);
    await this.#transfer.end(new Failure('sandbox_not_found', { id }), id);
    await this.#change(id, async () => {
      await discardSandbox(this.#layout, id);
      const folders = await endDiscarded(this.#layout, this.#table, id);
      await this.#ports.release((owner) => owner === id);
      await removeDiscarded(folders);
    }).finally(() => this.#removals.delete(id));
    this.executions.forget(id);
  }

  readonly inspect: SandboxRuntime['inspect'] = (id) => this.#withOpenRoot(async () => (await this.#observer.observe(id)).observed);

  readonly list: SandboxRuntime['list'] = () =>
    this.#withOpenRoot(async () => (await this.#observer.list()).map(({ observed }) => observed));

  readonly keptLaunch: SandboxRuntime['keptLaunch'] = (id) =>
    this.#withOpenRoot(async () => keptLaunch((await this.#observer.observe(id)).record));

  readonly execute: SandboxRuntime['execute'] = (id, request, signal) => this.#executionHost.execute(id, request, signal);

  readonly putFiles: SandboxRuntime['putFiles'] = (...args) => this.#withOpenRoot(() => this.#transfer.putFiles(...args));

  readonly getFiles: SandboxRuntime['getFiles'] = (...args) => this.#withOpenRoot(() => this.#transfer.getFiles(...args));

  readonly logs: SandboxRuntime['logs'] = (id, request, signal) =>
    this.#withOpenRoot(() => this.#logs.read(id, request, this.#watch, signal));

  readonly usage: SandboxRuntime['usage'] = async (id) =>
    ({ ...unknownUsage, diskBytes: await withFailures(() => sizeOfFiles(this.#layout, id)) });

  readonly diskSpace: SandboxRuntime['diskSpace'] = () => this.#withOpenRoot(() => diskSpaceOf(this.#layout.root));

  readonly subscribe: SandboxRuntime['subscribe'] = (listener) => this.#watch.subscribe(listener);

  async check(): Promise<CheckResult> {
    try {
      await this.#withOpenRoot(() => Promise.all([access(this.#layout.root, constants.W_OK), access('/bin/sh', constants.X_OK)]));
      const canRead = (await this.#table.find(process.pid)) !== null;
      if (canRead) return { ok: true, detail: 'sandboxes are process groups of this host, without isolation' };
      return { ok: false, detail: `this host's processes can't be read with ${this.#table.kind}` };
    } catch (error) {
      return { ok: false, detail: isFailure(error) ? sentenceOfFailure(error) : "this host's processes can't be read" };
    }
  }

  /** Resolves when no step is running. Steps whose caller has left count too. */
  async settled(): Promise<void> {
    await this.#root.made();
    await this.#mutex.settled();
  }

  async close(): Promise<void> {
    this.#watch.close();
    this.#logs.close();
    await this.#executionHost.close();
    await this.#transfer.end(unavailable({ code: 'closed' }));
    // A step whose caller has left still runs to its end.
    await this.#mutex.settled();
    await (await this.#root.made())?.removal;
  }

  /** Kills the processes that a command left behind when it ended. */
  async #killLeftovers(id: string): Promise<void> {
    const { live } = await this.#observer.observe(id);
    if (live === null || (await readExit(live)) === null) return;
    // The leader writes down the exit status, and then kills the group and itself.
    if ((await findLeader(this.#table, live.claim.leader)) !== null) return;
    await killAll(this.#table, live.claim);
    await addNote(live, 'gone');
  }

  async #run(launch: SandboxLaunch, record: LaunchRecord | null, progress: Progress): Promise<void> {
    const host = { ...this.#options, layout: this.#layout, table: this.#table, ports: this.#ports, logs: this.#logs };
    const leader = record && (await runLaunch(host, launch, record, progress));
    if (leader) this.#watch.addChild(launch.id, leader);
  }

  /** Runs the step after earlier ones of the sandbox. Returns the state afterwards. */
  async #change(id: string, step: () => Promise<void>, signal?: AbortSignal): Promise<ObservedSandbox> {
    if (!dnsLabel.test(id)) return absentSandbox(id, { code: 'invalid_id' });
    const done = this.#withOpenRoot(() =>
      this.#mutex.runExclusive(id, async () => {
        signal?.throwIfAborted();
        await step();
        const sighting = await this.#observer.observe(id);
        this.#watch.note(sighting);
        this.#logs.changed(id);
        return sighting.observed;
      }),
    );
    return signal === undefined ? done : raceSignal(done, signal);
  }

  /** Runs the work when the data folder is ready. If that failed before, tries again. Turns system errors into failures. */
  #withOpenRoot<T>(work: () => Promise<T>): Promise<T> {
    return withFailures(async () => {
      await this.#root();
      return work();
    });
  }
}
