import type { Execution, SandboxRuntime } from '../../../src/ports/sandbox-runtime.ts';
import { sandboxPath } from '../../../src/adapters/sandbox-runtime/sandbox-path.ts';
import { tarEntries } from '../../../src/adapters/sandbox-runtime/tar.ts';
import { raceSignal } from '../../../src/adapters/shared/timeout.ts';
import { MemoryEngine } from './sandbox-engine.ts';
import { packed, unpack } from './sandbox-tar.ts';

/** A runtime for tests: its sandboxes are records in memory, and run nothing but the engine's program and command. */
export function createMemoryRuntime(engine: MemoryEngine = new MemoryEngine()): SandboxRuntime {
  const subscriptions = new Set<() => void>();
  const executions = new Set<Execution>();
  return {
    name: 'memory',
    ignores: ['image', 'resources', 'isolation', 'labels', 'runtimeOptions'],
    async provide(spec, progress, signal) {
      signal.throwIfAborted();
      return raceSignal(engine.provider(spec, progress, signal), signal);
    },
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
    async execute(id, request, signal) {
      // A caller that leaves right after the call is told so, as it is by a runtime that takes its time.
      await Promise.resolve();
      signal.throwIfAborted();
      const workingDir = request.workingDir === undefined ? {} : { workingDir: sandboxPath(request.workingDir, 'working_dir') };
      const execution = engine.execute(id, { ...request, ...workingDir });
      executions.add(execution);
      void execution.exited.then(() => executions.delete(execution));
      return execution;
    },
    async putFiles(id, directory, archive, signal) {
      try {
        signal.throwIfAborted();
        const path = sandboxPath(directory, 'directory');
        await unpack(engine.files(id), path, tarEntries(archive, signal));
      } finally {
        if (!archive.locked) archive.cancel().catch(() => {});
      }
    },
    async getFiles(id, path, signal) {
      signal.throwIfAborted();
      return packed(engine.files(id), sandboxPath(path, 'path'), signal);
    },
    subscribe(listener) {
      const end = engine.subscribe(listener);
      subscriptions.add(end);
      return end;
    },
    check: async () => ({ ok: true, detail: 'sandboxes are records in memory' }),
    async close() {
      for (const end of subscriptions) end();
      for (const execution of executions) await execution.kill();
    },
  };
}
