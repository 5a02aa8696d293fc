import assert from 'node:assert/strict';
import { buffer } from 'node:stream/consumers';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import type { Execution } from '../../src/ports/sandbox-runtime.ts';
import { assertOver, assertStill, beating, beatsOn } from './sandbox-runtime-beats.ts';
import { freeze, type SandboxRuntimeStage, type StageCase, waitFor } from './sandbox-runtime-harness.ts';
import { assertRejects, decidedBy, withTimeout } from './contract.ts';

const endings: readonly StageCase[] = (['stop', 'remove', 'crash'] as const).map((ending) => [
  `ends a running command on ${ending} of its sandbox`,
  async (stage) => {
    const { sandbox, execution } = await beating(stage);
    if (ending === 'crash') await stage.crash(sandbox.id);
    else await stage.runtime[ending](sandbox.id);
    await assertOver(execution);
    if (ending !== 'remove') await assertStill(stage, sandbox.id);
    await execution.kill();
  },
]);

export const executionEndCases: readonly StageCase[] = [
  [
    'stops a sandbox while a command has unread output',
    async ({ runtime, begun, commands }) => {
      const sandbox = await begun('counts');
      const execution = await runtime.execute(sandbox.id, { command: commands.floods }, neverAborts);
      await readSome(execution);
      assert.equal((await runtime.stop(sandbox.id)).state, 'stopped');
      await assertOver(execution);
    },
  ],
  [
    'kills a command with all its child processes, even with unread output',
    async (stage) => {
      const { sandbox, execution } = await beating(stage);
      await Promise.all([execution.kill(), execution.kill()]);
      assert.equal(await execution.exited, 128 + 9, 'the exit code of a killed command');
      await assertStill(stage, sandbox.id);
      await execution.kill();
      const flooding = await stage.runtime.execute(sandbox.id, { command: stage.commands.floods }, neverAborts);
      await readSome(flooding);
      await flooding.kill();
      assert.equal(await flooding.exited, 128 + 9, 'the exit code of a killed command with unread output');
      await buffer(flooding.stdout);
      await stage.countsOn(sandbox.id);
    },
    'can share',
  ],
  [
    'holds a command while its sandbox is frozen',
    async (stage) => {
      const { sandbox, execution } = await beating(stage);
      await freeze(stage.runtime, sandbox.id);
      await assertStill(stage, sandbox.id);
      await stage.resume(sandbox);
      await beatsOn(stage, sandbox.id);
      await execution.kill();
      await stage.countsOn(sandbox.id);
    },
    'if it freezes',
  ],
  [
    'kills a command in a frozen sandbox at once or on resume, and the sandbox stays frozen',
    async (stage) => {
      const { sandbox, execution } = await beating(stage);
      await freeze(stage.runtime, sandbox.id);
      const killed = execution.kill();
      await decidedBy(stage.traits, 'killWhileFrozen', async (effect) => {
        if (effect === 'at once') await withTimeout('the kill', killed);
      });
      assert.equal((await stage.runtime.inspect(sandbox.id)).state, 'frozen');
      await stage.resume(sandbox);
      await killed;
      await assertOver(execution);
      await assertStill(stage, sandbox.id);
      await stage.countsOn(sandbox.id);
    },
    'if it freezes',
  ],
  ...endings,
  [
    'starts no command if its signal has fired',
    async (stage) => {
      const { runtime, begun, commands } = stage;
      const sandbox = await begun('counts');
      const reason = new Error('no longer wanted');
      await assertRejects(runtime.execute(sandbox.id, { command: commands.beats }, AbortSignal.abort(reason)), reason);
      const controller = new AbortController();
      const leaving = runtime.execute(sandbox.id, { command: commands.beats }, controller.signal);
      controller.abort(reason);
      await assertRejects(leaving, reason);
      await runtime.close();
      await assertStill({ ...stage, ...(await reopened(stage)) }, sandbox.id);
    },
    'can share',
  ],
  [
    'ends all commands when the runtime is closed, and the sandbox continues',
    async (stage) => {
      const { sandbox, execution } = await beating(stage);
      await stage.runtime.close();
      await assertOver(execution);
      await stage.countsOn(sandbox.id);
      await assertStill({ ...stage, ...(await reopened(stage)) }, sandbox.id);
    },
    'can share',
  ],
];

/** Waits for the first output of a command, which leaves the rest unread. */
async function readSome({ stdout }: Execution): Promise<void> {
  const reader = stdout.getReader();
  assert.equal((await reader.read()).done, false, 'the command has no output');
  reader.releaseLock();
}

/** Opens another runtime object, to start sandboxes after the stage's own runtime was closed. */
async function reopened({ open, launch, runs }: SandboxRuntimeStage): Promise<Pick<SandboxRuntimeStage, 'begun'>> {
  const runtime = await open();
  return {
    async begun(program) {
      const sandbox = launch(program);
      await runtime.start(sandbox, () => {}, neverAborts);
      await waitFor(`the program of ${sandbox.id} runs`, () => runs(sandbox.id), (times) => times > 0);
      return sandbox;
    },
  };
}
