import assert from 'node:assert/strict';
import type { SandboxRuntime } from '../../src/ports/sandbox-runtime.ts';
import { decidedBy } from './contract.ts';
import { freeze, type StageCase, waitFor, waitUntilStopped } from './sandbox-runtime-harness.ts';

/** Collects the ids that a runtime reports to its listeners. */
function listen(runtime: SandboxRuntime): { readonly woken: Set<string>; readonly end: () => void } {
  const woken = new Set<string>();
  return { woken, end: runtime.subscribe((id) => woken.add(id)) };
}

async function waitUntilNotified(woken: ReadonlySet<string>, id: string): Promise<void> {
  await waitFor(`the listener is notified about ${id}`, async () => [...woken], (ids) => ids.includes(id));
}

export const eventCases: readonly StageCase[] = [
  [
    "notifies listeners when a sandbox's command exits by itself",
    async ({ runtime, start, launch }) => {
      const { woken } = listen(runtime);
      const sandbox = launch('exits');
      await start(sandbox);
      await waitUntilNotified(woken, sandbox.id);
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
        await waitUntilStopped(runtime, id);
        await decidedBy(stage.traits, 'outsideKill', async (kill) => {
          if (kill === 'notified') await waitUntilNotified(woken, id);
        });
      }
      assert.equal(woken.has(untouched.id), false, 'the listener is notified about a sandbox that runs on');
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
        await waitUntilStopped(reopened, id);
        await decidedBy(stage.traits, 'outsideKillAfterReopening', async (kill) => {
          if (kill === 'notified') await waitUntilNotified(woken, id);
        });
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
      for (const { woken } of [one, other]) await waitUntilNotified(woken, sandbox.id);
      assert.deepEqual([...ended.woken], [], 'a listener that has unsubscribed is notified');
    },
  ],
];
