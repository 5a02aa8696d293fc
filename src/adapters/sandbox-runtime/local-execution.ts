import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionState, KeptOutput } from '../../domain/execution.ts';
import { Failure } from '../../domain/failure.ts';
import type { Reason } from '../../domain/reason.ts';
import { raceSignal } from '../../ports/abort-signals.ts';
import type { ExecutionStart } from '../../ports/sandbox-executions.ts';
import type { Execution } from '../../ports/sandbox-runtime.ts';
import type { HostExecution } from './execution-host.ts';
import { maxCertainCode } from './execution-reader.ts';
import { OutputBuffer } from './output-buffer.ts';

/** How much of each output is kept in this process. */
const keptBytes = 4 << 20;
/** How long to wait for the end of the outputs after the command ended. A process that it left behind may hold them open. */
const openOutputMs = 1_000;
/** How long after the end of the outputs the exit code of a durable execution may come. */
const lateExitMs = 1_000;
/** Docker's engine also reports this code for a command that runs on after the connection to it broke. */
const brokenConnectionCode = 126;

type RunningCommand = Execution & Pick<HostExecution, 'resize'>;

/** A command, durable or not, that this process is connected to, with its output. The command waits only for a reader that holds it. */
export class LocalExecution {
  readonly execution: RunningCommand;
  readonly stdout = new OutputBuffer(keptBytes);
  readonly stderr = new OutputBuffer(keptBytes);
  readonly ended: Promise<ExecutionState>;
  readonly #start: ExecutionStart;
  readonly #keptInSandbox: number;
  readonly #onOutput: (bytes: number) => void;
  readonly #endsWithServer: Reason | null;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  /** Fires when it has ended. Unlike a promise, it does not retain callers that no longer wait. */
  readonly #over = new AbortController();
  #exit: { readonly code: number | null } | null = null;
  #isInputClosed = false;

  /** `endsWithServer`: the reason, or null if it is durable. `keptInSandbox`: how many bytes of each output the sandbox keeps, too. */
  constructor(
    start: ExecutionStart, execution: RunningCommand, endsWithServer: Reason | null, keptInSandbox = 0,
    onOutput: (bytes: number) => void = () => {},
  ) {
    this.#onOutput = onOutput;
    this.#keptInSandbox = keptInSandbox;
    this.#start = start;
    this.#endsWithServer = endsWithServer;
    this.execution = execution;
    this.#input = execution.stdin.getWriter();
    this.#input.closed.catch(() => {});
    if (!start.stdin) void this.#closeInput();
    this.ended = this.#run();
  }

  get isDurable(): boolean {
    return this.#endsWithServer === null;
  }

  /** True if only the sandbox knows the end: the connection ended without a certain exit code, or maybe before the command. */
  get isEndUncertain(): boolean {
    if (!this.isDurable || this.#exit === null) return false;
    const { code } = this.#exit;
    return code === null || code === brokenConnectionCode || code > maxCertainCode;
  }

  get state(): ExecutionState {
    const kept = { stdout: this.#keptOf(this.stdout), stderr: this.#keptOf(this.stderr) };
    const common = { durable: this.isDurable, ...kept, reason: this.#endsWithServer };
    if (this.#exit === null) return { ...common, status: 'running', exitCode: null };
    if (this.#exit.code !== null) return { ...common, status: 'exited', exitCode: this.#exit.code };
    return { ...common, status: 'lost', exitCode: null, reason: { code: 'execution_sandbox_ended' } };
  }

  #keptOf({ oldest, end }: OutputBuffer): KeptOutput {
    return { oldest: Math.min(oldest, Math.max(0, end - this.#keptInSandbox)), end };
  }

  async write(content: ReadableStream<Uint8Array>, close: boolean, signal: AbortSignal): Promise<void> {
    const closed = new Failure('input_closed', { id: this.#start.executionId });
    if (this.#isInputClosed || this.#exit !== null) throw closed;
    const ends = AbortSignal.any([signal, this.#over.signal]);
    for await (const chunk of content) {
      await raceSignal(this.#input.write(chunk), ends).catch((error: unknown) => {
        throw signal.aborted ? error : closed;
      });
      if (this.#exit !== null) throw closed;
    }
    if (close) await raceSignal(this.#closeInput(), signal);
  }

  async #closeInput(): Promise<void> {
    this.#isInputClosed = true;
    await this.#input.close().catch(() => {});
  }

  async #run(): Promise<ExecutionState> {
    const { stdout, stderr } = this.execution;
    const isTerminal = this.#start.tty !== null;
    const drained = Promise.all([this.#drain(stdout, this.stdout), this.#drain(stderr, isTerminal ? this.stdout : this.stderr)]);
    const code = await Promise.race([this.execution.exited, ...(this.isDurable ? [connectionLost(drained)] : [])]);
    this.release();
    await Promise.race([drained, sleep(openOutputMs, undefined, { ref: false })]);
    this.#exit = { code };
    for (const output of [this.stdout, this.stderr]) output.finish();
    this.#over.abort(new Error('the command has ended'));
    return this.state;
  }

  /** From now on, the command waits for no reader. The exit code of a killed one may come after output that is still to be read. */
  release(): void {
    for (const output of [this.stdout, this.stderr]) output.release();
  }

  async #drain(source: ReadableStream<Uint8Array>, target: OutputBuffer): Promise<void> {
    for await (const chunk of source) {
      target.append(chunk);
      this.#onOutput(chunk.length);
      await target.untilWriterMayContinue();
    }
  }
}

/** The supervisor holds its outputs open until it ends. If they end without an exit code, the connection to it was lost. */
async function connectionLost(drained: Promise<unknown>): Promise<null> {
  await drained;
  return await sleep(lateExitMs, null, { ref: false });
}
