import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createProcessRuntime } from '../../../../src/adapters/sandbox-runtime/process/index.ts';
import { launchOf, programs } from './programs.ts';

const listeners = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPServerWrap').length;

test('closing the runtime finishes a start whose caller has left, and leaves no port open', async () => {
  const before = listeners();
  for (let round = 0; round < 3; round += 1) {
    const root = await mkdtemp(join(tmpdir(), 'skep-closing-'));
    const runtime = createProcessRuntime({ root });
    const { spec, ...launch } = { ...launchOf(programs.counts), id: `sb-closing-${round}` };
    const ports = [1, 2, 3].map((port) => ({ name: `P${port}`, port }));
    const leaving = new AbortController();
    // The progress is reported just before the ports are reserved and the command is run.
    const starting = runtime.start({ ...launch, spec: { ...spec, ports } }, () => leaving.abort(new Error('left')), leaving.signal);
    await expect(starting).rejects.toThrow('left');
    await runtime.close();

    const next = createProcessRuntime({ root });
    expect((await next.inspect(launch.id)).state).toBe('running');
    await next.remove(launch.id);
    await next.close();
    await rm(root, { recursive: true });
  }
  // Servers of earlier tests may end meanwhile.
  expect(listeners()).toBeLessThanOrEqual(before);
});
