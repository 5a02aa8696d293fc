import type { ExecutionState } from '../../domain/execution.ts';
import { Failure } from '../../domain/failure.ts';
import type { Reason } from '../../domain/reason.ts';
import { raceSignal } from '../../ports/abort-signals.ts';
import type {
  ExecutionStart, OpenExecution, OpenExecutionStart, OutputRequest, OutputStream, SandboxExecutions, TerminalSize,
} from '../../ports/sandbox-executions.ts';
import { streamOf } from '../shared/node-streams.ts';
import { createSingleFlight } from '../shared/single-flight.ts';
import { realTimers, sleep } from '../shared/timeout.ts';
import { LocalExecution } from './local-execution.ts';
import { readFirstLine, killOnFailure, noScriptResult, scriptFailure } from './script-result.ts';
import { type ExecutionHost, executionNotFound } from './execution-host.ts';
import { ExecutionReader, firstWaitMs, longestWaitMs, maxCertainCode } from './execution-reader.ts';
import { scripts } from './execution-scripts.ts';
import { environmentLines, keptBytes, parseSupervisorAnswer, supervisorCommand } from './supervisor-script.ts';
import { dropLongest } from './output-buffer.ts';
import { signalNumber } from './signal-numbers.ts';

/** How long an ended execution stays in memory with its output. */
const keptAfterEndMs = 10_000;
/** The limit of the outputs of all executions in memory. Sandboxes without the tools to keep outputs can use up all of it. */
const memoryBytes = 128 << 20;
const uncheckedBytes = 1 << 20;
/** The exit code of the scripts `input` and `feed` if the command accepts no more input. */
const inputClosedCode = 5;

/**
 * Executions under a shell script in the sandbox, see `supervisor-script.ts`. The process that started one reads its outputs from the
 * connection to the script. It reads older output, and every other process reads all output, from the sandbox.
 */
export class DurableExecutions implements SandboxExecutions {
  readonly #host: ExecutionHost;
  /** The executions that this process started and still has in memory. */
  readonly #local = new Map<string, LocalExecution>();
  /** Bytes of output since the memory limit was last checked. */
  #unchecked = 0;
  readonly #starts = createSingleFlight<ExecutionState>();

  constructor(host: ExecutionHost) {
    this.#host = host;
  }

  async start(sandboxId: string, start: ExecutionStart, signal: AbortSignal): Promise<ExecutionState> {
    if (this.#local.has(keyOf(sandboxId, start.executionId))) return this.state(sandboxId, start.executionId);
    return this.#starts.join(keyOf(sandboxId, start.executionId), signal, (joined) => this.#start(sandboxId, start, joined));
  }

  async state(sandboxId: string, executionId: string): Promise<ExecutionState> {
    const { local, reader } = this.#at(sandboxId, executionId);
    return local?.state ?? reader.readState();
  }

  async ended(sandboxId: string, executionId: string, signal: AbortSignal): Promise<ExecutionState> {
    const { local, reader } = this.#at(sandboxId, executionId);
    if (local !== undefined) {
      const state = await raceSignal(local.ended, signal);
      if (!local.isEndUncertain) return state;
    }
    for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
      const state = await reader.readState(true, signal);
      if (state.status !== 'running') return state;
      // The sandbox may have removed the file that the script waits for. Then each wait returns at once.
      await sleep(realTimers, waitMs, signal);
    }
  }

  async output(
    sandboxId: string, executionId: string, request: OutputRequest, signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>> {
    signal.throwIfAborted();
    const { local, reader } = this.#at(sandboxId, executionId);
    if (local !== undefined) return streamOf(signal, (cancelled) => readLocal(local, reader, request, cancelled));
    // Throws if the execution does not exist.
    await reader.readState(false, signal);
    return streamOf(signal, (cancelled) => reader.read(request, cancelled));
  }

  async write(
    sandboxId: string, executionId: string, content: ReadableStream<Uint8Array>, close: boolean, signal: AbortSignal,
  ): Promise<void> {
    const { local, reader } = this.#at(sandboxId, executionId);
    if (local !== undefined) {
      await reader.requireRunning();
      await local.write(content, close, signal);
      if (local.isDurable && close) await reader.runToEnd(scripts.input('none', 'starter'), signal);
      return;
    }
    const execution = await reader.start(scripts.input('any', close ? 'all' : ''), signal);
    const handedOver = content.pipeTo(execution.stdin, { signal }).then(() => true, () => false);
    const code = await killOnFailure(execution, () => raceSignal(execution.exited, signal));
    if (code === 4) throw executionNotFound(executionId);
    // The script may have been killed: alone, with all processes of the execution, or with the sandbox.
    const wasKilled = code === null || code > maxCertainCode;
    if (wasKilled) await reader.requireRunning();
    const isOver = code === inputClosedCode || (wasKilled && (await reader.readState(false, signal)).status !== 'running');
    if (!isOver && code !== 0) throw scriptFailure(code);
    if (isOver || !(await handedOver)) throw new Failure('input_closed', { id: executionId });
  }

  async signal(sandboxId: string, executionId: string, signalName: string): Promise<void> {
    const script = scripts.signal(signalNumber(signalName), this.#host.mark(sandboxId, executionId));
    const { local, reader } = this.#at(sandboxId, executionId);
    if (local?.isDurable === false) return local.execution.kill();
    if (local !== undefined && local.state.status !== 'running') return void (await reader.requireRunning());
    await reader.runToEnd(script);
    if (signalName === 'SIGKILL') local?.release();
  }

  async resize(sandboxId: string, executionId: string, size: TerminalSize): Promise<void> {
    const { local, reader } = this.#at(sandboxId, executionId);
    if (local !== undefined && local.state.status !== 'running') return;
    if (local?.isDurable !== false) return reader.runToEnd(scripts.resize(size));
    await reader.requireRunning();
    await local.execution.resize?.(size);
  }

  async remove(sandboxId: string, executionId: string): Promise<void> {
    const { local } = this.#at(sandboxId, executionId);
    if (local?.isDurable === false) await local.execution.kill();
    else await this.#host.remove(sandboxId, executionId);
    this.#local.delete(keyOf(sandboxId, executionId));
  }

  async open(sandboxId: string, { env = {}, ...given }: OpenExecutionStart, signal: AbortSignal): Promise<OpenExecution> {
    const { executionId } = given;
    const { lines, rest } = environmentLines(env);
    const start = { ...given, env: rest, stdin: true, tty: null };
    const execution = await this.#host.launch(sandboxId, start, (context) => supervisorCommand(start, context, true), signal);
    const input = execution.stdin.getWriter();
    // If the command can't run, the write fails. That is no error here.
    void input.write(Buffer.from(lines)).catch(() => {});
    input.releaseLock();
    const { line, rest: stdout } = await readFirstLine(execution, signal);
    const { kind } = parseSupervisorAnswer(line);
    if (kind === 'exists') {
      await this.#host.remove(sandboxId, executionId);
      return this.open(sandboxId, { env, ...given }, signal);
    }
    const durable = kind === 'durable';
    if (durable) execution.outlive();
    const { stdin, stderr, exited, workingDir } = execution;
    return {
      stdin, stdout, stderr, exited, durable,
      ...(workingDir !== undefined && { workingDir }),
      kill: () => (durable ? this.#host.remove(sandboxId, executionId) : execution.kill()),
      handedOver: { bytes: 0, isCut: false },
      forgetBefore: ({ stdin, stdout }) => this.#at(sandboxId, executionId).reader.runToEnd(scripts.forget(stdin, stdout)),
      // Does nothing: closing the runtime leaves the execution.
      leave: () => {},
    };
  }

  async reopen(sandboxId: string, executionId: string, after: number, signal: AbortSignal): Promise<OpenExecution> {
    const { reader } = this.#at(sandboxId, executionId);
    const { status, stderr: errors } = await reader.readState(false, signal);
    if (status === 'lost') throw executionNotFound(executionId);
    const feeder = await reader.start(scripts.feed(), signal);
    // The script that writes the input ends with its input. If it were killed, it could not report how many bytes the command got.
    feeder.outlive();
    const { line } = await readFirstLine(feeder, signal);
    if (line === null && (await feeder.exited) !== inputClosedCode) throw noScriptResult;
    const [bytes, isCut] = line?.split(' ') ?? [];
    const over = new AbortController();
    const output = (stream: OutputStream, from: number): ReadableStream<Uint8Array> =>
      streamOf(over.signal, (cancelled) => reader.read({ stream, after: from, follow: true }, cancelled));
    return {
      stdin: feeder.stdin,
      stdout: output('stdout', after),
      stderr: output('stderr', errors.oldest),
      exited: this.ended(sandboxId, executionId, over.signal).then(({ exitCode }) => exitCode, () => null),
      durable: true,
      kill: async () => {
        over.abort(new Error('the command is ended'));
        await this.#host.remove(sandboxId, executionId);
      },
      // An ended command accepts no more input.
      handedOver: { bytes: bytes === undefined ? Infinity : Number(bytes), isCut: isCut === 'cut' },
      forgetBefore: ({ stdin, stdout }) => reader.runToEnd(scripts.forget(stdin, stdout)),
      leave: () => over.abort(new Error('the command is left to another process')),
    };
  }

  async #start(sandboxId: string, start: ExecutionStart, signal: AbortSignal): Promise<ExecutionState> {
    const execution = await this.#host.launch(sandboxId, start, (context) => supervisorCommand(start, context), signal);
    const { line, rest } = await readFirstLine(execution, signal);
    const answer = parseSupervisorAnswer(line);
    if (answer.kind === 'exists') {
      await execution.stdin.close();
      return this.state(sandboxId, start.executionId);
    }
    if (answer.kind === 'no-terminal') return this.#startTerminal(sandboxId, start, answer.missing, signal);
    if (answer.kind === 'durable') execution.outlive();
    const { stdin, stderr, exited } = execution;
    const whole = { stdin, stdout: rest, stderr, exited, kill: () => execution.kill() };
    return this.#keep(sandboxId, start, whole, answer.kind === 'attached' ? answer.missing : null);
  }

  async #startTerminal(sandboxId: string, start: ExecutionStart, endsWithServer: Reason, signal: AbortSignal): Promise<ExecutionState> {
    if (this.#host.launchTerminal === undefined) {
      throw new Failure('invalid_request', { problems: [{ argument: 'tty', reason: { code: 'terminal_unsupported' } }] });
    }
    const execution = await this.#host.launchTerminal(sandboxId, start, signal);
    return this.#keep(sandboxId, start, execution, endsWithServer);
  }

  #keep(
    sandboxId: string, start: ExecutionStart, execution: LocalExecution['execution'], endsWithServer: Reason | null,
  ): ExecutionState {
    const keptInSandbox = endsWithServer === null ? keptBytes : 0;
    const local = new LocalExecution(start, execution, endsWithServer, keptInSandbox, (bytes) => this.#limit(bytes));
    const key = keyOf(sandboxId, start.executionId);
    this.#local.set(key, local);
    // The sandbox keeps a durable execution. Callers that wait for its end still read it from memory.
    if (local.isDurable) {
      const forget = (): unknown => this.#local.get(key) === local && this.#local.delete(key);
      void local.ended.then(() => setTimeout(forget, keptAfterEndMs).unref());
    }
    return local.state;
  }

  /** Limits the memory of all outputs, from time to time. */
  #limit(newBytes: number): void {
    this.#unchecked += newBytes;
    if (this.#unchecked < uncheckedBytes) return;
    this.#unchecked = 0;
    dropLongest([...this.#local.values()].flatMap(({ stdout, stderr }) => [stdout, stderr]), memoryBytes);
  }

  /** Forgets the executions of a sandbox that is removed. */
  forget(sandboxId: string): void {
    for (const key of this.#local.keys()) if (key.startsWith(keyOf(sandboxId, ''))) this.#local.delete(key);
  }

  /** `local` is undefined for an execution that has to be read from the sandbox. */
  #at(sandboxId: string, executionId: string): { readonly local: LocalExecution | undefined; readonly reader: ExecutionReader } {
    const local = this.#local.get(keyOf(sandboxId, executionId));
    const reader = new ExecutionReader(this.#host, sandboxId, executionId);
    return { local: local?.isEndUncertain === true ? undefined : local, reader };
  }
}

const keyOf = (sandboxId: string, executionId: string): string => `${sandboxId}/${executionId}`;

async function* readLocal(
  local: LocalExecution, reader: ExecutionReader, request: OutputRequest, signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  let { after } = request;
  const readOlder = (from: number, cancelled: AbortSignal): AsyncIterable<Uint8Array> =>
    reader.read({ ...request, after: from, follow: false }, cancelled);
  for await (const chunk of local[request.stream].read(request, signal, local.isDurable ? readOlder : undefined)) {
    after += chunk.length;
    yield chunk;
  }
  // The connection may have been lost before the command ended.
  if (local.isEndUncertain) yield* reader.read({ ...request, after }, signal);
}
