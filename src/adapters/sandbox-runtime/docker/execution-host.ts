import { dnsLabel } from '../../../domain/dns-label.ts';
import { isFailureOf } from '../../../domain/failure.ts';
import type { ExecutionStart } from '../../../ports/sandbox-executions.ts';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import type { ExecutionHost, HostExecution, KeptFile, ScriptOptions, Supervise } from '../execution-host.ts';
import { isShellFailure, killOnFailure, runScript, withScriptTimeLimit } from '../script-result.ts';
import { tarEntries } from '../tar.ts';
import { type Engine, killFailed } from './engine.ts';
import { type ContainerCommands, keptFolder } from './container-commands.ts';
import type { DockerFiles } from './files.ts';
import { stateOf } from './observed-sandbox.ts';
import { keptMark, listRemovedCommand, markVariable, removeCommand } from './shell-scripts.ts';
import { tarOfOne } from './single-entry-tar.ts';

/** A limit above the kept output of any execution. */
const maxKeptBytes = 256 << 20;

/** Keeps executions in the containers of sandboxes. */
export class DockerExecutionHost implements ExecutionHost {
  readonly #engine: Engine;
  readonly #commands: ContainerCommands;
  readonly #files: DockerFiles;
  /** The executions to remove when their sandbox runs again, by sandbox id. */
  readonly #waiting = new Map<string, Set<string>>();
  /** Each removal reads all processes of the sandbox. Many at once would slow each other down until none is done in time. */
  readonly #removals = new KeyedMutex();

  constructor(engine: Engine, commands: ContainerCommands, files: DockerFiles) {
    this.#engine = engine;
    this.#commands = commands;
    this.#files = files;
  }

  async observe(id: string): ReturnType<ExecutionHost['observe']> {
    const found = await this.#engine.find(id);
    if (found === null) return { state: 'absent', runId: '' };
    return { state: stateOf(found.State), runId: found.State.StartedAt };
  }

  folder(): string {
    return keptFolder;
  }

  mark(_id: string, executionId: string): string {
    return `${markVariable}=${keptMark(executionId)}`;
  }

  launch(id: string, start: ExecutionStart, supervise: Supervise, signal: AbortSignal): Promise<HostExecution> {
    return this.#commands.startDurable(id, start, supervise, signal);
  }

  async launchTerminal(id: string, start: ExecutionStart, signal: AbortSignal): Promise<HostExecution> {
    const execution = await this.#commands.startAttached(id, start, signal, true);
    const { tty } = start;
    if (tty !== null) await killOnFailure(execution, async () => execution.resize?.(tty));
    return execution;
  }

  async run(id: string, command: readonly string[], signal: AbortSignal, how?: ScriptOptions): Promise<HostExecution> {
    const script = await this.#commands.startScript(id, command, signal, how);
    // Scripts end with their connection, so a close need not kill them one by one.
    script.outlive();
    return script;
  }

  async *keptFiles(id: string, executionId: string, signal: AbortSignal): AsyncGenerator<KeptFile> {
    try {
      const archive = await this.#files.getFiles(id, `${keptFolder}/${executionId}/kept`, signal);
      let bytes = 0;
      for await (const entry of tarEntries(archive, signal)) {
        if (entry.kind === 'file' && (bytes += entry.size) > maxKeptBytes) return;
        if (entry.kind === 'file') yield { name: entry.parts.at(-1) ?? '', size: entry.size, content: entry.content };
      }
    } catch (error) {
      // Only the sandbox itself can have put something other than a file there. That ends the reading.
      if (!isFailureOf(error, 'file_not_found') && !isFailureOf(error, 'invalid_request')) throw error;
    }
  }

  async remove(id: string, executionId: string): Promise<void> {
    const obstacle = await this.#removeNow(id, executionId);
    // Otherwise a removal that still waits would end a later execution with the same id.
    if (obstacle === null) return this.#waitNoLonger(id, executionId);
    // Before any call to the engine, because the sandbox may run again meanwhile.
    if (obstacle === 'not running') this.#waiting.set(id, (this.#waiting.get(id) ?? new Set()).add(executionId));
    const kept = `${keptFolder}/${executionId}/kept`;
    try {
      await (await this.#files.getFiles(id, `${kept}/begun`, this.#engine.closed)).cancel();
    } catch (error) {
      const isExecutionGone = isFailureOf(error, 'file_not_found');
      if (isExecutionGone || isFailureOf(error, 'sandbox_not_found')) this.#waitNoLonger(id, executionId);
      if (isExecutionGone) return;
      throw error;
    }
    if (obstacle === 'no shell') throw killFailed();
    // The mark hides the execution until it is removed.
    const mark = tarOfOne({ name: 'removed', type: 'file' });
    await this.#files.putFiles(id, kept, ReadableStream.from(mark), this.#engine.closed);
  }

  /** Forgets the removals that wait for a sandbox that is removed. */
  forget(id: string): void {
    this.#waiting.delete(id);
  }

  /** Finishes the removals that wait for the sandbox to run: those of this process, and with `others` also those of earlier ones. */
  async finishRemovals(id: string, others: boolean): Promise<void> {
    const own = new Set(this.#waiting.get(id));
    const removed = new Set(own);
    if (others) {
      const command = listRemovedCommand(keptFolder);
      const { output } = await withScriptTimeLimit(this.#engine.closed, (signal) => runScript(this, id, command, signal));
      for (const executionId of output.split('\n')) if (dnsLabel.test(executionId)) removed.add(executionId);
    }
    for (const executionId of removed) {
      // Removed meanwhile by somebody else, who may have started another one with its id.
      if (own.has(executionId) && this.#waiting.get(id)?.has(executionId) !== true) continue;
      if ((await this.#removeNow(id, executionId)) === null) this.#waitNoLonger(id, executionId);
    }
  }

  #waitNoLonger(id: string, executionId: string): void {
    const waiting = this.#waiting.get(id);
    waiting?.delete(executionId);
    if (waiting?.size === 0) this.#waiting.delete(id);
  }

  /** Ends a kept execution and removes it. Returns null, or why nothing can run in the sandbox now. */
  async #removeNow(id: string, executionId: string): Promise<'not running' | 'no shell' | null> {
    const command = removeCommand(`${keptFolder}/${executionId}`, executionId);
    try {
      const { code } = await this.#removals.runExclusive(id, () =>
        withScriptTimeLimit(this.#engine.closed, (signal) => runScript(this, id, command, signal)), this.#engine.closed);
      if (code === null) return 'not running';
      if (isShellFailure(code)) return 'no shell';
      if (code !== 0) throw killFailed();
      return null;
    } catch (error) {
      if (isFailureOf(error, 'sandbox_not_running')) return 'not running';
      throw error;
    }
  }
}
