import { constants } from 'node:os';
import { Failure } from '../../../src/domain/failure.ts';
import type { Reason } from '../../../src/domain/reason.ts';
import { raceSignal } from '../../../src/adapters/shared/timeout.ts';
import type { ExecutionState, KeptOutput, OutputStream, SandboxExecutions, TerminalSize } from '../../../src/ports/sandbox-executions.ts';
import type { MemoryEngine } from './sandbox-engine.ts';
import type { OwnExecution } from './sandbox-execution.ts';

/** How much of an output is kept, in bytes. */
const keptBytes = 4 * 1024 * 1024;

/** What a command has written. */
class KeptBytes {
  #bytes = Buffer.alloc(0);
  oldest = 0;

  get end(): number {
    return this.oldest + this.#bytes.length;
  }

  add(bytes: Uint8Array): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    const dropped = Math.max(0, this.#bytes.length - keptBytes);
    this.#bytes = this.#bytes.subarray(dropped);
    this.oldest += dropped;
  }

  /** At most 64 KiB from the offset on. */
  from(offset: number): Buffer {
    if (offset < this.oldest) throw new Failure('output_dropped', { oldest: this.oldest });
    return this.#bytes.subarray(offset - this.oldest, offset - this.oldest + 65_536);
  }
}

interface Entry {
  readonly own: OwnExecution;
  readonly output: Readonly<Record<OutputStream, KeptBytes>>;
  readonly input: WritableStreamDefaultWriter<Uint8Array> | null;
  inputIsOpen: boolean;
  status: ExecutionState['status'];
  exitCode: number | null;
  reason: Reason | null;
  size: TerminalSize | null;
  /** Resolves at the next output, or the end. */
  changed: PromiseWithResolvers<void>;
}

/** What each engine has of executions, by sandbox and execution: it outlives the runtimes that are made over it. */
const kept = new WeakMap<MemoryEngine, Map<string, Entry>>();

/** The executions of a runtime over the engine. Its command stands for every command. */
export function createMemoryExecutions(engine: MemoryEngine): SandboxExecutions {
  const entries = kept.get(engine) ?? new Map<string, Entry>();
  kept.set(engine, entries);
  const find = (sandboxId: string, executionId: string): Entry => {
    if (engine.inspect(sandboxId).state === 'absent') throw new Failure('sandbox_not_found', { id: sandboxId });
    const entry = entries.get(`${sandboxId} ${executionId}`);
    if (entry === undefined) throw new Failure('execution_not_found', { id: executionId });
    return entry;
  };
  const demandRunning = (id: string): void => {
    const { state } = engine.inspect(id);
    if (state === 'absent') throw new Failure('sandbox_not_found', { id });
    if (state !== 'running') throw new Failure('sandbox_not_running', { id, status: state });
  };

  return {
    async start(sandboxId, { executionId, stdin, tty, command, env, workingDir }, signal) {
      signal.throwIfAborted();
      const key = `${sandboxId} ${executionId}`;
      const existing = entries.get(key);
      if (existing !== undefined) return stateOf(existing);
      demandRunning(sandboxId);
      const own = engine.execute(sandboxId, { command, ...(env && { env }), ...(workingDir !== undefined && { workingDir }) });
      const entry = begin(own, stdin, tty);
      entries.set(key, entry);
      return stateOf(entry);
    },

    state: async (sandboxId, executionId) => stateOf(find(sandboxId, executionId)),

    async ended(sandboxId, executionId, signal) {
      const entry = find(sandboxId, executionId);
      while (entry.status === 'running') await raceSignal(entry.changed.promise, signal);
      return stateOf(entry);
    },

    async output(sandboxId, executionId, { stream, after, follow }, signal) {
      const entry = find(sandboxId, executionId);
      let offset = after;
      return new ReadableStream<Uint8Array>({
        async pull(controller) {
          for (;;) {
            const { changed, status } = entry;
            const bytes = entry.output[stream].from(offset);
            offset += bytes.length;
            if (bytes.length > 0) return controller.enqueue(new Uint8Array(bytes));
            if (!follow || status !== 'running') return controller.close();
            await raceSignal(changed.promise, signal);
          }
        },
      }, { highWaterMark: 0 });
    },

    async write(sandboxId, executionId, content, close, signal) {
      const entry = find(sandboxId, executionId);
      if (entry.input === null || !entry.inputIsOpen || entry.status !== 'running') throw new Failure('input_closed', { id: executionId });
      demandRunning(sandboxId);
      for await (const bytes of content) {
        demandRunning(sandboxId);
        await raceSignal(Promise.race([entry.input.write(bytes), entry.own.exited]), signal);
      }
      if (!close) return;
      entry.inputIsOpen = false;
      entry.input.close().catch(() => {});
    },

    async signal(sandboxId, executionId, signalName) {
      const entry = find(sandboxId, executionId);
      if (entry.status !== 'running') return;
      demandRunning(sandboxId);
      entry.own.end(128 + constants.signals[signalName as NodeJS.Signals]);
      await entry.own.exited;
    },

    async resize(sandboxId, executionId, size) {
      const entry = find(sandboxId, executionId);
      if (entry.status !== 'running' || entry.size === null) return;
      demandRunning(sandboxId);
      entry.size = size;
    },

    async remove(sandboxId, executionId) {
      const key = `${sandboxId} ${executionId}`;
      entries.get(key)?.own.end(128 + constants.signals.SIGKILL);
      entries.delete(key);
    },
  };
}

function begin(own: OwnExecution, stdin: boolean, tty: TerminalSize | null): Entry {
  const input = own.stdin.getWriter();
  // It is known by its exit code when a command leaves its input unread.
  input.closed.catch(() => {});
  const entry: Entry = {
    own, output: { stdout: new KeptBytes(), stderr: new KeptBytes() }, input: stdin ? input : null, inputIsOpen: stdin,
    status: 'running', exitCode: null, reason: null, size: tty, changed: Promise.withResolvers(),
  };
  if (!stdin) input.close().catch(() => {});
  const change = (changes: Partial<Entry>): void => {
    const { changed } = entry;
    Object.assign(entry, changes, { changed: Promise.withResolvers() });
    changed.resolve();
  };
  const keep = async (stream: OutputStream): Promise<void> => {
    for await (const bytes of own[stream]) {
      entry.output[tty === null ? stream : 'stdout'].add(bytes);
      change({});
    }
  };
  void Promise.all([own.exited, keep('stdout'), keep('stderr')]).then(([exitCode]) =>
    change(exitCode === null ? { status: 'lost', reason: { code: 'processes_ended' } } : { status: 'exited', exitCode }));
  return entry;
}

function stateOf({ output: { stdout, stderr }, status, exitCode, reason }: Entry): ExecutionState {
  return { status, exitCode, reason, durable: true, stdout: sizeOf(stdout), stderr: sizeOf(stderr) };
}

function sizeOf({ oldest, end }: KeptBytes): KeptOutput {
  return { oldest, end };
}
