import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { Failure } from '../../../domain/failure.ts';
import type { Execution, ExecutionRequest } from '../../../ports/sandbox-runtime.ts';
import type { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { inputStream, outputStream, refusedExecution, whyUnrunnable } from '../execution-streams.ts';
import { sandboxPath } from '../sandbox-path.ts';
import { type Environment, passedEnvironment, resolveCommand } from './command.ts';
import type { Layout } from './data-folder.ts';
import { hostPath } from './file-transfer.ts';
import type { LiveLaunch, Reader } from './observed-sandbox.ts';
import { findLeader, killAll, type Lineage } from './process-groups.ts';
import type { ProcessTable } from './process-table.ts';
import { errorCode, unavailable, withFailures } from './system-errors.ts';

interface ExecutionOptions {
  readonly layout: Layout;
  readonly table: ProcessTable;
  readonly reader: Reader;
  readonly env: Environment;
  readonly inTurn: KeyedMutex['inTurn'];
}

interface Executions {
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
    const workingDir = request.workingDir === undefined ? null : sandboxPath(request.workingDir, 'working_dir');
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

/** The variable by which the processes of an execution are known, wherever they went. */
const executionVariable = 'SKEP_EXECUTION_MARK';

interface BegunCommand {
  readonly child: Child;
  readonly mark: string;
  /** Where it was begun, as a path of the host. */
  readonly cwd: string;
}

/** An execution of a child of this process. */
async function createExecution(table: ProcessTable, { child, mark, cwd }: BegunCommand): Promise<Execution> {
  // At once: what a child wrote and nobody listens to is lost when it ends.
  const streams = { stdin: inputStream(child.stdin), stdout: outputStream(child.stdout), stderr: outputStream(child.stderr) };
  const exited = new Promise<number>((resolve) => {
    const tell = (code: number | null, signal: NodeJS.Signals | null): void => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    if (child.exitCode !== null || child.signalCode !== null) tell(child.exitCode, child.signalCode);
    else child.once('exit', tell);
  });
  const lineage = await lineageOf(table, child.pid ?? 0, mark);
  let killing: Promise<void> | undefined;
  const kill = async (): Promise<void> => {
    await withFailures(() => killAll(table, lineage));
    await exited;
  };
  return {
    ...streams,
    workingDir: cwd,
    exited,
    kill() {
      killing ??= kill().catch((error: unknown) => {
        killing = undefined;
        throw error;
      });
      return killing;
    },
  };
}

/** A command that has ended already is known by nobody's number: what it left behind is found by its mark, and is no older than this process. */
async function lineageOf(table: ProcessTable, pid: number, mark: string): Promise<Lineage> {
  const found = (await table.find(pid)) ?? (await table.find(process.pid));
  const leader = found === null ? null : { pid, start: found.start, boot: await table.bootId() };
  return { leader, plan: { mark }, variable: executionVariable };
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Why a command can't be run, in the code and the words of a shell. */
interface Unrunnable {
  readonly code: 126 | 127;
  readonly reason: string;
}

/** Starts the command in a session and group of its own. Rejects with a system error where the host can't start anything. */
async function spawnCommand(
  { command }: ExecutionRequest,
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<Child | Unrunnable> {
  const isDirectory = await stat(cwd).then((entry) => entry.isDirectory(), () => false);
  if (!isDirectory) return { code: 126, reason: 'the working directory is not there' };
  const resolved = await resolveCommand(command, cwd, env['PATH'] ?? '');
  if (!resolved.ok) return { code: /not found/.test(resolved.problem) ? 127 : 126, reason: resolved.problem };
  const [program, ...args] = resolved.command;
  try {
    const child = spawn(program, args, { cwd, env, argv0: command[0], detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    await new Promise((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    return child;
  } catch (error) {
    const reason = refusals[errorCode(error) ?? ''];
    if (reason === undefined) throw error;
    return { code: 126, reason };
  }
}

/** What the system says of a command, and not of itself. */
const refusals: Readonly<Record<string, string>> = {
  E2BIG: 'the command and its environment are too long',
  EACCES: 'the command or its working directory may not be used',
  ENOENT: 'the command, its interpreter or its working directory is not there',
  ENOEXEC: 'the command is no program of this system',
  ENOTDIR: 'the working directory is not a directory',
};
