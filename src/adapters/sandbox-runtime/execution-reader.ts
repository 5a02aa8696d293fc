import { z } from 'zod';
import type { ExecutionState } from '../../domain/execution.ts';
import { Failure, isFailureOf } from '../../domain/failure.ts';
import { neverAborts, onAbort } from '../../ports/abort-signals.ts';
import type { OutputRequest, OutputStream } from '../../ports/sandbox-executions.ts';
import { isShellFailure, runScript, scriptFailure, withScriptTimeLimit } from './script-result.ts';
import { realTimers, sleep } from '../shared/timeout.ts';
import { type ExecutionHost, executionNotFound, type HostExecution } from './execution-host.ts';
import { type ExecutionScript, scripts } from './execution-scripts.ts';
import { dropped } from './output-buffer.ts';

/** How often to check at first a sandbox that can't run a script because it is frozen. */
const frozenPollMs = 500;
/** The pauses between two attempts in a sandbox that may end each one at once. */
export const firstWaitMs = 50;
export const longestWaitMs = 5_000;
/** The highest exit code that is not from a signal. A higher one may be that of a script of Skep, killed by a signal. */
export const maxCertainCode = 128;

/** The output of the script `state`: the status, the exit code, and the oldest offset and the end of stdout, then of stderr. */
const Line = z.tuple([
  z.enum(['running', 'exited', 'ended', 'unknown']), z.coerce.number().nullable().catch(null),
  z.coerce.number(), z.coerce.number(), z.coerce.number(), z.coerce.number(),
]);

/** The offset after the bytes that were read, and whether there is nothing more to read. */
interface ReadResult {
  readonly end: number;
  readonly isOver: boolean;
}

/** Reads a kept execution in its sandbox, no matter which process started it. Uses scripts, or the files if no script can run. */
export class ExecutionReader {
  readonly #host: ExecutionHost;
  readonly #sandboxId: string;
  readonly #executionId: string;

  constructor(host: ExecutionHost, sandboxId: string, executionId: string) {
    this.#host = host;
    this.#sandboxId = sandboxId;
    this.#executionId = executionId;
  }

  /** Returns the state of the sandbox, and the id of its current run. Throws `sandbox_not_found`. */
  async #observe(): Promise<Awaited<ReturnType<ExecutionHost['observe']>>> {
    const observed = await this.#host.observe(this.#sandboxId);
    if (observed.state === 'absent') throw new Failure('sandbox_not_found', { id: this.#sandboxId });
    return observed;
  }

  /** Starts a script about the execution. Also throws `sandbox_not_running`. */
  async start(script: ExecutionScript, signal: AbortSignal): Promise<HostExecution> {
    const command = this.#command(script, await this.requireRunning());
    return this.#host.run(this.#sandboxId, command, signal, { executionId: this.#executionId });
  }

  /** Runs a script about the execution to its end. The sandbox must be running. */
  async runToEnd(script: ExecutionScript, signal: AbortSignal = neverAborts): Promise<void> {
    const command = this.#command(script, await this.requireRunning());
    const { code } = await withScriptTimeLimit(signal, (until) => runScript(this.#host, this.#sandboxId, command, until));
    if (code === 4) throw executionNotFound(this.#executionId);
    if (isShellFailure(code)) throw scriptFailure(code);
  }

  #command(script: ExecutionScript, runId: string): readonly string[] {
    return script(`${this.#host.folder(this.#sandboxId)}/${this.#executionId}`, runId);
  }

  /** Returns the id of the sandbox's current run. Throws `sandbox_not_found` or `sandbox_not_running`. */
  async requireRunning(): Promise<string> {
    const { state, runId } = await this.#observe();
    if (state !== 'running') throw new Failure('sandbox_not_running', { id: this.#sandboxId, status: state });
    return runId;
  }

  async readState(wait = false, signal: AbortSignal = neverAborts): Promise<ExecutionState> {
    for (;;) {
      signal.throwIfAborted();
      const { state, runId } = await this.#observe();
      const command = this.#command(scripts.state(wait), runId);
      const runToEnd = (until: AbortSignal) => runScript(this.#host, this.#sandboxId, command, until, !wait);
      const result = await (wait ? runToEnd(signal) : withScriptTimeLimit(signal, runToEnd)).catch(nullIfNotRunning);
      if (result === null) {
        const found = await this.#readStateFromFiles(state, runId, signal);
        if (wait && found.status === 'running') await this.#waitForChange(state, runId, longestWaitMs, signal);
        return found;
      }
      if (result.code === 4) throw executionNotFound(this.#executionId);
      const parsed = Line.safeParse(result.output.trim().split(' '));
      // If the line is invalid without an exit code, the sandbox may have stopped meanwhile.
      if (parsed.success) return stateOf(...parsed.data);
      if (result.code !== null) throw scriptFailure(result.code);
    }
  }

  /** Yields the bytes of an output from an offset on. */
  async *read({ stream, after, follow }: OutputRequest, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
    let at = after;
    let waitMs = firstWaitMs;
    for (;;) {
      const { state, runId } = await this.#observe();
      const command = this.#command(scripts.read(stream, at, follow), runId);
      const execution = await this.#host.run(this.#sandboxId, command, signal).catch(nullIfNotRunning);
      if (execution === null) {
        const { end, isOver } = yield* this.#readFiles(stream, at, signal);
        if (isOver || !follow || state === 'stopped') return;
        at = end;
        await this.#waitForChange(state, runId, frozenPollMs, signal);
      } else {
        const { end, isOver } = yield* this.#readFromScript(execution, stream, at, signal);
        if (isOver) return;
        // The sandbox was stopped meanwhile, or it killed the script, which it can do each time.
        if (end > at) waitMs = firstWaitMs;
        at = end;
        await sleep(realTimers, waitMs, signal);
        waitMs = Math.min(2 * waitMs, longestWaitMs);
      }
    }
  }

  /** It is over if the script has read all that was requested. Otherwise something has interrupted the script. */
  async *#readFromScript(
    execution: HostExecution, stream: OutputStream, after: number, signal: AbortSignal,
  ): AsyncGenerator<Uint8Array, ReadResult> {
    const stop = (): void => void execution.kill().catch(() => {});
    using _ = onAbort(signal, stop);
    let at = after;
    try {
      for await (const chunk of execution.stdout) {
        at += chunk.length;
        yield chunk;
      }
      signal.throwIfAborted();
      const code = await execution.exited;
      if (code === 4) throw executionNotFound(this.#executionId);
      if (code === 3) {
        const { oldest, end } = (await this.readState(false, signal))[stream];
        // If the oldest kept byte does not come after the offset, the lost bytes come after the kept ones.
        throw dropped(oldest > at ? oldest : end);
      }
      if (code !== null && code !== 0 && code <= maxCertainCode) throw scriptFailure(code);
      return { end: at, isOver: code === 0 };
    } finally {
      stop();
    }
  }

  /** It is over if the command has ended. */
  async *#readFiles(stream: OutputStream, after: number, signal: AbortSignal): AsyncGenerator<Uint8Array, ReadResult> {
    let at = after;
    let isOver = false;
    let isWhole = false;
    for await (const { name, content } of this.#host.keptFiles(this.#sandboxId, this.#executionId, signal)) {
      let from = startOf(name, stream);
      isOver ||= name === `${names[stream]}.done`;
      isWhole ||= name === `${names[stream]}.whole`;
      for await (const chunk of content) {
        if (from === null) continue;
        if (from > at) throw dropped(from);
        const wanted = chunk.subarray(Math.max(0, at - from));
        from += chunk.length;
        at += wanted.length;
        if (wanted.length > 0) yield wanted;
      }
    }
    if (!isWhole) throw dropped(at);
    return { end: at, isOver };
  }

  /** Reads the state from the files, in a frozen or stopped sandbox. */
  async #readStateFromFiles(state: string, runId: string, signal: AbortSignal): Promise<ExecutionState> {
    const outputs = { stdout: { oldest: 0, end: 0 }, stderr: { oldest: 0, end: 0 } };
    const notes = new Map<string, string>();
    for await (const { name, size, content } of this.#host.keptFiles(this.#sandboxId, this.#executionId, signal)) {
      let note = '';
      for await (const chunk of content) if (size < 1_000) note += Buffer.from(chunk).toString('latin1');
      notes.set(name, note);
      for (const stream of ['stdout', 'stderr'] as const) {
        const start = startOf(name, stream);
        if (start === null) continue;
        const { oldest, end } = outputs[stream];
        outputs[stream] = { oldest: end === 0 ? start : oldest, end: start + size };
      }
    }
    if (!notes.has('begun') || notes.has('removed')) throw executionNotFound(this.#executionId);
    const code = /^(\d+) *\n/.exec(notes.get('exit') ?? '')?.[1];
    const isStillRunning = state === 'frozen' && notes.get('begun')?.trim().endsWith(` ${runId}`) === true;
    const status = code !== undefined ? 'exited' : isStillRunning ? 'running' : 'ended';
    const { stdout, stderr } = outputs;
    return stateOf(status, code === undefined ? null : Number(code), stdout.oldest, stdout.end, stderr.oldest, stderr.end);
  }

  /**
   * Waits until the sandbox has another state or run. Until then, nothing changes its files. The wait for an end, which lasts as long as a
   * sandbox is frozen, looks less and less often.
   */
  async #waitForChange(state: string, runId: string, longestMs: number, signal: AbortSignal): Promise<void> {
    for (let waitMs = frozenPollMs; ; waitMs = Math.min(2 * waitMs, longestMs)) {
      await sleep(realTimers, waitMs, signal);
      const now = await this.#observe();
      if (now.state !== state || now.runId !== runId || state === 'running') return;
    }
  }
}

function stateOf(...[status, exitCode, outOldest, outEnd, errOldest, errEnd]: z.infer<typeof Line>): ExecutionState {
  const kept = { durable: true, stdout: { oldest: outOldest, end: outEnd }, stderr: { oldest: errOldest, end: errEnd } };
  if (status === 'running') return { status: 'running', exitCode: null, ...kept, reason: null };
  if (status === 'exited') return { status: 'exited', exitCode, ...kept, reason: null };
  const reason = { code: status === 'ended' ? 'execution_sandbox_ended' : 'execution_end_unknown' } as const;
  return { status: 'lost', exitCode: null, ...kept, reason };
}

const names = { stdout: 'out', stderr: 'err' } as const;

/** Returns the start offset of an output file. Null for other files. */
function startOf(name: string, stream: OutputStream): number | null {
  const [, output, start] = /^(out|err)\.(\d+)$/.exec(name) ?? [];
  return output === names[stream] ? Number(start) : null;
}

/** Returns null if the sandbox can't run anything now. */
function nullIfNotRunning(error: unknown): null {
  if (isFailureOf(error, 'sandbox_not_running')) return null;
  throw error;
}
