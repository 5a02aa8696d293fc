import assert from 'node:assert/strict';
import { setImmediate as tick } from 'node:timers/promises';
import { type AgentCase, type OpenedAgent } from './agent-harness.ts';
import { withTimeout } from './contract.ts';
import { scripted } from './agent-script.ts';

/** Opens a session and starts a turn in which the agent stalls. */
async function stalled(open: (client: { readonly update: () => Promise<void> }) => Promise<OpenedAgent>, stall: 'heeds' | 'deaf') {
  const { promise, resolve } = Promise.withResolvers<void>();
  const opened = await open({ update: async () => resolve() });
  const turn = opened.prompt(scripted({ stall }, { say: 'never' }));
  await withTimeout('the agent stalls', promise);
  return { ...opened, turn };
}

export const endCases: readonly AgentCase[] = [
  [
    'ends a cancelled turn as cancelled, and ignores a cancel between turns',
    async ({ open }) => {
      const { session, client, prompt, turn } = await stalled(open, 'heeds');
      await Promise.all([session.cancel(), session.cancel()]);
      assert.equal((await turn).stopReason, 'cancelled');
      await session.cancel();
      assert.deepEqual(await prompt(scripted({ say: ' on' })), { stopReason: 'end_turn', reason: null });
      assert.equal(client.said(), 'stalling. on');
    },
  ],
  [
    'ends a turn as interrupted if the session is closed, even if the agent ignores the cancel',
    async ({ open }) => {
      const { session, agent, prompt, turn } = await stalled(open, 'deaf');
      await session.cancel();
      await Promise.all([session.close(), session.close()]);
      const { stopReason, reason } = await turn;
      assert.equal(stopReason, 'interrupted');
      assert.notEqual(reason, null);
      assert.notEqual(await withTimeout('the session closes', session.closed), '');
      await session.close();
      assert.equal((await prompt(scripted({ say: 'never' }))).stopReason, 'interrupted');
      await session.cancel();
      await withTimeout('the agent ends', agent.gone);
    },
  ],
  [
    'ends a turn as interrupted if the agent exits, and reports all earlier updates',
    async ({ open }) => {
      const { session, client, prompt } = await open();
      const { stopReason, reason } = await prompt(scripted({ flood: 300 }, { crash: true }));
      assert.equal(stopReason, 'interrupted');
      assert.equal(client.updates.length, 300);
      assert.deepEqual(await withTimeout('the session closes', session.closed), reason);
      assert.equal((await prompt(scripted({ say: 'never' }))).stopReason, 'interrupted');
    },
  ],
  [
    'closes the session with a reason if the agent exits between turns',
    async ({ open }) => {
      const { session, agent, prompt } = await open();
      await prompt(scripted({ say: 'a' }));
      agent.kill();
      assert.notEqual(await withTimeout('the session closes', session.closed), '');
    },
  ],
  [
    'can be closed during an update, and reports no more updates',
    async ({ open }) => {
      const { promise: taken, resolve: take } = Promise.withResolvers<void>();
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      const order: string[] = [];
      const { session, client, prompt } = await open({
        async update() {
          begin();
          await taken;
          await tick();
          order.push('taken');
        },
      });
      const turn = prompt(scripted({ flood: 500 })).finally(() => order.push('ended'));
      await withTimeout('the first update', begun);
      await withTimeout('the session closes', session.close());
      take();
      assert.equal((await turn).stopReason, 'interrupted');
      assert.deepEqual(order, ['taken', 'ended']);
      assert.equal(client.updates.length, 1);
    },
  ],
  [
    'closes the session if the client fails to store an update',
    async ({ open }) => {
      const { session, client, prompt } = await open({
        async update() {
          if (client.updates.length === 3) throw new Error('the store is full');
        },
      });
      assert.equal((await prompt(scripted({ flood: 500 }))).stopReason, 'interrupted');
      assert.equal(client.updates.length, 3);
      assert.notEqual(await withTimeout('the session closes', session.closed), '');
    },
  ],
];
