import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { sentenceOf } from '../../shared/status-and-error-messages.ts';
import { Failure } from '../../../domain/failure.ts';
import type { ExecutionRequest } from '../../../ports/sandbox-runtime.ts';
import { errorCode } from '../../shared/system-errors.ts';
import type { HostExecution, Supervise } from '../execution-host.ts';
import { inputStream, outputStream, refusedExecution, whyUnrunnable } from '../execution-streams.ts';
import { sandboxPath } from '../sandbox-path.ts';
import { passedEnvironment, resolveCommand } from './command.ts';
import { hostPath } from './file-transfer.ts';
import type { LiveLaunch, Observer } from './observed-sandbox.ts';
import { findLeader, killAll } from './process-groups.ts';
import type { ProcessTable } from './process-table.ts';
import { unavailable, withFailures } from './runtime-failures.ts';

/** The variable by which the processes of an execution are known, wherever they went. */
export const executionVariable = 'SKEP_EXECUTION_MARK';

/** Runs a supervisor instead of a command, which keeps it under this id. */
export interface Kept {
  readonly executionId: string;
  readonly supervise: Supervise;
}

/** Returns the mark of an execution that outlives the process that started it. */
export function keptMark(sandboxId: string, executionId: string): string {
  // No mark is the beginning of another one.
  return `kept.${sandboxId}.${executionId}.`;
}

/** Runs commands beside those of sandboxes, as processes that count as theirs: what is done with a sandbox is done with them. */
export class Executions {
  readonly #observer: Observer;
  /** The executions that run, with the ids of their sandboxes. */
  readonly #own = new Map<ChildExecution, string>();
  #isClosed = false;

  constructor(observer: Observer) {
    this.#observer = observer;
  }

  async execute(id: string, request: ExecutionRequest, signal: AbortSignal, kept?: Kept): Promise<HostExecution> {
    const { live, environment } = await this.#running(id);
    const { plan } = live.claim;
    const { workspace, executions: folder } = this.#observer.layout.sandbox(id);
    const workingDir = request.workingDir === undefined ? null : sandboxPath(request.workingDir, 'workingDir');
    const unrunnable = whyUnrunnable(request);
    if (unrunnable !== null) return refusedExecution(126, unrunnable);
    this.#demandWanted(signal);
    const mark = kept === undefined ? randomUUID() : keptMark(id, kept.executionId);
    const { SKEP_WORKSPACE = '', SKEP_SANDBOX_ID = '', SKEP_SANDBOX_MARK = '' } = environment;
    const cwd = workingDir === null ? workspace : hostPath(workingDir, { folder: workspace, workingDir: plan.workingDir });
    const place = { folder, run: plan.mark, workingDir: cwd, announce: false, fallbackMark: '' };
    const child = await spawnCommand(kept?.supervise(place) ?? request.command, cwd, {
      ...environment,
      // The leader itself looks for its tools elsewhere.
      PATH: plan.path ?? passedEnvironment().PATH,
      ...request.env,
      SKEP_WORKSPACE,
      SKEP_SANDBOX_ID,
      SKEP_SANDBOX_MARK,
      [executionVariable]: mark,
    });
    if ('reason' in child) return refusedExecution(child.code, child.reason);
    const execution = await followChild(this.#observer.table, child, mark, cwd);
    this.#own.set(execution, id);
    void execution.exited.then(() => this.#own.delete(execution));
    try {
      // A step that was done with the sandbox before the command was there was not done with the command.
      if ((await this.#running(id)).live.number !== live.number) throw notRunning(id, 'started anew');
      this.#demandWanted(signal);
    } catch (error) {
      await execution.kill();
      throw error;
    }
    return execution;
  }

  /** Ends those of a sandbox whose own command is gone: they don't keep it running. */
  async endWithout(id: string): Promise<void> {
    const orphans = [...this.#own].flatMap(([execution, owner]) => (owner === id ? [execution] : []));
    if (orphans.length === 0) return;
    const { live } = await this.#observer.observe(id);
    if (live !== null && (await findLeader(this.#observer.table, live.claim.leader)) !== null) return;
    for (const execution of orphans) await execution.kill();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#own.keys()].map((execution) => execution.leave()));
  }

  /** Returns the launch that runs, and its environment. Throws if none does. */
  async #running(id: string): Promise<{ readonly live: LiveLaunch; readonly environment: Readonly<Record<string, string>> }> {
    const { live, observed } = await this.#observer.observe(id);
    if (observed.state === 'absent') throw new Failure('sandbox_not_found', { id });
    if (live === null || observed.state !== 'running' || live.isFreezing) throw notRunning(id, observed.state);
    const leader = await findLeader(this.#observer.table, live.claim.leader);
    const environment = leader === null ? null : await this.#observer.table.environment(leader);
    if (environment === null) throw notRunning(id, 'without its own command');
    return { live, environment };
  }

  #demandWanted(signal: AbortSignal): void {
    signal.throwIfAborted();
    if (this.#isClosed) throw unavailable({ code: 'closed' });
  }
}

function notRunning(id: string, status: string): Failure<'sandbox_not_running'> {
  return new Failure('sandbox_not_running', { id, status });
}

type Child = ChildProcessByStdio<Writable, Readable, Readable | null>;

/** Why a command can't be run, with the exit code that a shell would give. */
interface Unrunnable {
  readonly code: 126 | 127;
  readonly reason: string;
}

/** Starts the command in a session and group of its own. Rejects with a system error if the host can't start anything. */
async function spawnCommand(
  command: readonly string[], cwd: string, env: Readonly<Record<string, string>>,
): Promise<Child | Unrunnable> {
  const isDirectory = await stat(cwd).then((entry) => entry.isDirectory(), () => false);
  if (!isDirectory) return { code: 126, reason: 'the working directory is not there' };
  const resolved = await resolveCommand(command, cwd, env['PATH'] ?? '');
  if ('refused' in resolved) {
    return { code: resolved.refused.code === 'command_not_found' ? 127 : 126, reason: sentenceOf(resolved.refused) };
  }
  const [program, ...args] = resolved.command;
  try {
    const child = spawn(program, args, { cwd, env, argv0: command[0], detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    await once(child, 'spawn');
    return child;
  } catch (error) {
    const reason = refusals[errorCode(error) ?? ''];
    if (reason === undefined) throw error;
    return { code: 126, reason };
  }
}

/** Errors of the system that are the command's fault. */
const refusals: Readonly<Record<string, string>> = {
  E2BIG: 'the command and its environment are too long',
  EACCES: 'the command or its working directory may not be used',
  ENOENT: 'the command, its interpreter or its working directory is not there',
  ENOEXEC: 'the command is no program of this system',
  ENOTDIR: 'the working directory is not a directory',
};

/** `cwd` is a path of the host. */
async function followChild(table: ProcessTable, child: Child, mark: string, cwd: string): Promise<ChildExecution> {
  const execution = childExecution(child, () => withFailures(() => killAll(table, { leader, plan: { mark }, variable: executionVariable })));
  // If the command has ended already, what it left is found by its mark, among processes that are no older than this one.
  const pid = child.pid ?? 0;
  const found = (await table.find(pid)) ?? (await table.find(process.pid));
  const leader = found === null ? null : { pid, start: found.start, boot: await table.bootId() };
  return { ...execution, workingDir: cwd };
}

/** An execution that is a child of this process. */
export interface ChildExecution extends HostExecution {
  readonly exited: Promise<number>;
  /** Ends it, unless it outlives this process. */
  readonly leave: () => Promise<void>;
}

/** Follows a child that has just begun. `end` ends it, with all that it started. */
export function childExecution(child: Child, end: () => Promise<void>): ChildExecution {
  // Before anything else: what a child wrote is lost if it ends while nothing listens.
  const stdin = inputStream(child.stdin);
  const stdout = outputStream(child.stdout);
  const stderr = child.stderr === null ? ReadableStream.from<Uint8Array>([]) : outputStream(child.stderr);
  const exited = new Promise<number>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
  const kill = async (): Promise<void> => {
    await end();
    await exited;
  };
  let outlives = false;
  const outlive = (): void => {
    outlives = true;
  };
  const leave = async (): Promise<void> => {
    if (!outlives) return kill();
    child.unref();
    for (const stream of child.stdio) stream?.destroy();
  };
  return { stdin, stdout, stderr, exited, kill, outlive, leave };
}
