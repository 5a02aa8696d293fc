import { createMemoryRuntime, type MemoryEngine } from '../../doubles/memory/index.ts';
import { Failure } from '../../../src/domain/failure.ts';
import type { OpenExecutionStart } from '../../../src/ports/sandbox-executions.ts';
import type { Execution, SandboxRuntime } from '../../../src/ports/sandbox-runtime.ts';

/** A command that was run in a sandbox. */
export interface Executed {
  readonly instanceId: string;
  readonly request: OpenExecutionStart;
  /** Writes to its standard error. */
  readonly complain: (text: string) => void;
  /** Ends its standard output only, as a process does that is about to end. */
  readonly endOutput: () => void;
  /** Ends only the process. Its streams stay open in a child process. */
  readonly exit: (code: number) => void;
  readonly end: (code: number | null) => void;
}

/** Files that were put into a sandbox. */
export interface Put {
  readonly instanceId: string;
  readonly directory: string;
  readonly archive: string;
}

/** The commands that all processes of Skep ran in the sandboxes of a memory engine, and the files that they put there. */
export class Host {
  readonly engine: MemoryEngine;
  readonly executed: Executed[] = [];
  readonly puts: Put[] = [];
  /** Commands that are killed never report their end. */
  stuck = false;
  /** A kill also ends what has started under the same id until this resolves. */
  killing: Promise<void> | null = null;
  /** The stop of a sandbox does not report the end of its commands. */
  endsUnnoticed = false;
  readonly #brings: Readonly<Record<string, string>>;
  readonly #running = new Set<Executed>();

  /** `brings` are the files, by their paths, that each archive contains. */
  constructor(engine: MemoryEngine, brings: Readonly<Record<string, string>> = {}) {
    this.engine = engine;
    this.#brings = brings;
    engine.subscribe(() => this.notice());
  }

  /** Commands that run now. */
  get running(): readonly Executed[] {
    this.notice();
    return [...this.#running];
  }

  /** Returns the runtime of one process. Its commands end with the process. */
  runtime(): { readonly runtime: SandboxRuntime; readonly cut: () => void } {
    const memory = createMemoryRuntime(this.engine);
    const own = new Set<Executed>();
    const cut = (): void => {
      for (const executed of own) executed.end(null);
    };
    const noticing = <A extends readonly unknown[], R>(method: (...args: A) => Promise<R>) => async (...args: A): Promise<R> => {
      const result = await method(...args);
      this.notice();
      return result;
    };
    const runtime: SandboxRuntime = {
      ...memory,
      get capabilities() {
        return memory.capabilities;
      },
      provide: async () => ({ kind: 'provided' }),
      stop: noticing(memory.stop.bind(memory)),
      remove: noticing(memory.remove.bind(memory)),
      executions: {
        ...memory.executions,
        open: async (id, request, signal) => {
          signal.throwIfAborted();
          for (const earlier of this.#running) {
            if (earlier.instanceId === id && earlier.request.executionId === request.executionId) earlier.end(137);
          }
          const execution = this.#execute(id, request);
          own.add(execution.executed);
          return { ...execution, durable: false, handedOver: { bytes: 0, isCut: false }, forgetBefore: async () => {}, leave: () => {} };
        },
      },
      putFiles: async (instanceId, directory, stream) => {
        let archive = '';
        for await (const chunk of stream) archive += new TextDecoder().decode(chunk);
        this.puts.push({ instanceId, directory, archive });
        for (const [path, text] of Object.entries(this.#brings)) this.engine.files(instanceId).set(`${directory}/${path}`, text);
      },
      close: async () => {
        cut();
        await memory.close();
      },
    };
    return { runtime, cut };
  }

  #execute(instanceId: string, request: OpenExecutionStart): Execution & { readonly executed: Executed } {
    const { state } = this.engine.inspect(instanceId);
    if (state === 'absent') throw new Failure('sandbox_not_found', { id: instanceId });
    if (state !== 'running') throw new Failure('sandbox_not_running', { id: instanceId, status: state });
    const { promise: exited, resolve } = Promise.withResolvers<number | null>();
    const [out, err] = [pipe(), pipe()];
    let isEnding = false;
    const executed: Executed = {
      instanceId,
      request,
      complain: (text) => err.write(text),
      endOutput: () => {
        isEnding = true;
        out.end();
      },
      exit: resolve,
      end: (code) => {
        this.#running.delete(executed);
        out.end();
        err.end();
        resolve(code);
      },
    };
    this.executed.push(executed);
    this.#running.add(executed);
    const stdin = new WritableStream<Uint8Array>({ close: () => (isEnding ? undefined : executed.end(0)) });
    const kill = async (): Promise<void> => {
      executed.end(137);
      if (this.stuck) await new Promise(() => {});
      await this.killing;
      for (const later of this.killing === null ? [] : this.#running) {
        if (later.instanceId === instanceId && later.request.executionId === request.executionId) later.end(137);
      }
    };
    return { executed, stdin, stdout: out.readable, stderr: err.readable, exited, kill };
  }

  /** Ends the commands of sandboxes that run no more. */
  notice(): void {
    if (this.endsUnnoticed) return;
    for (const executed of this.#running) {
      const { state } = this.engine.inspect(executed.instanceId);
      if (state !== 'running' && state !== 'frozen') executed.end(137);
    }
  }
}

function pipe() {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>(undefined, { highWaterMark: 100 }, { highWaterMark: 100 });
  const writer = writable.getWriter();
  let ended = false;
  return {
    readable,
    write: (text: string): void => void writer.write(new TextEncoder().encode(text)).catch(() => {}),
    end: (): void => {
      if (!ended) void writer.close().catch(() => {});
      ended = true;
    },
  };
}
