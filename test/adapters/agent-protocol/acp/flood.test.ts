import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const program = fileURLToPath(new URL('flood.ts', import.meta.url));

test('a flood of 100,000 updates, 400 MB, goes through with the memory of a few', async () => {
  const { stdout } = await run(process.execPath, [program, '100000', '4000'], { timeout: 100_000, killSignal: 'SIGKILL' });
  const { maxMiB, ...rest } = JSON.parse(stdout) as { readonly maxMiB: number };
  expect(rest).toEqual({ updates: 100_000, stopReason: 'end_turn' });
  // Node alone takes some 100.
  expect(maxMiB).toBeLessThan(250);
});
