import { existsSync } from 'node:fs';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { SandboxRuntime } from '../../../../src/ports/sandbox-runtime.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { createHost } from './host.ts';
import { launchOf, programs } from './programs.ts';

const busybox = ['/bin/busybox', '/usr/bin/busybox'].find((path) => existsSync(path));

/** Makes busybox's programs the first ones of the PATH. */
async function useBusybox(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'skep-busybox-'));
  for (const name of ['cat', 'dd', 'tee']) await symlink(busybox ?? 'none', join(folder, name));
  vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`);
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true });
  });
}

// CI has busybox, because it makes an image of it.
test.skipIf(busybox === undefined && process.env['SKEP_REQUIRE_DOCKER'] === undefined)('with the programs of busybox, input arrives at once', async () => {
  await useBusybox();
  const host = await createHost();
  onTestFinished(() => host.close());
  const [starter, other] = [host.open(), host.open()];
  const { id } = await starter.start(launchOf(programs.counts), () => {}, neverAborts);
  const executionId = 'exec-1';
  const answers = shell('while read -r line; do echo "got $line"; done');
  await starter.executions.start(id, { executionId, command: answers, stdin: true, tty: null }, neverAborts);
  const output = await starter.executions.output(id, executionId, { stream: 'stdout', after: 0, follow: true }, neverAborts);
  const reader = output.getReader();
  /** Writes a line with a request that does not end before its line has arrived. */
  const write = async (runtime: SandboxRuntime, line: string): Promise<string> => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const written = runtime.executions.write(id, executionId, readable, false, neverAborts);
    void writer.write(Buffer.from(line));
    const { value } = await reader.read();
    await writer.close();
    await written;
    return Buffer.from(value ?? []).toString();
  };
  expect(await write(starter, 'one\n')).toBe('got one\n');
  expect(await write(other, 'two\n')).toBe('got two\n');
});
