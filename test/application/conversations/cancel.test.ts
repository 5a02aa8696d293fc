import { describe, expect, test, vi } from 'vitest';
import type { StepDeps } from '../../../src/application/conversations/conversation-reconciler.ts';
import { Turn } from '../../../src/application/conversations/turns/turn.ts';
import { Turns } from '../../../src/application/conversations/turns/turns.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import { createReady, failureOf, gate } from './support.ts';
import { calm, said, told, until } from './world.ts';

describe('cancelling a turn', () => {
  test('asks the agent to stop, returns at once, and keeps the waiting messages', async () => {
    const w = await createReady({
      script: async (turn) => {
        if (turn.message.content[0]?.text !== 'one') return;
        await turn.say('working');
        await new Promise((resolve) => turn.signal.addEventListener('abort', resolve, { once: true }));
        await turn.say(', stopped');
        return 'cancelled';
      },
    });
    await w.conversations.send('me', w.id, said('one'));
    await w.conversations.send('me', w.id, said('two'));
    await until(() => w.handed.length === 1);
    await until(async () => told(await w.log(), 'message_chunk').length === 1);
    expect(await w.conversations.cancel('me', w.id)).toMatchObject({ conversation: { id: w.id } });
    await w.conversations.cancel('me', w.id);
    await w.rested();
    expect(w.handed).toEqual(['one', 'two']);
    const log = await w.log();
    expect(log.filter(({ kind }) => kind === 'turn_ended')).toMatchObject([{ actor: 'user', data: { stopReason: 'cancelled' } }, { data: { stopReason: 'end_turn' } }]);
    expect(told(log, 'message').map(({ text }) => text)).toContain('working, stopped');
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'idle', statusReason: null } });
    expect(w.host.executed).toHaveLength(1);
  });

  test('ends an agent that does not stop within 10 seconds, and the next turn has its session', async () => {
    const w = await createReady({ script: (turn) => (turn.message.content[0]?.text === 'one' ? new Promise(() => {}) : Promise.resolve()) });
    await w.conversations.send('me', w.id, said('one'));
    await until(() => w.handed.length === 1);
    await calm();
    await w.conversations.cancel('me', w.id);
    w.clock.advance(9000);
    await calm();
    await w.conversations.cancel('me', w.id);
    expect(await w.record()).toMatchObject({ turn: { message: said('one') } });
    expect(w.host.running).toHaveLength(1);
    w.clock.advance(1000);
    await w.rested();
    expect(w.host.running).toHaveLength(0);
    expect(told(await w.log(), 'turn_ended')).toMatchObject([{ stopReason: 'cancelled' }]);
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'idle' } });
    await w.conversations.send('me', w.id, said('two'));
    await w.rested();
    expect(told(await w.log(), 'agent_started').map(({ loaded }) => loaded)).toEqual([false, true]);
  });

  test('does not end an agent that has ended its turn, even if the end is written late', async () => {
    const ending = gate();
    let isHeld = false;
    const w = await createReady({
      store: (made) => ({
        ...made,
        events: {
          ...made.events,
          append: async (batch) => {
            isHeld = batch.some(({ kind }) => kind === 'message');
            if (isHeld) await ending.opened;
            return await made.events.append(batch);
          },
        },
      }),
      script: async (turn) => {
        await turn.say('working');
        if (turn.message.content[0]?.text === 'one') await new Promise((resolve) => turn.signal.addEventListener('abort', resolve, { once: true }));
      },
    });
    await w.conversations.send('me', w.id, said('one'));
    await until(async () => told(await w.log(), 'message_chunk').length === 1);
    await w.conversations.cancel('me', w.id);
    await until(() => isHeld);
    w.clock.advance(20_000);
    await calm();
    await w.conversations.cancel('me', w.id);
    ending.open();
    await w.conversations.send('me', w.id, said('two'));
    w.clock.advance(20_000);
    await w.rested();
    expect(w.handed).toEqual(['one', 'two']);
    expect(w.host.executed, 'the same agent').toHaveLength(1);
  });

  test('changes nothing between turns, and is not possible for another owner', async () => {
    const w = await createReady();
    const before = await w.record();
    await w.conversations.cancel('me', w.id);
    await calm();
    expect(await w.record()).toEqual(before);
    expect(await failureOf(w.conversations.cancel('you', w.id))).toMatchObject({ code: 'conversation_not_found' });
    expect(w.clock.pending).toBe(0);
  });

  test('at any moment ends the turn as cancelled or normally, and no message is sent twice', async () => {
    for (let moment = 0; moment < 40; moment += 1) {
      const w = await createReady({
        script: async (turn) => {
          for (let n = 0; n < 5 && !turn.signal.aborted; n += 1) await turn.say('.');
        },
      });
      await w.conversations.send('me', w.id, said('one'));
      for (let n = 0; n < moment; n += 1) await Promise.resolve();
      await w.conversations.cancel('me', w.id);
      await w.rested();
      expect(told(await w.log(), 'turn_ended').map(({ stopReason }) => stopReason)).toEqual([expect.stringMatching(/cancelled|end_turn/)]);
      expect(w.handed.length).toBeLessThanOrEqual(1);
      expect(await w.record()).toMatchObject({ executionStatus: 'idle' });
      await w.close();
    }
  });

  test('before it runs here is by the user who asked first, as in the record', async () => {
    const w = await createReady();
    vi.spyOn(Turn.prototype, 'run').mockResolvedValueOnce();
    const cancelled = vi.spyOn(Turn.prototype, 'cancel').mockReturnValueOnce();
    const [sandbox, agent] = [await w.store.sandboxes.find(w.sandboxId), w.agents.get(w.id)];
    if (sandbox === null || agent === null) throw new Error('no agent');
    const turns = new Turns({ store: w.store, clock: w.clock } as unknown as StepDeps);
    for (const user of ['ann', 'ben']) expect(turns.cancel(w.id, 'msg-1', user)).toBe(false);
    const turn = { messageId: 'msg-1', message: said('go'), sandboxVersion: 1, unprompted: true };
    await turns.run(await w.record(), sandbox, turn, agent, neverAborts);
    expect(cancelled.mock.calls).toEqual([['ann']]);
  });
});
