import { access, constants } from 'node:fs/promises';
import { Failure, isFailure } from '../../../domain/failure.ts';
import { absentSandbox, type ObservedSandbox } from '../../../domain/sandbox.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import type { SandboxRuntime } from '../../../ports/sandbox-runtime.ts';
import { createKeyedMutex } from '../../shared/keyed-mutex.ts';
import { raceSignal } from '../../shared/timeout.ts';
import type { Environment } from './command.ts';
import { createLayout, createOpening, isSandboxId, keepLogsSmall, type Opening } from './data-folder.ts';
import { createExecutions } from './executions.ts';
import { createFiles } from './file-transfer.ts';
import { createReader } from './observed-sandbox.ts';
import { createPortReservations } from './port-reservations.ts';
import { createProcTable, createPsTable, type ProcessTable } from './process-table.ts';
import { createActions } from './sandboxes.ts';
import { unavailable, withFailures } from './system-errors.ts';
import { createWatch } from './watch.ts';

export interface ProcessRuntimeOptions {
  /** Absolute path of a folder of the runtime's own, which is made if it is not there, and closed to other users. */
  readonly root: string;
  /** How long a sandbox's processes may take to end when they are asked to. */
  readonly stopGraceMs?: number;
  /** How often sandboxes that an earlier process started are looked at while somebody listens. */
  readonly pollMs?: number;
  /** Size from which a sandbox's output is moved to an old log, in place of the one before. */
  readonly logLimitBytes?: number;
  /** The environment of which a few harmless variables are passed on; this process's own unless it is said. */
  readonly env?: Environment;
  /** How processes are found: in `/proc` on Linux and with `ps` elsewhere, unless it is said. */
  readonly processTable?: ProcessTable['kind'];
}

/**
 * Runs sandboxes as process groups of this host, without isolation: for one's own machine, and programs that one trusts.
 * All that it knows is in `root` and in the host's process table, so that nothing is lost when this process ends.
 * Throws `runtime_unavailable` on a system that has no process groups.
 */
export function createProcessRuntime(options: ProcessRuntimeOptions): SandboxRuntime {
  if (process.platform === 'win32') throw unavailable('it needs a POSIX system; use Docker on this one');
  const { root, stopGraceMs = 5_000, pollMs = 250, logLimitBytes = 16 << 20, env = process.env } = options;
  const kind = options.processTable ?? (process.platform === 'linux' ? 'proc' : 'ps');
  const table = kind === 'proc' ? createProcTable() : createPsTable();
  const layout = createLayout(root);
  const ports = createPortReservations(layout.ports);
  const opening = createOpening(layout, table, ports);
  const reader = createReader(layout, table);
  const { inTurn, settled } = createKeyedMutex();
  const removals = new Set<string>();
  const stopCutting = keepLogsSmall(layout, logLimitBytes);

  const files = createFiles(layout, reader);
  const executions = createExecutions({ layout, table, reader, env, inTurn });

  const clearUp = async (id: string): Promise<void> => {
    await actions.clearUp(id);
    await executions.endWithout(id);
  };
  const watch = createWatch({ ...reader, pollMs, clearUp: (id) => inTurn(id, () => clearUp(id)) });
  const actions = createActions({ layout, table, ports, env, logLimitBytes, reader, stopGraceMs, own: watch.own });

  /** Does it when earlier calls for the sandbox are over, and answers with the fact that holds then. */
  const act = async (id: string, action: () => Promise<void>, signal?: AbortSignal): Promise<ObservedSandbox> => {
    if (!isSandboxId(id)) return absentSandbox(id, 'its id is not a DNS label');
    const done = withFailures(async () => {
      await opening.done();
      return inTurn(id, async () => {
        signal?.throwIfAborted();
        await action();
        const sighting = await reader.read(id);
        watch.adopt(sighting);
        return sighting.fact;
      });
    });
    return signal === undefined ? done : raceSignal(done, signal);
  };

  /** Works in a sandbox that there may be. */
  const within = async <T>(id: string, work: () => Promise<T>): Promise<T> => {
    if (!isSandboxId(id)) throw new Failure('sandbox_not_found', { id });
    return withFailures(async () => {
      await opening.done();
      return work();
    });
  };

  return {
    name: 'process',
    provide: async (_spec, _progress, signal) => {
      signal.throwIfAborted();
      return { kind: 'provided' };
    },
    start: (launch, progress, signal) => act(launch.id, () => actions.start(launch, progress), signal),
    freeze: (id) => act(id, () => actions.freeze(id)),
    stop: (id) => act(id, () => actions.stop(id, () => removals.has(id))),
    resume: (launch, signal) => act(launch.id, () => actions.resume(launch), signal),
    async remove(id) {
      // A stop under way does not make a removal wait for its grace.
      removals.add(id);
      await files.leave(id);
      await act(id, () => actions.remove(id)).finally(() => removals.delete(id));
    },
    inspect: (id) =>
      withFailures(async () => {
        if (!isSandboxId(id)) return absentSandbox(id);
        await opening.done();
        return (await reader.read(id)).fact;
      }),
    list: () =>
      withFailures(async () => {
        await opening.done();
        return (await reader.readAll()).map(({ fact }) => fact);
      }),
    execute: (id, request, signal) => raceSignal(within(id, () => executions.execute(id, request, signal)), signal),
    putFiles: (id, directory, archive, signal) => within(id, () => files.putFiles(id, directory, archive, signal)),
    getFiles: (id, path, signal) => within(id, () => files.getFiles(id, path, signal)),
    subscribe: watch.subscribe,
    check: () => checkHost(opening, table, root),
    async close() {
      watch.close();
      stopCutting();
      await executions.close();
      await files.close();
      // Whoever asked may have left; what goes on for them is not left half done.
      await settled();
      await opening.close();
    },
  };
}

/** Whether this host can run sandboxes, in a line for a person. */
async function checkHost(opening: Opening, table: ProcessTable, root: string): Promise<CheckResult> {
  try {
    await withFailures(async () => {
      await opening.done();
      await access(root, constants.W_OK);
      await access('/bin/sh', constants.X_OK);
    });
    if ((await table.find(process.pid)) === null) return { ok: false, detail: `this host's processes can't be read with ${table.kind}` };
    return { ok: true, detail: 'sandboxes are process groups of this host, without isolation' };
  } catch (error) {
    return { ok: false, detail: isFailure(error) ? error.message : "this host's processes can't be read" };
  }
}
