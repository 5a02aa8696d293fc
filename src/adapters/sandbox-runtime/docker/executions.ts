import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { Failure } from '../../../domain/failure.ts';
import type { Execution, ExecutionRequest } from '../../../ports/sandbox-runtime.ts';
import { raceSignal } from '../../shared/timeout.ts';
import { refusedExecution, whyUnrunnable } from '../execution-streams.ts';
import { sandboxPath } from '../sandbox-path.ts';
import { createExitNotices } from './engine-events.ts';
import { type Connection, statusOf } from './engine.ts';
import { createExecution, type OwnExecution } from './execution.ts';
import { beginningOf, markVariable } from './shell-scripts.ts';

interface Executions {
  execute(id: string, request: ExecutionRequest, signal: AbortSignal): Promise<Execution>;
  /** Ends those that are under way. */
  close(): Promise<void>;
}

/** How long a close waits for executions that are about to begin, which it ends then. */
const beginMs = 5_000;

/** Runs commands in the containers of sandboxes. An image needs `/bin/sh` for it, and nothing else. */
export function createExecutions(connection: Connection): Executions {
  const { docker, call } = connection;
  const notices = createExitNotices(connection);
  const own = new Set<OwnExecution>();
  const pending = new Set<Promise<unknown>>();
  /** Fires when nobody waits any more for what begins. */
  const left = new AbortController();
  let closing = false;

  /** Goes on when the caller has left, so that what begins then is ended. */
  async function begin(id: string, request: ExecutionRequest, signal: AbortSignal): Promise<Execution> {
    const workingDir = request.workingDir === undefined ? null : sandboxPath(request.workingDir, 'working_dir');
    const unrunnable = whyUnrunnable(request);
    const found = await runningContainer(connection, id, signal);
    if (unrunnable !== null) return refusedExecution(126, unrunnable);
    const mark = randomUUID();
    const options: Docker.ExecCreateOptions = {
      AttachStdin: true,
      AttachStdout: true,
      AttachStderr: true,
      Cmd: beginningOf(request, workingDir ?? (found.Config.WorkingDir || '/')),
      Env: [...Object.entries(request.env ?? {}).map(([name, value]) => `${name}=${value}`), `${markVariable}=${mark}`],
      WorkingDir: '/',
    };
    try {
      const exec = await call((abortSignal) => docker.getContainer(found.Id).exec({ ...options, abortSignal }), { signal });
      // It is not given up from here on: nobody would know whether it has begun.
      const socket: Duplex = await call((abortSignal) => exec.start({ hijack: true, stdin: true, abortSignal }));
      const run = { container: found.Id, startedAt: found.State.StartedAt };
      const drop = (): void => void socket.destroy();
      left.signal.addEventListener('abort', drop);
      const execution = await createExecution({ connection, exec, notices, run, socket, mark }).finally(() => left.signal.removeEventListener('abort', drop));
      if ('refusal' in execution) return await refused(connection, id, execution.refusal);
      own.add(execution);
      void execution.exited.then(() => own.delete(execution));
      if (signal.aborted) {
        await execution.kill();
        signal.throwIfAborted();
      }
      if (closing) {
        await execution.leave();
        throw closed();
      }
      return execution;
    } catch (error) {
      if (statusOf(error) === 404 || statusOf(error) === 409) throw await whyNot(connection, id);
      throw error;
    }
  }

  return {
    async execute(id, request, signal) {
      signal.throwIfAborted();
      if (closing) throw closed();
      const beginning = begin(id, request, signal);
      const settled = beginning.catch(() => {}).finally(() => pending.delete(settled));
      pending.add(settled);
      return raceSignal(beginning, signal);
    },
    async close() {
      closing = true;
      await Promise.all([...own].map((execution) => execution.leave()));
      // In a sandbox that was frozen at that moment nothing begins.
      await raceSignal(Promise.all(pending), AbortSignal.timeout(beginMs)).catch(() => left.abort());
      await Promise.all(pending);
    },
  };
}

async function runningContainer(connection: Connection, id: string, signal: AbortSignal): Promise<Docker.ContainerInspectInfo> {
  const found = await connection.find(id, signal);
  if (found === null || found === 'foreign') throw new Failure('sandbox_not_found', { id });
  const { Running, Paused, Status } = found.State;
  if (!Running || Paused) throw new Failure('sandbox_not_running', { id, status: Paused ? 'frozen' : Status });
  return found;
}

/** Why the engine runs nothing in the container now. */
async function whyNot(connection: Connection, id: string): Promise<unknown> {
  try {
    await runningContainer(connection, id, connection.closed);
    return new Failure('sandbox_not_running', { id, status: 'restarting' });
  } catch (error) {
    return error;
  }
}

async function refused(connection: Connection, id: string, said: string): Promise<Execution> {
  await runningContainer(connection, id, connection.closed);
  if (/no such file or directory|not found/i.test(said)) return refusedExecution(127, 'the image has no /bin/sh, which running a command in its sandboxes needs');
  return refusedExecution(126, said === '' ? 'the engine could not begin it' : said);
}

function closed(): Failure<'runtime_unavailable'> {
  return new Failure('runtime_unavailable', { runtime: 'docker', reason: 'it is closed', retryAfterSeconds: 1 });
}
