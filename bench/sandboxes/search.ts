import { createMemoryRuntime, MemoryEngine } from '../../src/adapters/memory/index.ts';
import { newSandbox } from '../../src/domain/sandbox.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec-defaults.ts';
import { unlimited } from '../../src/domain/limits.ts';
import { createSqliteStore } from '../../src/adapters/sqlite/index.ts';
import type { SandboxRuntime } from '../../src/ports/sandbox-runtime.ts';
import { createSkep } from '../../src/composition/index.ts';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { boundedFigure, formatFigures, inMs, median, timed, type Figure } from '../figure.ts';

const few = 100;
const many = 10_000;
const rounds = 200;
const owner = 'bench';

/** A page of 20 where many sandboxes are known, beside few; and what it asks of the engine. */
export async function benchSearch(): Promise<Figure[]> {
  const [small, large] = [await measure(few), await measure(many)];
  const texts = { name: `search with ${many} sandboxes known`, measured: inMs(large.ms), reference: `${inMs(small.ms)}: with ${few}` };
  return [
    boundedFigure({ ...texts, note: 'a page of 20' }, large.ms / small.ms, { atMost: 2 }),
    { name: 'engine calls of a search', measured: String(large.calls), reference: '0', ratio: null, bound: '0', ok: large.calls === 0, note: `${rounds} searches` },
  ];
}

async function measure(rows: number): Promise<{ readonly ms: number; readonly calls: number }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  const store = await createSqliteStore({ dataDir });
  const spec = sandboxSpec({ id: 'web', command: ['serve'] });
  for (let row = 0; row < rows; row += 1) {
    const made = newSandbox({ id: `sb-${row}`, ownerId: owner, spec, sessionApiKey: `key-${row}`, now: row });
    await store.sandboxes.insert({ ...made, status: 'PAUSED', pauseKind: 'stop' }, unlimited);
  }
  let calls = 0;
  const skep = await createSkep({ store, runtime: counted(createMemoryRuntime(new MemoryEngine()), () => (calls += 1)), specs: [spec], sweepEveryMs: 3_600_000 });
  try {
    calls = 0;
    const times: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      times.push(await timed(() => skep.sandboxes.search(owner, {}, { after: null, limit: 20 })));
    }
    return { ms: median(times), calls };
  } finally {
    await skep.close();
    await store.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** The runtime, every call of which is counted. */
function counted(runtime: SandboxRuntime, count: () => void): SandboxRuntime {
  return new Proxy(runtime, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        count();
        return Reflect.apply(member, target, args);
      };
    },
  });
}

if (import.meta.main) process.stdout.write(formatFigures(await benchSearch()));
