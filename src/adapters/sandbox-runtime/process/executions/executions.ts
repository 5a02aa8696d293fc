import { randomUUID } from 'node:crypto';
import { Failure } from '../../../../domain/failure.ts';
import type { Execution, ExecutionRequest } from '../../../../ports/sandbox-runtime.ts';
import type { KeyedMutex } from '../../../shared/keyed-mutex.ts';
import { refusedExecution, whyUnrunnable } from '../../refused-execution.ts';
import { sandboxPath } from '../../sandbox-path.ts';
import { type Environment, passedEnvironment } from '../environment.ts';
import { unavailable } from '../file-errors.ts';
import { hostPath } from '../files/place.ts';
import type { Layout } from '../layout.ts';
import { findLeader } from '../members.ts';
import type { ProcessTable } from '../process-table.ts';
import type { LiveLaunch, Reader } from '../reader.ts';
import { createExecution, executionVariable } from './execution.ts';
import { spawnCommand } from './spawn-command.ts';

export interface ExecutionOptions {
  readonly layout: Layout;
  readonly table: ProcessTable;
  readonly reader: Reader;
  readonly env: Environment;
  readonly inTurn: KeyedMutex['inTurn'];
}

export interface Executions {
  execute(id: string, request: ExecutionRequest, signal: AbortSignal): Promise<Execution>;
  /** Ends those of a sandbox whose own command is gone: they don't keep it running. */
  endWithout(id: string): Promise<void>;
  close(): Promise<void>;
}

/** Runs commands beside those of sandboxes, as processes that count as theirs: what is done with a sandbox is done with them. */
export function createExecutions({ layout, table, reader, env, inTurn }: ExecutionOptions): Executions {
  const own = new Map<Execution, string>();
  let closed = false;

  /** The launch that runs, and its environment. Throws where none does. */
  async function running(id: string): Promise<{ readonly live: LiveLaunch; readonly environment: Readonly<Record<string, string>> }> {
    const { live, fact } = await reader.read(id);
    if (fact.state === 'absent') throw new Failure('sandbox_not_found', { id });
    if (live === null || fact.state !== 'running' || live.freezing) throw new Failure('sandbox_not_running', { id, status: fact.state });
    const leader = await findLeader(table, live.claim.leader);
    const environment = leader === null ? null : await table.environment(leader);
    if (environment === null) throw new Failure('sandbox_not_running', { id, status: 'without its own command' });
    return { live, environment };
  }

  async function begin(id: string, request: ExecutionRequest, signal: AbortSignal): Promise<Execution> {
    const { live, environment } = await running(id);
    const { plan } = live.claim;
    const { workspace } = layout.sandbox(id);
    const workingDir = request.workingDir === undefined ? null : sandboxPath(request.workingDir, 'workingDir');
    const unrunnable = whyUnrunnable(request);
    if (unrunnable !== null) return refusedExecution(126, unrunnable);
    signal.throwIfAborted();
    const mark = randomUUID();
    const { SKEP_WORKSPACE = '', SKEP_SANDBOX_ID = '', SKEP_SANDBOX_MARK = '' } = environment;
    const cwd = workingDir === null ? workspace : hostPath(workingDir, { folder: workspace, workingDir: plan.workingDir });
    const child = await spawnCommand(request, cwd, {
      ...environment,
      // The leader itself looks for its tools elsewhere.
      PATH: plan.path ?? passedEnvironment(env).PATH,
      ...request.env,
      SKEP_WORKSPACE,
      SKEP_SANDBOX_ID,
      SKEP_SANDBOX_MARK,
      [executionVariable]: mark,
    });
    if ('reason' in child) return refusedExecution(child.code, child.reason);
    const execution = await createExecution(table, { child, mark, cwd });
    own.set(execution, id);
    void execution.exited.then(() => own.delete(execution));
    try {
      // What was done with the sandbox before the command was there was not done with the command.
      if ((await running(id)).live.number !== live.number) throw new Failure('sandbox_not_running', { id, status: 'started anew' });
      signal.throwIfAborted();
      if (closed) throw unavailable('it is closed');
    } catch (error) {
      await execution.kill();
      throw error;
    }
    return execution;
  }

  return {
    execute: (id, request, signal) =>
      inTurn(id, async () => {
        signal.throwIfAborted();
        if (closed) throw unavailable('it is closed');
        return begin(id, request, signal);
      }),
    async endWithout(id) {
      const orphans = [...own].flatMap(([execution, owner]) => (owner === id ? [execution] : []));
      if (orphans.length === 0) return;
      const { live } = await reader.read(id);
      if (live !== null && (await findLeader(table, live.claim.leader)) !== null) return;
      for (const execution of orphans) await execution.kill();
    },
    async close() {
      closed = true;
      await Promise.all([...own.keys()].map((execution) => execution.kill()));
    },
  };
}
