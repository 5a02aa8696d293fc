import { createMemoryRuntime, MemoryEngine } from '../../test/doubles/memory/index.ts';
import { newSandbox } from '../../src/domain/sandbox.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { unlimited } from '../../src/domain/sandbox-limits.ts';
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

/** A page of 20 where many sandboxes are known, beside few, read anew and as it was read before; and what it asks of the engine. */
export async function* benchSearch(): AsyncGenerator<Figure> {
  const [small, large] = [await measure(few), await measure(many)];
  const figure = (which: 'anew' | 'again', note: string): Figure =>
    boundedFigure(
      { name: `search with ${many} sandboxes known, ${note}`, measured: inUs(large[which]), reference: `${inUs(small[which])}: with ${few}`, note: `a page of 20; ${rounds} rounds` },
      large[which] / small[which],
      { atMost: 2 },
    );
  yield figure('anew', 'after a write');
  yield figure('again', 'with none between');
  yield { name: 'engine calls of a search', measured: String(large.calls), reference: '0', ratio: null, bound: '0', ok: large.calls === 0, note: `${2 * rounds} searches` };
}

interface Measured {
  /** Milliseconds of a search after something was written, and after nothing was. */
  readonly anew: number;
  readonly again: number;
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
  const skep = await createSkep({ store, runtime: counted(createMemoryRuntime(new MemoryEngine()), () => (calls += 1)), specs: [spec], sweepEveryMs: 3_600_000 });
  const search = () => skep.sandboxes.search(owner, {}, { after: null, limit: 20 });
  try {
    calls = 0;
    const [anew, again]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
      await store.sandboxes.touch('sb-0', 1_000_000 + round);
      anew.push(await timed(search));
      again.push(await timed(search));
    }
    return { anew: median(anew), again: median(again), calls };
  } finally {
    await skep.close();
    await store.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

function inUs(ms: number): string {
  return `${(ms * 1000).toFixed(1)} µs`;
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
