import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createSqliteStore } from '../../src/adapters/store/sqlite/index.ts';
import { createSkep, type Sandbox, type Skep, type SkepOptions } from '../../src/composition/index.ts';
import { readDeploymentFile } from '../../src/composition/config/deployment-file.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { clearUp } from '../engine.ts';
import { command, image, port, ready } from './raw.ts';

const owner = 'bench';

/** A deployment on the engine with its store on disk. Closing it removes all its sandboxes. */
export interface BenchDeployment extends AsyncDisposable {
  readonly skep: Skep;
  /** Starts a sandbox. Resolves when it is RUNNING. */
  running(): Promise<Sandbox>;
  /** Resolves when the sandbox is RUNNING. */
  untilRunning(id: string): Promise<Sandbox>;
  /** Resolves when this many members of the pool are ready. */
  poolFull(size: number): Promise<void>;
  readonly owner: string;
}

/** Creates the deployment, with a pool of `poolSize`. */
export async function openDeployment(
  poolSize = 0, options: SkepOptions = {}, spec: Partial<NonNullable<SkepOptions['specs']>[number]> = {},
): Promise<BenchDeployment> {
  const dataDir = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  const store = await createSqliteStore({ dataDir });
  const skep = await createSkep({
    dataDir,
    store,
    runtime: { kind: 'docker' },
    specs: [{ id: 'web', image, command, ports: [{ name: 'WEB', port }], ready, pool: { size: poolSize }, ...spec }],
    ...options,
  });
  const arrivals = followArrivals(skep);
  const untilRunning = async (id: string): Promise<Sandbox> => {
    await arrivals.seen(id);
    const sandbox = await skep.sandboxes.get(owner, id);
    if (sandbox.status !== 'RUNNING') throw new Error(`${id} is ${sandbox.status}: ${JSON.stringify(sandbox.statusReason)}`);
    return sandbox;
  };
  const running = async (): Promise<Sandbox> => {
    const sandbox = await skep.sandboxes.start(owner, { specId: null });
    return sandbox.status === 'RUNNING' ? sandbox : untilRunning(sandbox.id);
  };
  return {
    skep,
    owner,
    untilRunning,
    running,
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
      await arrivals.over;
      await store.close();
      await clearUp(readDeploymentFile(dataDir)?.id ?? 'none');
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/**
 * Reads the status of each sandbox after its start from the event log, as a client that follows it. Polling would be measured too.
 */
function followArrivals(skep: Skep): { seen(id: string): Promise<void>; readonly over: Promise<void> } {
  const waits = new Map<string, PromiseWithResolvers<void>>();
  const waitFor = (id: string): PromiseWithResolvers<void> => {
    const wait = waits.get(id) ?? Promise.withResolvers<void>();
    waits.set(id, wait);
    return wait;
  };
  const read = async (): Promise<void> => {
    const batches = skep.events.follow(owner, { kinds: ['sandbox_moved'] }, 0, neverAborts);
    for await (const batch of batches) {
      for (const { data, sandboxId } of batch) {
        if (sandboxId !== null && 'pauseKind' in data && data.to !== 'STARTING') waitFor(sandboxId).resolve();
      }
    }
  };
  return { seen: (id) => waitFor(id).promise, over: read() };
}

async function removeAll(skep: Skep): Promise<void> {
  const { items } = await skep.sandboxes.search(owner, {}, { after: null, limit: 100 });
  await Promise.all(items.map(({ id }) => skep.sandboxes.delete(owner, id)));
  if (items.length === 100) await removeAll(skep);
}
