import assert from 'node:assert/strict';
import type { SandboxRuntime } from '../../src/ports/sandbox-runtime.ts';
import { decidedBy } from './contract.ts';
import { eventually, freeze, type StageCase } from './sandbox-runtime-harness.ts';

/** Collects the ids that a runtime reports to its listeners. */
function listen(runtime: SandboxRuntime): { readonly woken: Set<string>; readonly end: () => void } {
  const woken = new Set<string>();
  return { woken, end: runtime.subscribe((id) => woken.add(id)) };
}

export const eventCases: readonly StageCase[] = [
  [
    "notifies listeners when a sandbox's command exits by itself",
    async ({ runtime, start, launch }) => {
      const { woken } = listen(runtime);
      const sandbox = launch('exits');
      await start(sandbox);
      await eventually('the listener is notified', async () => woken.has(sandbox.id));
      assert.equal((await runtime.inspect(sandbox.id)).state, 'stopped');
    },
  ],
  [
    'notifies listeners when a running or frozen sandbox is killed from outside',
    async (stage) => {
      const { runtime, begun, crash } = stage;
      const { woken } = listen(runtime);
      const running = await begun('counts');
      const frozen = await begun('counts');
      const untouched = await begun('counts');
      await freeze(runtime, frozen.id);
      for (const { id } of [running, frozen]) {
        await crash(id);
        await eventually('the killed sandbox is stopped', async () => (await runtime.inspect(id)).state === 'stopped');
        await decidedBy(stage.traits, 'outsideKill', (kill) => eventually('the listener is notified', async () => kill === 'unnoticed' || woken.has(id)));
      }
      assert.equal(woken.has(untouched.id), false);
    },
  ],
  [
    'notifies listeners about sandboxes that an earlier runtime started',
    async (stage) => {
      const { runtime, open, begun, crash } = stage;
      const running = await begun('counts');
      const frozen = await begun('counts');
      await freeze(runtime, frozen.id);
      await runtime.close();
      const reopened = await open();
      const { woken } = listen(reopened);
      // These calls make the runtime see both sandboxes before they are killed.
      assert.equal((await freeze(reopened, running.id)).state, stage.frozen);
      assert.equal((await freeze(reopened, frozen.id)).state, stage.frozen);
      for (const { id } of [running, frozen]) {
        await crash(id);
        await eventually('the killed sandbox is stopped', async () => (await reopened.inspect(id)).state === 'stopped');
        await decidedBy(stage.traits, 'outsideKillAfterReopening', (kill) =>
          eventually('the listener is notified', async () => kill === 'unnoticed' || woken.has(id)));
      }
    },
  ],
  [
    'notifies every listener, except one that has unsubscribed',
    async ({ runtime, start, launch }) => {
      const ended = listen(runtime);
      const one = listen(runtime);
      const other = listen(runtime);
      ended.end();
      ended.end();
      const sandbox = launch('exits');
      await start(sandbox);
      await eventually('both listeners are notified', async () => one.woken.has(sandbox.id) && other.woken.has(sandbox.id));
      assert.equal(ended.woken.size, 0);
    },
  ],
];
