import assert from 'node:assert/strict';
import { freeze, type SandboxRuntimeStage, type StageCase, waitUntilStopped, waitFor } from './sandbox-runtime-harness.ts';

/** Asserts that a sandbox's program is held: another sandbox's program continues, and it does not. */
async function assertHeld({ begun, count, countsOn }: SandboxRuntimeStage, id: string): Promise<void> {
  const before = await count(id);
  const clock = await begun('counts');
  for (let times = 0; times < 5; times += 1) await countsOn(clock.id);
  assert.equal(await count(id), before, `the program of ${id} still counts`);
}

export const pauseCases: readonly StageCase[] = [
  [
    'freeze holds all processes, and keeps the exposed URLs',
    async (stage) => {
      const { runtime, begun, countsOn } = stage;
      const sandbox = await begun('counts');
      await countsOn(sandbox.id);
      const running = await runtime.inspect(sandbox.id);
      const observed = await freeze(runtime, sandbox.id);
      assert.deepEqual(observed, { ...running, state: 'frozen' });
      await assertHeld(stage, sandbox.id);
      assert.deepEqual(await runtime.inspect(sandbox.id), observed);
      assert.deepEqual(await freeze(runtime, sandbox.id), observed);
    },
    'if it freezes',
  ],
  [
    'freeze leaves a sandbox running if the runtime declares that it cannot freeze',
    async ({ runtime, begun, countsOn }) => {
      const sandbox = await begun('counts');
      assert.equal((await freeze(runtime, sandbox.id)).state, 'running', 'capabilities.freeze is false, and it froze');
      await countsOn(sandbox.id);
    },
    'if it cannot freeze',
  ],
  [
    'resume continues a frozen sandbox with its memory, and does nothing to a running one',
    async ({ runtime, begun, resume, count, countsOn, runs }) => {
      const sandbox = await begun('counts');
      await countsOn(sandbox.id);
      await freeze(runtime, sandbox.id);
      const before = await count(sandbox.id);
      assert.equal((await resume(sandbox)).state, 'running');
      await countsOn(sandbox.id);
      assert.ok((await count(sandbox.id)) > before, `the program of ${sandbox.id} does not count beyond ${before}`);
      assert.equal((await resume(sandbox)).state, 'running');
      await countsOn(sandbox.id);
      assert.equal(await runs(sandbox.id), 1);
    },
    'if it freezes',
  ],
  [
    'freezes and resumes a sandbox ten times',
    async ({ runtime, begun, resume, countsOn, runs }) => {
      const sandbox = await begun('counts');
      for (let times = 0; times < 10; times += 1) {
        assert.equal((await freeze(runtime, sandbox.id)).state, 'frozen', `freeze ${times}`);
        assert.equal((await resume(sandbox)).state, 'running', `resume ${times}`);
      }
      await countsOn(sandbox.id);
      assert.equal(await runs(sandbox.id), 1);
    },
    'if it freezes',
  ],
  [
    'stop ends all processes and keeps the files',
    async (stage) => {
      const { runtime, begun, countsOn, runs } = stage;
      const sandbox = await begun('counts');
      await countsOn(sandbox.id);
      const observed = await runtime.stop(sandbox.id);
      assert.equal(observed.state, 'stopped');
      assert.deepEqual(observed.exposedUrls, []);
      assert.equal(await runs(sandbox.id), 1);
      await assertHeld(stage, sandbox.id);
      assert.deepEqual(await runtime.stop(sandbox.id), observed);
      assert.equal((await freeze(runtime, sandbox.id)).state, 'stopped');
      assert.deepEqual(await runtime.inspect(sandbox.id), observed);
    },
  ],
  [
    'stop works on a frozen sandbox',
    async ({ runtime, begun, runs }) => {
      const sandbox = await begun('counts');
      await freeze(runtime, sandbox.id);
      assert.equal((await runtime.stop(sandbox.id)).state, 'stopped');
      assert.equal(await runs(sandbox.id), 1);
    },
    'if it freezes',
  ],
  [
    'stop asks the program to end before it kills it',
    async ({ runtime, begun, readFile }) => {
      const sandbox = await begun('says goodbye');
      await runtime.stop(sandbox.id);
      assert.equal(await readFile(sandbox.id, 'goodbye'), 'bye\n', 'what the program writes after the stop signal');
    },
  ],
  [
    'stop kills a program that ignores the stop signal',
    async (stage) => {
      const { runtime, begun, countsOn } = stage;
      const sandbox = await begun('stubborn');
      await countsOn(sandbox.id);
      assert.equal((await runtime.stop(sandbox.id)).state, 'stopped');
      await assertHeld(stage, sandbox.id);
    },
  ],
  [
    'resume runs a stopped sandbox again with its files',
    async ({ runtime, begun, resume, countsOn, runs }) => {
      const sandbox = await begun('counts');
      for (let life = 2; life < 5; life += 1) {
        await runtime.stop(sandbox.id);
        const observed = await resume(sandbox);
        assert.equal(observed.state, 'running', `run ${life}`);
        assert.equal(observed.exposedUrls.length, sandbox.spec.ports.length, `the URLs of run ${life}`);
        await waitFor(`the program of ${sandbox.id} runs`, () => runs(sandbox.id), (times) => times === life);
      }
      await countsOn(sandbox.id);
    },
  ],
  [
    'resume runs a sandbox again whose command exited or was killed',
    async ({ runtime, begun, start, launch, resume, crash, runs }) => {
      const ending = launch('exits');
      await start(ending);
      await waitUntilStopped(runtime, ending.id);
      await resume(ending);
      await waitFor(`the program of ${ending.id} runs`, () => runs(ending.id), (times) => times === 2);

      const killed = await begun('counts');
      await crash(killed.id);
      await waitUntilStopped(runtime, killed.id);
      assert.equal((await resume(killed)).state, 'running');
      await waitFor(`the program of ${killed.id} runs`, () => runs(killed.id), (times) => times === 2);
    },
  ],
  [
    'remove deletes a sandbox in any state and leaves nothing behind',
    async ({ runtime, begun, start, launch, leftovers }) => {
      const running = await begun('counts');
      const frozen = await begun('counts');
      const stopped = await begun('counts');
      const stubborn = await begun('stubborn');
      const ended = launch('exits');
      await freeze(runtime, frozen.id);
      await runtime.stop(stopped.id);
      await start(ended);
      for (const [name, { id }] of Object.entries({ running, frozen, stopped, stubborn, ended })) {
        await runtime.remove(id);
        assert.equal((await runtime.inspect(id)).state, 'absent', name);
        assert.deepEqual(await leftovers(id), [], name);
        await runtime.remove(id);
      }
      assert.deepEqual(await runtime.list(), []);
    },
  ],
  [
    'start after a removal creates a new sandbox without the old files',
    async ({ runtime, begun, start, runs }) => {
      const sandbox = await begun('counts');
      await runtime.remove(sandbox.id);
      assert.equal((await start(sandbox)).state, 'running');
      await waitFor(`the program of ${sandbox.id} runs`, () => runs(sandbox.id), (times) => times === 1);
    },
  ],
  [
    'does not affect other sandboxes by a freeze, stop, kill or removal',
    async (stage) => {
      const { runtime, begun, countsOn, crash } = stage;
      const frozen = await begun('counts');
      const stopped = await begun('counts');
      const killed = await begun('counts');
      const removed = await begun('counts');
      const running = await begun('counts');
      await freeze(runtime, frozen.id);
      await runtime.stop(stopped.id);
      await crash(killed.id);
      await runtime.remove(removed.id);
      await countsOn(running.id);
      if (stage.traits.freeze) await assertHeld(stage, frozen.id);
      await waitUntilStopped(runtime, killed.id);
      const states = new Map((await runtime.list()).map(({ id, state }) => [id, state]));
      const expected = { frozen: stage.frozen, stopped: 'stopped', killed: 'stopped', removed: undefined, running: 'running' };
      const found = Object.entries({ frozen, stopped, killed, removed, running }).map(([name, { id }]) => [name, states.get(id)]);
      assert.deepEqual(Object.fromEntries(found), expected);
    },
  ],
];
