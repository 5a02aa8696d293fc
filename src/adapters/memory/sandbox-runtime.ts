import { absent, type SandboxFact } from '../../domain/sandbox-fact.ts';
import type { SandboxLaunch, SandboxRuntime } from '../../ports/sandbox-runtime.ts';

/** What a program in a sandbox that is only in memory can do. */
export interface MemorySandbox {
  readonly launch: SandboxLaunch;
  /** Kept until the sandbox is removed. */
  readonly files: Map<string, string>;
  readonly isFrozen: () => boolean;
  /** Ends the program, with how it ended in words. */
  readonly end: (detail: string) => void;
}

/** Stands for the command of a spec: called each time that it is run, and answers with what undoes it when it ends. */
export type MemoryProgram = (sandbox: MemorySandbox) => (() => void) | void;

interface Entry {
  readonly files: Map<string, string>;
  launch: SandboxLaunch;
  state: 'running' | 'frozen' | 'stopped';
  detail: string | null;
  run: object;
  undo: (() => void) | void;
}

/** The host on which sandboxes of memory runtimes run. It outlives the runtimes that are made over it. */
export class MemoryEngine {
  readonly #sandboxes = new Map<string, Entry>();
  readonly #listeners = new Set<{ readonly call: (id: string) => void }>();
  readonly #program: MemoryProgram;

  /** Without a program, every command runs until it is stopped. */
  constructor(program: MemoryProgram = () => {}) {
    this.#program = program;
  }

  /** Ends a sandbox's program from outside, and wakes who listens. */
  crash(id: string, detail = 'its processes were killed'): void {
    const entry = this.#sandboxes.get(id);
    if (entry !== undefined && entry.state !== 'stopped') this.#end(entry, detail, true);
  }

  /** The file's text; null when there is none. */
  readFile(id: string, name: string): string | null {
    return this.#sandboxes.get(id)?.files.get(name) ?? null;
  }

  list(): SandboxFact[] {
    return [...this.#sandboxes.keys()].toSorted().map((id) => this.inspect(id));
  }

  inspect(id: string): SandboxFact {
    const entry = this.#sandboxes.get(id);
    if (entry === undefined) return absent(id);
    const { state, detail, launch } = entry;
    const ports = state === 'stopped' ? [] : launch.spec.ports;
    // A name that no resolver knows, since nothing listens there.
    const exposedUrls = ports.map(({ name, port }) => ({ name, port, url: `http://${id}.invalid:${port}` }));
    return { id, state, exposedUrls, detail };
  }

  start(launch: SandboxLaunch): void {
    if (this.#sandboxes.has(launch.id)) return;
    const entry: Entry = { files: new Map(), launch, state: 'stopped', detail: null, run: {}, undo: undefined };
    this.#sandboxes.set(launch.id, entry);
    this.#run(entry, launch);
  }

  freeze(id: string): void {
    const entry = this.#sandboxes.get(id);
    if (entry?.state === 'running') entry.state = 'frozen';
  }

  stop(id: string): void {
    const entry = this.#sandboxes.get(id);
    if (entry !== undefined && entry.state !== 'stopped') this.#end(entry, 'it was stopped', false);
  }

  resume(launch: SandboxLaunch): void {
    const entry = this.#sandboxes.get(launch.id);
    if (entry?.state === 'frozen') entry.state = 'running';
    else if (entry?.state === 'stopped') this.#run(entry, launch);
  }

  remove(id: string): void {
    this.stop(id);
    this.#sandboxes.delete(id);
  }

  subscribe(call: (id: string) => void): () => void {
    const listener = { call };
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #run(entry: Entry, launch: SandboxLaunch): void {
    const run = {};
    Object.assign(entry, { launch, run, state: 'running', detail: null, undo: undefined });
    const undo = this.#program({
      launch,
      files: entry.files,
      isFrozen: () => entry.run === run && entry.state === 'frozen',
      end: (detail) => {
        if (entry.run === run && entry.state !== 'stopped') this.#end(entry, detail, true);
      },
    });
    if (entry.run === run && entry.state !== 'stopped') entry.undo = undo;
    else undo?.();
  }

  #end(entry: Entry, detail: string, unasked: boolean): void {
    Object.assign(entry, { state: 'stopped', detail });
    entry.undo?.();
    if (unasked) for (const listener of this.#listeners) listener.call(entry.launch.id);
  }
}

/** A runtime for tests: its sandboxes are records in memory, and run nothing but the engine's program. */
export function createMemoryRuntime(engine: MemoryEngine = new MemoryEngine()): SandboxRuntime {
  const subscriptions = new Set<() => void>();
  return {
    name: 'memory',
    async start(launch, progress, signal) {
      signal.throwIfAborted();
      progress('starting its program');
      engine.start(launch);
      return engine.inspect(launch.id);
    },
    async freeze(id) {
      engine.freeze(id);
      return engine.inspect(id);
    },
    async stop(id) {
      engine.stop(id);
      return engine.inspect(id);
    },
    async resume(launch, signal) {
      signal.throwIfAborted();
      engine.resume(launch);
      return engine.inspect(launch.id);
    },
    async remove(id) {
      engine.remove(id);
    },
    inspect: async (id) => engine.inspect(id),
    list: async () => engine.list(),
    subscribe(listener) {
      const end = engine.subscribe(listener);
      subscriptions.add(end);
      return end;
    },
    check: async () => ({ ok: true, detail: 'sandboxes are records in memory' }),
    async close() {
      for (const end of subscriptions) end();
    },
  };
}
