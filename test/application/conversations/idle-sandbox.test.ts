import { describe, expect, test } from 'vitest';
import { createReady, failureOf, gate } from './support.ts';
import { calm, passSeconds, plain, said, told, until } from './world.ts';

/** The owner stops the sandbox during a turn, while another message waits. */
async function stoppedInTurn(w: Awaited<ReturnType<typeof createReady>>): Promise<void> {
  await w.conversations.send('me', w.id, said('one'));
  await w.conversations.send('me', w.id, said('two'));
  await until(() => w.handed.length === 1);
  await w.sandboxes.pause('me', w.sandboxId, 'stop');
  await until(async () => (await w.record()).turn === null);
  await calm();
}

describe('a conversation with a paused sandbox', () => {
  test('resumes on a message: a frozen agent continues, a stopped one starts again with its session', async () => {
    const w = await createReady();
    await w.sandboxes.pause('me', w.sandboxId, 'freeze');
    await w.conversations.send('me', w.id, said('one'));
    await w.rested();
    expect(w.host.executed).toHaveLength(1);
    const resumption = (await w.store.events.read({ ownerId: 'me' }, 0, 100)).find(({ data }) => 'to' in data && data.to === 'RESUMING');
    expect(resumption).toMatchObject({ actor: 'skep', reason: { code: 'woken_by_conversation' } });
    await w.sandboxes.pause('me', w.sandboxId, 'stop');
    await calm();
    expect(w.host.running).toHaveLength(0);
    await w.conversations.send('me', w.id, said('two'));
    await w.rested();
    expect(w.handed).toEqual(['one', 'two']);
    expect(told(await w.log(), 'agent_started').map(({ loaded }) => loaded)).toEqual([false, true]);
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'idle' }, sandboxStatus: 'RUNNING' });
  });

  test('keeps a message with a reason if a limit refuses the resume, and sends it when there is room', async () => {
    const w = await createReady({ limits: { running: 1 } });
    await w.sandboxes.pause('me', w.sandboxId, 'freeze');
    const other = await w.sandboxes.start('me', { specId: null });
    await until(async () => (await w.sandboxes.get('me', other.id)).status === 'RUNNING');
    await w.conversations.send('me', w.id, said('one'));
    expect((await w.record()).queue).toHaveLength(1);
    await until(async () => (await w.record()).statusReason);
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'idle', statusReason: { code: 'message_waiting', cause: { failure: 'sandbox_limit_reached' } } }, sandboxStatus: 'PAUSED' });
    const { version } = await w.record();
    await w.sweeper.sweep();
    await calm();
    expect(w.handed).toEqual([]);
    expect((await w.record()).version, 'what is said already is not written again').toBe(version);
    await w.sandboxes.delete('me', other.id);
    await w.sweeper.sweep();
    await w.rested();
    expect(w.handed).toEqual(['one']);
    expect(await w.view()).toMatchObject({ conversation: { statusReason: null } });
  });

  test('sends a waiting message at once when its owner resumes the sandbox', async () => {
    const w = await createReady({ limits: { running: 1 } });
    await w.sandboxes.pause('me', w.sandboxId, 'freeze');
    const other = await w.sandboxes.start('me', { specId: null });
    await w.conversations.send('me', w.id, said('one'));
    await until(async () => (await w.record()).statusReason);
    await w.sandboxes.delete('me', other.id);
    await w.sandboxes.resume('me', w.sandboxId);
    await w.rested();
    expect(w.handed).toEqual(['one']);
  });

  test('shows its turn as frozen, with an event, and continues the same turn after a resume', async () => {
    const held = gate();
    const w = await createReady({ script: () => held.opened });
    await w.conversations.send('me', w.id, said('one'));
    await until(() => w.handed.length === 1);
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'running' } });
    await w.sandboxes.pause('me', w.sandboxId, 'freeze');
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'frozen' }, sandboxStatus: 'PAUSED' });
    await w.sandboxes.resume('me', w.sandboxId);
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'running' }, sandboxStatus: 'RUNNING' });
    await calm();
    held.open();
    await w.rested();
    expect(told(await w.log(), 'turn_ended')).toMatchObject([{ stopReason: 'end_turn' }]);
    expect(told(await w.log(), 'execution_changed').map(({ to }) => to)).toEqual(['idle', 'running', 'frozen', 'running', 'idle']);
  });

  test('continues a turn that its owner froze when a new message comes', async () => {
    const held = gate();
    const w = await createReady({ script: () => held.opened });
    await w.conversations.send('me', w.id, said('one'));
    await w.conversations.send('me', w.id, said('two'));
    await until(() => w.handed.length === 1);
    await w.sandboxes.pause('me', w.sandboxId, 'freeze');
    await w.sweeper.sweep();
    await calm();
    expect(await w.view(), 'an earlier message does not wake it').toMatchObject({ sandboxStatus: 'PAUSED' });
    await w.conversations.send('me', w.id, said('three'));
    await calm();
    expect(await w.view()).toMatchObject({ sandboxStatus: 'RUNNING', conversation: { executionStatus: 'running' } });
    held.open();
    await w.rested();
    expect(w.handed).toEqual(['one', 'two', 'three']);
  });

  test('keeps its sandbox stopped if the owner stopped it in a turn, until a new message comes', async () => {
    const w = await createReady({ script: (turn) => (turn.message.content[0]?.text === 'one' ? new Promise(() => {}) : Promise.resolve()) });
    await stoppedInTurn(w);
    const ended = (await w.log()).find(({ kind }) => kind === 'turn_ended');
    expect(ended).toMatchObject({ actor: 'user', data: { stopReason: 'interrupted' }, reason: { code: 'sandbox_stopped', cause: { code: 'paused_by_owner' } } });
    expect(await w.record()).toMatchObject({ statusReason: { code: 'sandbox_stopped' } });
    await w.store.events.purge(Infinity, 1000);
    await w.sweeper.sweep();
    await calm();
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'error', queue: [{ message: said('two') }] }, sandboxStatus: 'PAUSED' });
    await w.conversations.send('me', w.id, said('three'));
    await w.rested();
    expect(w.handed).toEqual(['one', 'two', 'three']);
  });

  test('sends the waiting message when the owner resumes a sandbox that was stopped in a turn', async () => {
    const w = await createReady({ script: (turn) => (turn.message.content[0]?.text === 'one' ? turn.say('half a w').then(() => new Promise(() => {})) : Promise.resolve()) });
    await stoppedInTurn(w);
    expect(told(await w.log(), 'message').map(({ text }) => text)).toEqual(['one', 'two', 'half a w']);
    expect(await w.view()).toMatchObject({ conversation: { queue: [{ message: said('two') }] }, sandboxStatus: 'PAUSED' });
    await w.sandboxes.resume('me', w.sandboxId);
    await w.rested();
    expect(w.handed).toEqual(['one', 'two']);
  });

  test('keeps its sandbox RUNNING from the start of a turn, even if it was idle before', async () => {
    const held = gate();
    const w = await createReady({ spec: { rest: { freezeAfterMs: 20_000, stopAfterMs: null, deleteAfterMs: null, maxLifeMs: null } }, script: () => held.opened });
    const pass = (seconds: number) => passSeconds(w.clock, seconds);
    await w.sandboxes.pause('me', w.sandboxId, 'stop');
    await w.sandboxes.resume('me', w.sandboxId);
    await pass(19);
    await w.conversations.send('me', w.id, said('one'));
    await until(() => w.handed.length === 1);
    await pass(15);
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'running' }, sandboxStatus: 'RUNNING' });
    held.open();
    await w.rested();
    await pass(20);
    expect(await w.view()).toMatchObject({ sandboxStatus: 'PAUSED' });
  });
});

describe('a conversation whose sandbox is lost', () => {
  test('has the status error with the reason, and accepts no message', async () => {
    const w = await createReady({ script: () => new Promise(() => {}) });
    await w.conversations.send('me', w.id, said('one'));
    await w.conversations.send('me', w.id, said('two'));
    await until(() => w.handed.length === 1);
    w.engine.crash(w.sandboxId, { code: 'process_exited', exitCode: 137, signal: null, program: null });
    w.sandboxReconciler.enqueue(w.sandboxId);
    await until(w.record, ({ queue }) => queue.length === 0);
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'error', turn: null, statusReason: { code: 'messages_dropped', count: 1, cause: { code: 'sandbox_lost', status: 'ERROR', cause: { exitCode: 137 } } } }, sandboxStatus: 'ERROR' });
    expect(told(await w.log(), 'turn_ended')).toMatchObject([{ stopReason: 'interrupted' }]);
    expect(await failureOf(w.conversations.send('me', w.id, said('three')))).toMatchObject({ code: 'conversation_not_ready', context: { reason: { code: 'sandbox_lost', status: 'ERROR' } } });
    expect(await w.store.conversations.scanUnsettled(null, 10)).toEqual([]);

    const idle = await createReady();
    await idle.sandboxes.delete('me', idle.sandboxId);
    expect(await idle.view()).toMatchObject({ conversation: { executionStatus: 'error', statusReason: { code: 'sandbox_deleted' } }, sandboxStatus: 'MISSING' });
    expect(await failureOf(idle.conversations.send('me', idle.id, said('one')))).toMatchObject({ code: 'conversation_not_ready' });
  });
});

test('two conversations in one sandbox have an agent each, and a delete ends only its own', async () => {
  const w = await createReady();
  const { conversation } = await w.conversations.start('me', { ...plain, sandboxId: w.sandboxId, initialMessage: said('mine') });
  await until(() => w.handed.includes('mine'));
  await w.conversations.send('me', w.id, said('yours'));
  await w.rested();
  expect(w.host.running).toHaveLength(2);
  await w.conversations.delete('me', conversation.id);
  expect(w.host.running).toHaveLength(1);
  await w.conversations.send('me', w.id, said('again'));
  await w.rested();
  expect(w.handed).toEqual(['mine', 'yours', 'again']);
});

test('a waiting message is sent after the sandbox was stopped outside Skep in a turn', async () => {
  const w = await createReady({ script: (turn) => (turn.message.content[0]?.text === 'one' ? new Promise(() => {}) : Promise.resolve()) });
  await w.conversations.send('me', w.id, said('one'));
  await w.conversations.send('me', w.id, said('two'));
  await until(() => w.handed.length === 1);
  const sandbox = await w.sandboxes.get('me', w.sandboxId);
  await w.store.sandboxes.replace({ ...sandbox, status: 'PAUSED', pauseKind: 'stop', statusReason: { code: 'ended_outside', cause: null }, version: sandbox.version + 1 });
  w.engine.stop(w.sandboxId);
  w.host.notice();
  await w.rested();
  expect(w.handed).toEqual(['one', 'two']);
  expect(told(await w.log(), 'turn_ended').map(({ stopReason }) => stopReason)).toEqual(['interrupted', 'end_turn']);
});

test('all conversations of one sandbox send their waiting messages when it is resumed', async () => {
  const w = await createReady({ limits: { running: 1 } });
  const { conversation } = await w.conversations.start('me', { ...plain, sandboxId: w.sandboxId });
  await until(() => w.store.conversations.find(conversation.id), (found) => found?.startStatus === 'READY');
  await w.sandboxes.pause('me', w.sandboxId, 'freeze');
  const other = await w.sandboxes.start('me', { specId: null });
  for (const id of [w.id, conversation.id]) {
    await w.conversations.send('me', id, said(id));
    await until(async () => (await w.store.conversations.find(id))?.statusReason);
  }
  await w.sandboxes.delete('me', other.id);
  await w.sandboxes.resume('me', w.sandboxId);
  await until(() => w.handed.length === 2);
  expect(w.handed.toSorted()).toEqual([w.id, conversation.id].toSorted());
});

test('a message that comes just before an idle freeze is written prevents the freeze', async () => {
  const [writing, release] = [gate(), gate()];
  const state = { isHeld: false };
  const w = await createReady({
    spec: { rest: { freezeAfterMs: 60_000, stopAfterMs: null, deleteAfterMs: null, maxLifeMs: null } },
    store: (made) => ({
      ...made,
      sandboxes: {
        ...made.sandboxes,
        replace: async (to, events) => {
          if (to.status === 'PAUSING' && !state.isHeld) {
            state.isHeld = true;
            await writing.opened;
          }
          return await made.sandboxes.replace(to, events);
        },
      },
    }),
    script: () => release.opened,
  });
  await w.sweeper.start();
  for (let seconds = 0; seconds < 62 && !state.isHeld; seconds += 1) {
    w.clock.advance(1000);
    await calm();
  }
  expect(state.isHeld).toBe(true);
  await w.conversations.send('me', w.id, said('go'));
  await until(() => w.handed.length === 1);
  writing.open();
  await calm();
  expect(await w.view()).toMatchObject({ sandboxStatus: 'RUNNING', conversation: { executionStatus: 'running' } });
  expect(told(await w.store.events.read({ ownerId: 'me' }, 0, 100), 'sandbox_moved').map(({ to }) => to)).toEqual(['STARTING', 'RUNNING']);
  release.open();
  await w.rested();
});
