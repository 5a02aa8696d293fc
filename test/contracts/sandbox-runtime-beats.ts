import assert from 'node:assert/strict';
import { buffer } from 'node:stream/consumers';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import type { Execution, SandboxLaunch } from '../../src/ports/sandbox-runtime.ts';
import { type SandboxRuntimeStage, waitFor } from './sandbox-runtime-harness.ts';

/** Waits until the command `beats` has written a higher number. */
export async function beatsOn({ readFile }: SandboxRuntimeStage, id: string): Promise<void> {
  const beat = async (): Promise<number> => Number((await readFile(id, 'beat')) ?? '0');
  const before = await beat();
  await waitFor(`the command in ${id} writes a heartbeat after ${before}`, beat, (now) => now > before);
}

/** Asserts that no process of the command runs: another sandbox's program continues, and the command does not. */
export async function assertStill({ readFile, begun, countsOn }: SandboxRuntimeStage, id: string): Promise<void> {
  const before = await readFile(id, 'beat');
  const clock = await begun('counts');
  for (let times = 0; times < 5; times += 1) await countsOn(clock.id);
  assert.equal(await readFile(id, 'beat'), before, `a process of the command in ${id} still writes heartbeats`);
}

/** Starts a sandbox, and the command `beats` in it. */
export async function beating(stage: SandboxRuntimeStage): Promise<{ readonly sandbox: SandboxLaunch; readonly execution: Execution }> {
  const sandbox = await stage.begun('counts');
  const execution = await stage.runtime.execute(sandbox.id, { command: stage.commands.beats }, neverAborts);
  await beatsOn(stage, sandbox.id);
  return { sandbox, execution };
}

/** Waits until the execution has ended. Asserts that it did not end by itself. */
export async function assertOver({ exited, stdout, stderr }: Execution): Promise<void> {
  const [code] = await Promise.all([exited, buffer(stdout), buffer(stderr)]);
  assert.ok(code === null || code > 128, `the command ended by itself, with the exit code ${code}`);
}
