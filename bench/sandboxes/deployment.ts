import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createSqliteStore } from '../../src/adapters/sqlite/index.ts';
import { createSkep, type Sandbox, type Skep, type SkepOptions } from '../../src/composition/index.ts';
import { command, image, port, ready } from './raw.ts';

const owner = 'bench';

/** A deployment over the engine, with its store on disk, which is gone with all its sandboxes when it is closed. */
export interface BenchDeployment extends AsyncDisposable {
  readonly skep: Skep;
  /** Starts a sandbox and answers when it is RUNNING. */
  running(): Promise<Sandbox>;
  /** Answers when the sandbox is RUNNING. */
  untilRunning(id: string): Promise<Sandbox>;
  /** Answers when so many members of the pool wait. */
  poolFull(size: number): Promise<void>;
  readonly owner: string;
}

/** `poolSize` members are kept ready. */
export async function openDeployment(poolSize = 0, options: SkepOptions = {}): Promise<BenchDeployment> {
  const dataDir = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  const store = await createSqliteStore({ dataDir });
  const skep = await createSkep({
    dataDir,
    store,
    runtime: { kind: 'docker' },
    specs: [{ id: 'web', image, command, ports: [{ name: 'WEB', port }], ready, pool: { size: poolSize } }],
    ...options,
  });
  const untilRunning = async (id: string): Promise<Sandbox> => {
    for (;;) {
      const sandbox = await skep.sandboxes.get(owner, id);
      if (sandbox.status === 'RUNNING') return sandbox;
      if (sandbox.status !== 'STARTING') throw new Error(`${id} is ${sandbox.status}: ${sandbox.statusDetail}`);
      await pause(1);
    }
  };
  return {
    skep,
    owner,
    untilRunning,
    running: async () => untilRunning((await skep.sandboxes.start(owner, { specId: null })).id),
    async poolFull(size) {
      const deadline = performance.now() + 300_000;
      while ((await store.sandboxes.pooled()).filter(({ sandbox }) => sandbox.status === 'RUNNING').length < size) {
        if (performance.now() > deadline) throw new Error('the pool did not fill');
        await pause(20);
      }
    },
    async [Symbol.asyncDispose]() {
      await removeAll(skep);
      await skep.close();
      await store.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function removeAll(skep: Skep): Promise<void> {
  const { items } = await skep.sandboxes.search(owner, {}, { after: null, limit: 100 });
  await Promise.all(items.map(({ id }) => skep.sandboxes.delete(owner, id)));
  if (items.length === 100) await removeAll(skep);
}
