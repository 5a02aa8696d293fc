import { expect, test } from 'vitest';
import { Failure } from '../../../src/domain/failure.ts';
import type { Store } from '../../../src/ports/store.ts';
import { Faults } from '../mortal.ts';
import { createReady, gate, withLateTurns } from './support.ts';
import { calm, createOne, passSeconds, plain, said, told, until } from './world.ts';

/** A store that refuses all calls while it is down. */
function outage() {
  const state = { down: false };
  const failing = <T extends object>(port: T): T =>
    new Proxy(port, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function' || name === 'subscribe') return member;
        return async (...args: unknown[]): Promise<unknown> => {
          if (state.down) throw new Failure('store_unavailable', { reason: { code: 'locked' }, retryAfterSeconds: 1 });
          return await (member as (...given: unknown[]) => unknown).apply(target, args);
        };
      },
    });
  const store = (made: Store): Store => ({ ...made, events: failing(made.events), conversations: failing(made.conversations), sandboxes: failing(made.sandboxes) });
  return { state, store };
}

test('a turn survives a minute without a store, holds the agent back, and loses no output', async () => {
  const { state, store } = outage();
  const titles = Array.from({ length: 500 }, (_, n) => `${n}`);
  let spoken = 0;
  const w = await createReady({
    store,
    script: async (turn) => {
      await turn.say('first');
      state.down = true;
      for (const title of titles) {
        await turn.tool({ toolCallId: title, title, status: 'completed' });
        spoken += 1;
      }
    },
  });
  await w.conversations.send('me', w.id, said('go'));
  await until(() => state.down);
  await calm();
  expect(spoken).toBeLessThan(300);
  await passSeconds(w.clock, 60);
  expect(w.host.running).toHaveLength(1);
  state.down = false;
  await passSeconds(w.clock, 10);
  await w.rested();
  const log = await w.log();
  expect(told(log, 'turn_ended')).toMatchObject([{ stopReason: 'end_turn' }]);
  expect(told(log, 'tool_call').map(({ title }) => title)).toEqual(titles);
});

test('the end of a turn is written when the store answers again', async () => {
  const { state, store } = outage();
  const w = await createReady({ store, script: async () => void (state.down = true) });
  await w.conversations.send('me', w.id, said('go'));
  await until(() => state.down);
  await passSeconds(w.clock, 60);
  state.down = false;
  w.clock.advance(5000);
  await w.rested();
  expect(told(await w.log(), 'turn_ended')).toMatchObject([{ stopReason: 'end_turn' }]);
});

test('a message that did not reach the agent before a shutdown is sent by the next process', async () => {
  const late = gate();
  let isLate = false;
  const w = createOne({
    store: withLateTurns(() => (isLate ? late.opened : null)),
  });
  const { conversation: { id } } = await w.conversations.start('me', plain);
  await until(() => w.store.conversations.find(id), (found) => found?.startStatus === 'READY');
  isLate = true;
  const { messageId } = await w.conversations.send('me', id, said('go'));
  await until(() => w.store.conversations.find(id), (found) => found?.turn !== null);
  const closed = w.close();
  await calm();
  isLate = false;
  late.open();
  await closed;
  expect(w.handed).toEqual([]);
  expect(await w.store.conversations.find(id)).toMatchObject({ turn: null, queue: [{ messageId }], executionStatus: 'idle' });
  const next = w.boot();
  await next.sweeper.start();
  await until(() => w.handed.length === 1);
  await until(() => w.store.conversations.find(id), (found) => found?.turn === null);
  const ended = (await w.log(id)).filter(({ kind }) => kind === 'turn_ended');
  expect(ended).toMatchObject([{ reason: { code: 'message_requeued' }, data: { messageId } }, { reason: null, data: { messageId, stopReason: 'end_turn' } }]);
  await next.close();
});

/** A store that delays the write that takes a message off the queue. After it, `fails` writes of conversations fail. */
function heldDequeue(fails = 0) {
  const { opened, open } = gate();
  const state = { isHeld: false, fails: 0, open };
  const store = (made: Store): Store => {
    const replace: typeof made.conversations.replace = async (...args) => {
      if (args[0].turn !== null && !state.isHeld) {
        state.isHeld = true;
        await opened;
        state.fails = fails;
      } else if (state.fails > 0) {
        state.fails -= 1;
        throw new Failure('store_unavailable', { reason: { code: 'locked' }, retryAfterSeconds: 1 });
      }
      return await made.conversations.replace(...args);
    };
    return { ...made, conversations: { ...made.conversations, replace } };
  };
  return { state, store };
}

test('a message goes to the next agent if its agent ends before it gets the message', async () => {
  const { state, store } = heldDequeue();
  const w = await createReady({ store });
  await w.conversations.send('me', w.id, said('go'));
  await until(() => state.isHeld);
  w.host.running[0]?.end(1);
  await w.agents.end(w.id);
  await calm();
  state.open();
  await w.rested();
  expect(w.handed).toEqual(['go']);
  expect(told(await w.log(), 'turn_ended').map(({ stopReason }) => stopReason)).toEqual(['interrupted', 'end_turn']);
});

test.each([
  ['before that is written', true, ['cancelled']], ['while that is written', false, ['interrupted', 'cancelled']],
] as const)('a message that goes back into the queue is not sent if it is cancelled %s', async (_, isBefore, stopReasons) => {
  const { state, store: held } = heldDequeue();
  const cancels: Promise<unknown>[] = [];
  const store = (made: Store): Store => {
    const outer = held(made);
    const replace: typeof made.conversations.replace = async (...args) => {
      if (state.isHeld && args[0].queue.length > 0 && cancels.length === 0) {
        cancels.push(w.conversationReconciler.cancel(w.id, args[0].queue[0]!.messageId, 'me'));
        if (isBefore) await cancels[0];
      }
      return await outer.conversations.replace(...args);
    };
    return { ...outer, conversations: { ...outer.conversations, replace } };
  };
  const w = await createReady({ store });
  await w.conversations.send('me', w.id, said('go'));
  await until(() => state.isHeld);
  w.host.running[0]?.end(1);
  await calm();
  state.open();
  await until(() => cancels.length === 1);
  await cancels[0];
  await w.rested();
  expect(w.handed).toEqual([]);
  expect(told(await w.log(), 'turn_ended').map(({ stopReason }) => stopReason)).toEqual(stopReasons);
});

test('a shutdown while the store fails once loses no message', async () => {
  const { state, store } = heldDequeue(1);
  const w = await createReady({ store });
  await w.conversations.send('me', w.id, said('go'));
  await until(() => state.isHeld);
  const closed = w.close();
  await calm();
  state.open();
  await calm();
  w.clock.advance(500);
  await closed;
  const next = w.boot();
  await next.sweeper.start();
  await w.rested();
  expect(w.handed).toEqual(['go']);
  await next.close();
});

test('a shutdown waits 5 seconds for a store that does not answer, and not longer', async () => {
  const { state, store } = outage();
  const w = await createReady({ store, script: async () => void (state.down = true) });
  await w.conversations.send('me', w.id, said('go'));
  await until(() => state.down);
  let isClosed = false;
  const closed = w.close().then(() => (isClosed = true));
  for (let tries = 0; tries < 12; tries += 1) {
    await calm();
    expect(isClosed).toBe(tries >= 10);
    w.clock.advance(500);
  }
  await closed;
});

test('an agent gets the microagents even if the store fails just before its first turn', async () => {
  let fails = 0;
  const store = (made: Store): Store => ({
    ...made,
    events: {
      ...made.events,
      latest: async () => {
        fails -= 1;
        if (fails === 0) throw new Failure('store_unavailable', { reason: { code: 'locked' }, retryAfterSeconds: 1 });
        return await made.events.latest();
      },
    },
  });
  const w = createOne({ store });
  const { conversation: { id } } = await w.conversations.start('me', { ...plain, selectedRepository: 'acme/shop' });
  await until(async () => (await w.store.conversations.find(id))?.startStatus === 'READY');
  await calm();
  fails = 1;
  await w.conversations.send('me', id, said('go'));
  await calm();
  expect(w.handed).toEqual([]);
  await w.sweeper.sweep();
  await until(() => w.handed.length === 1);
  expect(w.handed[0]).toMatch(/^<REPOSITORY_INSTRUCTIONS>.*\|go$/s);
});

const restless = { rest: { freezeAfterMs: 60_000, stopAfterMs: null, deleteAfterMs: null, maxLifeMs: null } };

test('a working agent is not frozen, even if the store was down for longer than the idle time', async () => {
  const { state, store } = outage();
  const w = await createReady({ spec: restless, store, script: () => new Promise(() => {}) });
  await w.sweeper.start();
  await w.conversations.send('me', w.id, said('go'));
  await until(() => w.handed.length === 1);
  const pass = (seconds: number) => passSeconds(w.clock, seconds);
  state.down = true;
  await pass(61);
  state.down = false;
  await pass(120);
  expect(await w.view()).toMatchObject({ sandboxStatus: 'RUNNING', conversation: { executionStatus: 'running' } });
  expect(told(await w.log(), 'execution_changed').map(({ to }) => to)).toEqual(['idle', 'running']);
});

test('a shutdown ends turns and completes, even if the engine does not list its sandboxes', async () => {
  const w = await createReady({ script: () => new Promise(() => {}) });
  await w.conversations.send('me', w.id, said('go'));
  await until(() => w.handed.length === 1);
  const listing = gate();
  const unlisted = w.engine.list.bind(w.engine);
  Object.assign(w.engine, { list: async () => await listing.opened.then(unlisted) });
  void w.sweeper.start();
  await calm();
  await w.close();
  expect(await w.record()).toMatchObject({ turn: null, statusReason: { code: 'interrupted_by_shutdown' } });
  expect(w.host.running).toEqual([]);
  listing.open();
});

test('a start whose sandbox is not resumed by its runtime tries again after pauses, and is READY in the end', async () => {
  const faults = new Faults();
  const w = createOne({ faults });
  const { id: sandboxId } = await w.sandboxes.start('me', { specId: null });
  await until(async () => (await w.sandboxes.get('me', sandboxId)).status === 'RUNNING');
  await w.sandboxes.pause('me', sandboxId, 'freeze');
  faults.plan(...Array.from({ length: 3 }, () => ({ call: 'resume', what: 'unavailable', when: 'before' }) as const));
  const { conversation: { id } } = await w.conversations.start('me', { ...plain, sandboxId });
  await until(async () => (await w.sandboxes.get('me', sandboxId)).refused);
  await calm();
  const attempts = () => w.mortal.calls.filter((call) => call === 'runtime.resume').length;
  expect(attempts()).toBe(1);
  expect(await w.store.conversations.find(id)).toMatchObject({ startStatus: 'WAITING_FOR_SANDBOX', statusReason: { failure: 'runtime_unavailable' } });
  // After 1, 2 and 4 seconds.
  for (let seconds = 0; seconds < 8; seconds += 1) {
    await passSeconds(w.clock, 1);
    await w.sweeper.sweep();
    await calm();
  }
  expect(await w.store.conversations.find(id)).toMatchObject({ startStatus: 'READY' });
  expect(attempts()).toBe(4);
});
