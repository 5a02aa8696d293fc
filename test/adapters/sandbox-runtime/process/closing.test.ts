import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createProcessRuntime } from '../../../../src/adapters/sandbox-runtime/process/index.ts';
import { launchOf, programs } from './programs.ts';

const listeners = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPServerWrap').length;

test('closing the runtime finishes a start whose caller has left, and leaves no port open', async () => {
  const before = listeners();
  for (let round = 0; round < 10; round += 1) {
    const root = await mkdtemp(join(tmpdir(), 'skep-closing-'));
    const runtime = createProcessRuntime({ root });
    const { spec, ...launch } = { ...launchOf(programs.counts), id: `sb-closing-${round}` };
    const ports = [1, 2, 3].map((port) => ({ name: `P${port}`, port }));
    const leaving = new AbortController();
    const starting = runtime.start({ ...launch, spec: { ...spec, ports } }, () => {}, leaving.signal);
    leaving.abort(new Error('left'));
    await expect(starting).rejects.toThrow('left');
    await runtime.close();

    const next = createProcessRuntime({ root });
    const { state } = await next.inspect(launch.id);
    expect(['absent', 'created', 'running']).toContain(state);
    expect((await next.inspect(launch.id)).state).toBe(state);
    await next.remove(launch.id);
    await next.close();
    await rm(root, { recursive: true });
  }
  expect(listeners()).toBe(before);
});
