import { Failure } from '../../domain/failure.ts';
import type { Reason } from '../../domain/reason.ts';
import type {
  ExecutionStart, ExecutionState, OpenExecution, OpenExecutionStart, OutputRequest, SandboxExecutions, TerminalSize,
} from '../../ports/sandbox-executions.ts';
import type { Execution } from '../../ports/sandbox-runtime.ts';
import { createSingleFlight } from '../shared/single-flight.ts';
import { pause, raceSignal, realTimers } from '../shared/timeout.ts';
import { AttachedExecution } from './attached-execution.ts';
import { readFirstLine, killOnFailure } from './script-result.ts';
import { type ExecutionHost, executionNotFound } from './execution-host.ts';
import { ExecutionReader } from './execution-reader.ts';
import { scripts } from './execution-scripts.ts';
import { keptBytes, supervisorCommand } from './execution-supervisor.ts';
import { streamOf } from './output-buffer.ts';
import { openExecution, reopenExecution } from './open-executions.ts';
import { signalNumber } from './signal-numbers.ts';

/** An execution that this process started and still has in memory. */
interface LocalExecution {
  readonly attached: AttachedExecution;
  readonly durable: boolean;
  /** Resizes the host's terminal. Null if the execution has none, or has one of `script`. */
  readonly resize: ((size: TerminalSize) => Promise<void>) | null;
  /** The end as the sandbox has it. Read only if the connection alone leaves it unclear. */
  confirmedEnd: ExecutionState | null;
}

const neverAborts = new AbortController().signal;
/** How long an ended execution stays in memory with its output. */
const keptAfterEndMs = 10_000;
const firstWaitMs = 50;
const longestWaitMs = 5_000;
/** The highest exit code that is not from a signal. A higher one may be that of the supervisor, killed by a signal. */
const maxCertainCode = 128;

/**
 * Executions under a shell script in the sandbox, see `execution-supervisor.ts`. The process that started one reads its outputs from the
 * connection to the script. It reads older output, and every other process reads all output, from the sandbox.
 */
export class DurableExecutions implements SandboxExecutions {
  readonly #host: ExecutionHost;
  readonly #reader: ExecutionReader;
  readonly #local = new Map<string, LocalExecution>();
  readonly #starts = createSingleFlight<ExecutionState>();

  constructor(host: ExecutionHost) {
    this.#host = host;
    this.#reader = new ExecutionReader(host);
  }

  async start(sandboxId: string, start: ExecutionStart, signal: AbortSignal): Promise<ExecutionState> {
    if (this.#find(sandboxId, start.executionId) !== undefined) return this.state(sandboxId, start.executionId);
    return this.#starts.join(keyOf(sandboxId, start.executionId), signal, (joined) => this.#start(sandboxId, start, joined));
  }

  async state(sandboxId: string, executionId: string): Promise<ExecutionState> {
    return this.#state(sandboxId, executionId, neverAborts);
  }

  async #state(sandboxId: string, executionId: string, signal: AbortSignal): Promise<ExecutionState> {
    const local = this.#find(sandboxId, executionId);
    if (local === undefined) return this.#reader.readState(sandboxId, executionId, false, signal);
    if (!isEndUncertain(local)) return local.attached.state;
    local.confirmedEnd ??= await this.#reader.readState(sandboxId, executionId, false, signal);
    // The connection was lost, and the command still runs.
    if (local.confirmedEnd.status === 'running') this.#local.delete(keyOf(sandboxId, executionId));
    return local.confirmedEnd;
  }

  async ended(sandboxId: string, executionId: string, signal: AbortSignal): Promise<ExecutionState> {
    const local = this.#find(sandboxId, executionId);
    if (local !== undefined) {
      await raceSignal(local.attached.ended, signal);
      const state = await this.#state(sandboxId, executionId, signal);
      if (state.status !== 'running') return state;
    }
    for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
      const state = await this.#reader.readState(sandboxId, executionId, true, signal);
      if (state.status !== 'running') return state;
      // The sandbox may have removed the file that the script waits for. Then each wait returns at once.
      await pause(realTimers, waitMs, signal);
    }
  }

  async output(
    sandboxId: string, executionId: string, request: OutputRequest, signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>> {
    signal.throwIfAborted();
    const local = this.#find(sandboxId, executionId);
    if (local !== undefined) return streamOf(signal, (cancelled) => this.#readLocal(local, sandboxId, executionId, request, cancelled));
    // Throws if the execution does not exist.
    await this.#reader.readState(sandboxId, executionId, false, signal);
    return streamOf(signal, (cancelled) => this.#reader.read(sandboxId, executionId, request, cancelled));
  }

  async write(
    sandboxId: string, executionId: string, content: ReadableStream<Uint8Array>, close: boolean, signal: AbortSignal,
  ): Promise<void> {
    const local = this.#find(sandboxId, executionId);
    if (local !== undefined) {
      await this.#reader.requireRunning(sandboxId);
      await local.attached.write(content, close, signal);
      if (local.durable && close) await this.#reader.runToEnd(sandboxId, executionId, scripts.input('none', 'starter'), signal);
      return;
    }
    const execution = await this.#reader.start(sandboxId, executionId, scripts.input('any', close ? 'all' : ''), signal);
    const handedOver = content.pipeTo(execution.stdin, { signal }).then(() => true, () => false);
    const code = await killOnFailure(execution, () => raceSignal(execution.exited, signal));
    if (code === 4) throw executionNotFound(executionId);
    if (code === null) throw new Failure('sandbox_not_running', { id: sandboxId, status: 'stopped' });
    if (code !== 0 || !(await handedOver)) throw new Failure('input_closed', { id: executionId });
  }

  async signal(sandboxId: string, executionId: string, signalName: string): Promise<void> {
    const number = signalNumber(signalName);
    const local = this.#find(sandboxId, executionId);
    if (local?.durable === false) return local.attached.execution.kill();
    if (local !== undefined && local.attached.state.status !== 'running') return void (await this.#reader.requireRunning(sandboxId));
    await this.#reader.runToEnd(sandboxId, executionId, scripts.signal(number, this.#host.mark(sandboxId, executionId)));
  }

  async resize(sandboxId: string, executionId: string, size: TerminalSize): Promise<void> {
    const local = this.#find(sandboxId, executionId);
    if (local !== undefined && local.attached.state.status !== 'running') return;
    if (local?.durable === false) return local.resize?.(size);
    await this.#reader.runToEnd(sandboxId, executionId, scripts.resize(size));
  }

  async remove(sandboxId: string, executionId: string): Promise<void> {
    const local = this.#find(sandboxId, executionId);
    if (local?.durable === false) await local.attached.execution.kill();
    else await this.#host.remove(sandboxId, executionId);
    this.#local.delete(keyOf(sandboxId, executionId));
  }

  open(sandboxId: string, start: OpenExecutionStart, signal: AbortSignal): Promise<OpenExecution> {
    return openExecution(this.#host, this.#reader, sandboxId, start, signal);
  }

  async reopen(sandboxId: string, executionId: string, after: number, signal: AbortSignal): Promise<OpenExecution> {
    const ended = (until: AbortSignal): Promise<ExecutionState> => this.ended(sandboxId, executionId, until);
    return await reopenExecution(this.#host, this.#reader, ended, sandboxId, executionId, after, signal);
  }

  async #start(sandboxId: string, start: ExecutionStart, signal: AbortSignal): Promise<ExecutionState> {
    const execution = await this.#host.launch(sandboxId, start, (place) => supervisorCommand(start, place), signal);
    const { line, rest } = await readFirstLine(execution, signal);
    const [how, ...tools] = line === null ? ['refused'] : line.split(' ');
    if (how === 'exists') return this.state(sandboxId, start.executionId);
    if (how === 'no-terminal') return this.#startTerminal(sandboxId, start, signal);
    if (how === 'durable') execution.outlive();
    // If the script could not run at all, its standard error contains the reason.
    const reason = { attached: { code: 'execution_tools_missing', tools }, refused: { code: 'execution_attached' } } as const;
    const { stdin, stderr, exited } = execution;
    const whole = { stdin, stdout: rest, stderr, exited, kill: () => execution.kill() };
    return this.#keep(sandboxId, start, whole, how === 'attached' || how === 'refused' ? reason[how] : null, null);
  }

  async #startTerminal(sandboxId: string, start: ExecutionStart, signal: AbortSignal): Promise<ExecutionState> {
    if (this.#host.launchTerminal === null) {
      throw new Failure('invalid_request', { problems: [{ argument: 'tty', reason: { code: 'terminal_unsupported' } }] });
    }
    const execution = await this.#host.launchTerminal(sandboxId, start, signal);
    const reason = { code: 'execution_tools_missing', tools: ['script'] } as const;
    return this.#keep(sandboxId, start, execution, reason, (size) => execution.resize(size));
  }

  #keep(
    sandboxId: string, start: ExecutionStart, execution: Execution, reason: Reason | null, resize: LocalExecution['resize'],
  ): ExecutionState {
    const attached = new AttachedExecution(start, execution, reason, reason === null ? keptBytes : 0);
    const key = keyOf(sandboxId, start.executionId);
    const local = { attached, durable: reason === null, resize, confirmedEnd: null };
    this.#local.set(key, local);
    // The sandbox keeps a durable execution. Callers that wait for its end still read it from memory.
    if (local.durable) {
      const forget = (): unknown => this.#local.get(key) === local && this.#local.delete(key);
      void attached.ended.then(() => setTimeout(forget, keptAfterEndMs).unref());
    }
    return attached.state;
  }

  /** Forgets the executions of a sandbox that is removed. */
  forget(sandboxId: string): void {
    for (const key of this.#local.keys()) if (key.startsWith(keyOf(sandboxId, ''))) this.#local.delete(key);
  }

  async *#readLocal(
    local: LocalExecution, sandboxId: string, executionId: string, { stream, after, follow }: OutputRequest, signal: AbortSignal,
  ): AsyncGenerator<Uint8Array, void> {
    let at = after;
    const readOlder = (from: number, cancelled: AbortSignal): AsyncIterable<Uint8Array> =>
      this.#reader.read(sandboxId, executionId, { stream, after: from, follow: false }, cancelled);
    for await (const chunk of local.attached.read(stream, after, follow, signal, local.durable ? readOlder : undefined)) {
      at += chunk.length;
      yield chunk;
    }
    // The connection may have been lost before the command ended.
    if (isEndUncertain(local)) yield* this.#reader.read(sandboxId, executionId, { stream, after: at, follow }, signal);
  }

  #find(sandboxId: string, executionId: string): LocalExecution | undefined {
    return this.#local.get(keyOf(sandboxId, executionId));
  }
}

function keyOf(sandboxId: string, executionId: string): string {
  return `${sandboxId}/${executionId}`;
}

/** Returns true if the connection ended without a certain exit code, or maybe before the command. */
function isEndUncertain({ attached, durable }: LocalExecution): boolean {
  const { status, exitCode } = attached.state;
  return durable && status !== 'running' && (exitCode === null || exitCode > maxCertainCode);
}
