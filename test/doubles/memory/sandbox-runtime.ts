import { Failure } from '../../../src/domain/failure.ts';
import { raceSignal } from '../../../src/ports/abort-signals.ts';
import { type Execution, type ExecutionRequest, type SandboxRuntime, unknownUsage } from '../../../src/ports/sandbox-runtime.ts';
import { sandboxPath } from '../../../src/adapters/sandbox-runtime/sandbox-path.ts';
import { tarEntries } from '../../../src/adapters/sandbox-runtime/tar.ts';
import { MemoryEngine } from './sandbox-engine.ts';
import { memoryExecutions } from './sandbox-executions.ts';
import { memoryFiles } from './sandbox-file-access.ts';
import { packed, unpack } from './sandbox-tar.ts';

/** A runtime for tests. Its sandboxes are records in memory, and run only the engine's program and command. */
export function createMemoryRuntime(engine: MemoryEngine = new MemoryEngine()): SandboxRuntime {
  const subscriptions = new Set<() => void>();
  const executions = new Set<Execution>();
  const closed = new AbortController();
  return {
    name: 'memory',
    ignores: ['image', 'resources', 'isolation', 'labels', 'runtimeOptions'],
    get capabilities() {
      return { freeze: engine.canFreeze };
    },
    executions: memoryExecutions(engine),
    files: memoryFiles(engine),
    async provide(spec, progress, signal) {
      signal.throwIfAborted();
      return raceSignal(engine.provider(spec, progress, signal), signal);
    },
    async start(launch, progress, signal) {
      signal.throwIfAborted();
      progress({ code: 'starting_command' });
      engine.start(launch);
      return engine.inspect(launch.id);
    },
    async freeze(id) {
      if (engine.canFreeze) engine.freeze(id);
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
    keptLaunch: async (id) => engine.keptLaunch(id),
    async execute(id, request, signal) {
      const execution = await execute(engine, id, request, signal);
      executions.add(execution);
      void execution.exited.then(() => executions.delete(execution));
      return execution;
    },
    putFiles: (id, directory, archive, signal) => putFiles(engine, id, directory, archive, signal),
    async getFiles(id, path, signal) {
      signal.throwIfAborted();
      return packed(engine.files(id), sandboxPath(path, 'path'), signal);
    },
    usage: async () => unknownUsage,
    diskSpace: async () => engine.disk,
    async logs(id, request, signal) {
      signal.throwIfAborted();
      return engine.logs(id, request, AbortSignal.any([signal, closed.signal]));
    },
    subscribe(listener) {
      const end = engine.subscribe(listener);
      subscriptions.add(end);
      return end;
    },
    check: async () => ({ ok: true, detail: 'sandboxes are records in memory' }),
    async close() {
      closed.abort(new Failure('runtime_unavailable', { runtime: 'memory', reason: { code: 'closed' }, retryAfterSeconds: 5 }));
      for (const end of subscriptions) end();
      for (const execution of executions) await execution.kill();
    },
  };
}

async function execute(engine: MemoryEngine, id: string, request: ExecutionRequest, signal: AbortSignal): Promise<Execution> {
  // Lets a signal that fires right after the call take effect, as with a slow runtime.
  await Promise.resolve();
  signal.throwIfAborted();
  const workingDir = request.workingDir === undefined ? {} : { workingDir: sandboxPath(request.workingDir, 'workingDir') };
  return engine.execute(id, { ...request, ...workingDir });
}

async function putFiles(
  engine: MemoryEngine, id: string, directory: string, archive: ReadableStream<Uint8Array>, signal: AbortSignal,
): Promise<void> {
  try {
    signal.throwIfAborted();
    await unpack(engine.files(id), sandboxPath(directory, 'directory'), tarEntries(archive, signal));
  } finally {
    if (!archive.locked) archive.cancel().catch(() => {});
  }
}
