import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const program = fileURLToPath(new URL('flood.ts', import.meta.url));

test('a turn with 100,000 updates (400 MB) needs less than 250 MiB of memory', async () => {
  const { stdout } = await run(process.execPath, [program, '100000', '4000'], { timeout: 100_000, killSignal: 'SIGKILL' });
  const { maxMiB, ...rest } = JSON.parse(stdout) as { readonly maxMiB: number };
  expect(rest).toEqual({ updates: 100_000, stopReason: 'end_turn' });
  // Node alone takes about 100.
  expect(maxMiB).toBeLessThan(250);
});
