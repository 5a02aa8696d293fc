import { describe, expect, test, vi } from 'vitest';
import { eventOf } from '../../../src/domain/event.ts';
import { explained } from '../../../src/domain/reason.ts';
import { Failure } from '../../../src/domain/failure.ts';
import { createReady, failureOf, gate } from './support.ts';
import { calm, said, told, until } from './world.ts';

/** A conversation whose message `one` waits until `renewed` is called: its agent has ended, and the runtime cannot run another. */
async function waiting() {
  const w = await createReady();
  w.host.executed.at(-1)?.end(0);
  await calm();
  const unavailable = vi.spyOn(w.runtime.executions, 'open').mockRejectedValue(
    new Failure('runtime_unavailable', { runtime: 'memory', reason: explained('it is being renewed'), retryAfterSeconds: 1 }),
  );
  await w.conversations.send('me', w.id, said('one'));
  await until(async () => (await w.record()).statusReason);
  return { ...w, tries: () => unavailable.mock.calls.length, renewed: () => unavailable.mockRestore() };
}

describe('messages', () => {
  test('are sent to the agent in order, each after the turn before it has ended', async () => {
    const held = gate();
    const w = await createReady({
      script: async (turn) => {
        if (turn.message.content[0]?.text === '1') await held.opened;
        await turn.say(`re ${turn.message.content[0]?.text}`);
      },
    });
    for (const text of ['1', '2', '3']) await w.conversations.send('me', w.id, said(text));
    await until(() => w.handed.length === 1);
    await calm();
    expect(w.handed).toEqual(['1']);
    expect(await w.record()).toMatchObject({ executionStatus: 'running', turn: { message: said('1') }, queue: [{ message: said('2') }, { message: said('3') }] });
    held.open();
    await w.rested();
    expect(w.handed).toEqual(['1', '2', '3']);
    const log = await w.log();
    expect(told(log, 'message').map(({ text }) => text)).toEqual(['1', '2', '3', 're 1', 're 2', 're 3']);
    expect(told(log, 'turn_started', 'turn_ended').map(({ kind }) => kind)).toEqual(['1', '2', '3'].flatMap(() => ['turn_started', 'turn_ended']));
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'idle' } });
  });

  test('are refused if 100 messages wait, or if they have too many bytes', async () => {
    const held = gate();
    const w = await createReady({ script: () => held.opened });
    await w.conversations.send('me', w.id, said('first'));
    await until(() => w.handed.length === 1);
    for (let n = 0; n < 100; n += 1) await w.conversations.send('me', w.id, said(`${n}`));
    expect(await failureOf(w.conversations.send('me', w.id, said('one more')))).toMatchObject({ code: 'conversation_not_ready', context: { reason: { code: 'queue_full', limit: 'messages', max: 100 } } });
    held.open();
    await w.rested();
    expect(w.handed).toHaveLength(101);
    expect(await failureOf(w.conversations.send('me', w.id, said('x'.repeat(1_048_577))))).toMatchObject({ code: 'conversation_not_ready', context: { reason: { code: 'queue_full', limit: 'bytes' } } });
  });

  test('with the same idempotency key are sent once and have one id', async () => {
    const w = await createReady();
    const claim = { ownerId: 'me', key: 'k', fingerprint: 'a' };
    const first = await w.conversations.send('me', w.id, said('once'), claim);
    const again = await w.conversations.send('me', w.id, said('once'), claim);
    expect(again.messageId).toBe(first.messageId);
    expect(await failureOf(w.conversations.send('me', w.id, said('once'), { ...claim, fingerprint: 'b' }))).toMatchObject({ code: 'idempotency_conflict' });
    await w.rested();
    expect(w.handed).toEqual(['once']);
    expect(told(await w.log(), 'turn_started')).toEqual([{ kind: 'turn_started', messageId: first.messageId }]);
  });

  test('that are repeated with their idempotency key have the same id, also if a new one would be refused', async () => {
    const w = await createReady();
    const claim = { ownerId: 'me', key: 'k', fingerprint: 'a' };
    const { messageId } = await w.conversations.send('me', w.id, said('once'), claim);
    await w.rested();
    await w.conversations.update('me', w.id, { archived: true });
    expect(await failureOf(w.conversations.send('me', w.id, said('new')))).toMatchObject({ code: 'conversation_not_ready' });
    expect(await w.conversations.send('me', w.id, said('once'), claim)).toEqual({ messageId });
    expect(await failureOf(w.conversations.send('me', w.id, said('x'), { ...claim, fingerprint: 'b' }))).toMatchObject({ code: 'idempotency_conflict' });
  });

  test('that are repeated while the first is handled have its id, also if a new one would be refused by then', async () => {
    const w = await createReady();
    const send = () => w.conversations.send('me', w.id, said('once'), { ownerId: 'me', key: 'k', fingerprint: 'a' });
    const find = w.store.conversations.find.bind(w.store.conversations);
    const first = Promise.withResolvers<string>();
    const found = vi.spyOn(w.store.conversations, 'find');
    found.mockImplementationOnce(find).mockImplementationOnce(async (id) => {
      first.resolve((await send()).messageId);
      await w.conversations.update('me', w.id, { archived: true });
      return await find(id);
    });
    expect(await send()).toEqual({ messageId: await first.promise });
    vi.spyOn(w.store.sandboxes, 'find').mockRejectedValueOnce(new Failure('store_unavailable', { reason: { code: 'locked' }, retryAfterSeconds: 1 }));
    expect(await send()).toEqual({ messageId: await first.promise });
  });

  test('of two callers with the same idempotency key are both sent and have two ids', async () => {
    const w = await createReady();
    const owner = await w.conversations.send('me', w.id, said('mine'), { ownerId: 'me', key: 'k', fingerprint: 'a' });
    const admin = await w.conversations.send({ userId: 'root', access: 'admin' }, w.id, said('yours'), { ownerId: 'root', key: 'k', fingerprint: 'b' });
    expect(admin.messageId).not.toBe(owner.messageId);
    await w.rested();
    expect(w.handed).toEqual(['mine', 'yours']);
  });

  test('are refused without an agent, and for another owner', async () => {
    const w = await createReady({ agent: null });
    expect(await failureOf(w.conversations.send('me', w.id, said('hello')))).toMatchObject({ code: 'conversation_not_ready', context: { reason: { code: 'agent_not_named' } } });
    expect(await failureOf(w.conversations.send('you', w.id, said('hello')))).toMatchObject({ code: 'conversation_not_found' });
    expect(await w.record()).toMatchObject({ executionStatus: null });
  });
});

describe('a turn', () => {
  test('sets the status error with the message of the agent if it fails, until the next turn', async () => {
    let fails = true;
    const w = await createReady({
      script: async () => {
        if (fails) throw new Error('the model is overloaded');
      },
    });
    await w.conversations.send('me', w.id, said('one'));
    await w.rested();
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'error', statusReason: { code: 'agent_error', message: 'the model is overloaded' } } });
    expect((await w.log()).find(({ kind }) => kind === 'turn_ended')).toMatchObject({ reason: { code: 'agent_error', message: 'the model is overloaded' }, data: { stopReason: 'failed' } });
    fails = false;
    await w.conversations.send('me', w.id, said('two'));
    await w.rested();
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'idle', statusReason: null } });
    expect(w.host.executed).toHaveLength(1);
  });

  test('is interrupted if the agent crashes, and the next turn starts the agent with its session', async () => {
    const w = await createReady({
      script: async (turn) => {
        if (turn.message.content[0]?.text !== 'one') return;
        w.host.executed.at(-1)?.complain('out of memory\n');
        await calm();
        w.host.executed.at(-1)?.end(139);
        await turn.say('never');
      },
    });
    await w.conversations.send('me', w.id, said('one'));
    await w.conversations.send('me', w.id, said('two'));
    await w.rested();
    expect(w.handed).toEqual(['one', 'two']);
    const log = await w.log();
    expect(told(log, 'turn_ended').map(({ stopReason }) => stopReason)).toEqual(['interrupted', 'end_turn']);
    expect(log.find(({ kind }) => kind === 'turn_ended')?.reason).toMatchObject({ code: 'agent_ended', exitCode: 139, output: expect.stringContaining('out of memory') });
    expect(told(log, 'agent_started').map(({ loaded }) => loaded)).toEqual([false, true]);
  });

  test('fails if its agent cannot start again, and reports a new session of the agent', async () => {
    let refuses = false;
    const w = await createReady({
      remembers: false,
      beforeOpen: () => {
        if (refuses) throw new Error('a defect that only the log may tell');
      },
    });
    w.host.executed.at(-1)?.end(0);
    refuses = true;
    await calm();
    await w.conversations.send('me', w.id, said('one'));
    await w.rested();
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'error', statusReason: { code: 'agent_start_failed' } } });
    expect(JSON.stringify(await w.log())).not.toContain('only the log');
    expect(w.logged.join()).toContain('only the log');
    refuses = false;
    await w.conversations.send('me', w.id, said('two'));
    await w.rested();
    expect(w.handed).toEqual(['two']);
    const log = await w.log();
    expect(told(log, 'turn_ended').map(({ stopReason }) => stopReason)).toEqual(['failed', 'end_turn']);
    expect(log.findLast(({ kind }) => kind === 'agent_started')).toMatchObject({ data: { loaded: false }, reason: { code: 'agent_session_not_found' } });
  });

  test('waits with a reason if the runtime cannot run its agent, and is retried at the next sweep', async () => {
    const w = await waiting();
    expect(await w.record()).toMatchObject({ executionStatus: 'idle', statusReason: { code: 'message_waiting', cause: { code: 'failure', failure: 'runtime_unavailable' } }, queue: [{ message: said('one') }] });
    w.renewed();
    await w.sweeper.sweep();
    await w.rested();
    expect(w.handed).toEqual(['one']);
    expect(told(await w.log(), 'turn_ended')).toMatchObject([{ stopReason: 'end_turn' }]);
  });

  test('waits if the runtime cannot run its agent, and is retried when the sandbox changes', async () => {
    const w = await waiting();
    w.renewed();
    await w.sandboxes.pause('me', w.sandboxId, 'freeze');
    await w.sandboxes.resume('me', w.sandboxId);
    await w.rested();
    expect(w.handed).toEqual(['one']);
  });

  test('whose agent cannot be run is not tried again for each event of another conversation in its sandbox', async () => {
    const w = await waiting();
    const another = { ...(await w.record()), id: 'another' };
    const body = { kind: 'turn_started', data: { messageId: 'msg-1' } } as const;
    await w.store.events.append([eventOf(another, body, { at: 1, actor: 'skep', reason: null })]);
    await calm();
    expect(w.tries()).toBe(1);
  });

  test('is not given to an agent that has ended, even if its process still exists', async () => {
    const w = await createReady();
    w.host.stuck = true;
    w.host.executed.at(-1)?.end(0);
    await calm();
    w.host.stuck = false;
    await w.conversations.send('me', w.id, said('one'));
    await calm();
    // The next agent waits for the end of a kill, but not longer.
    w.clock.advance(5000);
    await w.rested();
    expect(w.handed).toEqual(['one']);
    expect(w.host.executed).toHaveLength(2);
    expect(told(await w.log(), 'turn_ended')).toMatchObject([{ stopReason: 'end_turn' }]);
  });

  test('is interrupted, and its agent is ended, if its events cannot be written', async () => {
    let broken = false;
    const w = await createReady({
      store: (store) => ({
        ...store,
        events: { ...store.events, append: async (events) => (broken ? Promise.reject(new Error('disk')) : store.events.append(events)) },
      }),
      script: async (turn) => {
        broken = true;
        await turn.say('lost');
        await turn.say('never said');
      },
    });
    await w.conversations.send('me', w.id, said('one'));
    await until(() => w.host.running.length === 0);
    broken = false;
    await calm();
    await w.sweeper.sweep();
    await w.rested();
    expect(await w.record()).toMatchObject({ executionStatus: 'error', turn: null });
    expect(told(await w.log(), 'turn_ended')).toMatchObject([{ stopReason: 'interrupted' }]);
    expect(w.handed).toEqual(['one']);
  });

  test('is interrupted by a shutdown, and the next process sends the waiting message', async () => {
    const held = gate();
    const w = await createReady({ script: (turn) => (turn.message.content[0]?.text === 'one' ? held.opened : Promise.resolve()) });
    await w.conversations.send('me', w.id, said('one'));
    await w.conversations.send('me', w.id, said('two'));
    await until(() => w.handed.length === 1);
    await w.close();
    expect(await w.record()).toMatchObject({ turn: null, executionStatus: 'error', statusReason: { code: 'interrupted_by_shutdown' }, queue: [{ message: said('two') }] });
    const next = w.boot();
    await next.sweeper.start();
    await w.rested();
    expect(w.handed).toEqual(['one', 'two']);
    await next.close();
  });

  test('of a killed process is ended by the next process, which sends the waiting message', async () => {
    const w = await createReady({ script: (turn) => (turn.message.content[0]?.text === 'one' ? new Promise(() => {}) : Promise.resolve()) });
    await w.conversations.send('me', w.id, said('one'));
    await w.conversations.send('me', w.id, said('two'));
    await until(() => w.handed.length === 1);
    w.mortal.die();
    const next = w.boot();
    next.conversationReconciler.enqueue(w.id);
    await w.rested();
    expect(w.handed).toEqual(['one', 'two']);
    expect((await w.log()).filter(({ kind }) => kind === 'turn_ended')).toMatchObject([
      { data: { stopReason: 'interrupted' }, reason: { code: 'interrupted_by_restart' } }, { data: { stopReason: 'end_turn' }, reason: null },
    ]);
    await next.close();
  });

  test('is done by the next process if Skep shuts down while its agent starts', async () => {
    const { promise: coming, resolve: comes } = Promise.withResolvers<void>();
    let opened = 0;
    const w = await createReady({
      beforeOpen: async () => {
        opened += 1;
        if (opened !== 2) return;
        comes();
        await new Promise(() => {});
      },
    });
    await w.sandboxes.pause('me', w.sandboxId, 'stop');
    await w.conversations.send('me', w.id, said('one'));
    await coming;
    await w.close();
    expect(await w.record()).toMatchObject({ turn: null, executionStatus: 'idle', queue: [{ message: said('one') }] });
    const next = w.boot();
    await next.sweeper.start();
    await w.rested();
    expect(w.handed).toEqual(['one']);
    expect(told(await w.log(), 'turn_ended')).toMatchObject([{ stopReason: 'end_turn' }]);
    await next.close();
  });
});
