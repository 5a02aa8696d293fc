import { AsyncLocalStorage } from 'node:async_hooks';
import { createMemoryRuntime, MemoryEngine } from '../../test/doubles/memory/index.ts';
import { newSandbox } from '../../src/domain/sandbox.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { unlimited } from '../../src/domain/admission-limits.ts';
import { createSqliteStore } from '../../src/adapters/store/sqlite/index.ts';
import type { SandboxRuntime } from '../../src/ports/sandbox-runtime.ts';
import { createSkep } from '../../src/composition/index.ts';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { boundedFigure, type Figure, median, timed } from '../figure.ts';

const few = 100;
const many = 10_000;
const rounds = 200;
const owner = 'bench';

/** Measures a page of 20 from many sandboxes against the same page from few, and counts the engine calls of a search. */
export async function* benchSearch(): AsyncGenerator<Figure> {
  const [small, large] = [await measure(few), await measure(many)];
  const reference = `${inUs(small.ms)}: with ${few}`;
  const texts = { name: `search with ${many} sandboxes`, measured: inUs(large.ms), reference, note: `a page of 20; ${rounds} rounds` };
  const calls = { measured: String(large.calls), reference: '0', ratio: null, bound: '0', ok: large.calls === 0 };
  yield boundedFigure(texts, large.ms / small.ms, { atMost: 2 });
  yield { name: 'engine calls of a search', ...calls, note: `${rounds} searches` };
}

interface Measured {
  /** The duration of a search, in milliseconds. */
  readonly ms: number;
  readonly calls: number;
}

async function measure(rows: number): Promise<Measured> {
  const dataDir = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  const store = await createSqliteStore({ dataDir });
  const spec = sandboxSpec({ id: 'web', command: ['serve'] });
  for (let row = 0; row < rows; row += 1) {
    const made = newSandbox({ id: `sb-${row}`, ownerId: owner, spec, sessionApiKey: `key-${row}`, now: row });
    await store.sandboxes.insert({ ...made, status: 'PAUSED', pauseKind: 'stop' }, unlimited);
  }
  let calls = 0;
  // The sweeper uses the engine at the same time. Its calls don't count.
  const searching = new AsyncLocalStorage<boolean>();
  const runtime = counted(createMemoryRuntime(new MemoryEngine()), () => (calls += searching.getStore() === true ? 1 : 0));
  const skep = await createSkep({ store, runtime, specs: [{ id: 'web', command: ['serve'] }], sweepEveryMs: 3_600_000 });
  const search = () => searching.run(true, () => skep.sandboxes.search(owner, {}, { after: null, limit: 20 }));
  try {
    const times: number[] = [];
    for (let round = 0; round < rounds; round += 1) times.push(await timed(search));
    return { ms: median(times), calls };
  } finally {
    await skep.close();
    await store.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

function inUs(ms: number): string {
  return `${(ms * 1000).toFixed(1)} µs`;
}

/** Wraps the runtime and counts every call. */
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
