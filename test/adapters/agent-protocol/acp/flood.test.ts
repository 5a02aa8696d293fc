import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const flood = fileURLToPath(new URL('flood.ts', import.meta.url));
const hostile = fileURLToPath(new URL('hostile.ts', import.meta.url));

test('a turn with 100,000 updates (400 MB) needs less than 250 MiB of memory', async () => {
  const { stdout } = await run(process.execPath, [flood, '100000', '4000'], { timeout: 100_000, killSignal: 'SIGKILL' });
  const { maxMiB, ...rest } = JSON.parse(stdout) as { readonly maxMiB: number };
  expect(rest).toEqual({ updates: 100_000, stopReason: 'end_turn' });
  // Node alone takes about 100.
  expect(maxMiB).toBeLessThan(250);
});

test('an agent can fill the memory neither with long kinds of calls, nor with open requests, nor with a line in single bytes', async () => {
  const { stdout } = await run(process.execPath, [hostile], { timeout: 100_000, killSignal: 'SIGKILL' });
  const { asked, heldMiB } = JSON.parse(stdout) as { readonly asked: number; readonly heldMiB: Readonly<Record<string, number>> };
  expect(asked).toBe(64);
  // The known calls of a turn may have 32.
  expect(Math.max(...Object.values(heldMiB))).toBeLessThan(100);
});
