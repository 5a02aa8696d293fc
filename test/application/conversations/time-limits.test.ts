import { describe, expect, test } from 'vitest';
import type { MemoryAgentScript } from '../../doubles/memory/agent-session.ts';
import { createReady, createTakeover, gate } from './support.ts';
import { calm, said, told, until } from './world.ts';

type Ready = Awaited<ReturnType<typeof createReady>>;

const options = [{ optionId: 'y', name: 'Yes', kind: 'allow_once' as const }];
const rest = { freezeAfterMs: 20_000, stopAfterMs: null, deleteAfterMs: null, maxLifeMs: null };
const minute = 60_000;

/** Advances the clock in steps, and does what is due after each step. */
async function pass(w: Ready, ms: number, stepMs = 5000): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    w.clock.advance(stepMs);
    await calm();
    await w.sweeper.sweep();
    await calm();
  }
}

async function lastTurn(w: Ready) {
  return (await w.log()).findLast(({ kind }) => kind === 'turn_ended');
}

/** A conversation in whose turn the agent requests a permission, and the answers that it got. */
async function asking(world: Parameters<typeof createReady>[0] = {}) {
  const answers: (string | null)[] = [];
  const w = await createReady({
    spec: { rest },
    ...world,
    script: async (turn) => {
      answers.push(await turn.ask({ toolCallId: 'c', title: 'c', options }));
    },
  });
  await w.conversations.send('me', w.id, said('one'));
  const permission = await until(async () => (await w.record()).permission);
  const answer = () => w.conversations.answerPermission('me', w.id, permission?.permissionId ?? '', 'y');
  return { w, answers, answer };
}

describe('a turn without output of the agent', () => {
  test('fails with the reason after the time limit of its spec', async () => {
    const w = await createReady({ agent: { turnTimeoutMs: 10 * minute }, script: () => new Promise(() => {}) });
    await w.conversations.send('me', w.id, said('one'));
    await until(() => w.handed.length === 1);
    await pass(w, 9 * minute, 30_000);
    expect(await w.record()).toMatchObject({ executionStatus: 'running' });
    await pass(w, 2 * minute, 5000);
    await w.rested();
    expect(await lastTurn(w)).toMatchObject({ actor: 'skep', data: { stopReason: 'failed' }, reason: { code: 'turn_silent', withinMs: 10 * minute } });
    expect(await w.record()).toMatchObject({ executionStatus: 'error', statusReason: { code: 'turn_silent' } });
  });

  test('keeps its result if the agent ends it by itself after the time limit', async () => {
    const end = gate();
    let isStopped = false;
    const w = await createReady({
      agent: { turnTimeoutMs: 10 * minute },
      script: async ({ signal }) => {
        signal.addEventListener('abort', () => (isStopped = true));
        await end.opened;
        return 'end_turn';
      },
    });
    await w.conversations.send('me', w.id, said('one'));
    await until(() => w.handed.length === 1);
    await pass(w, 10.5 * minute, 30_000);
    await until(() => isStopped);
    end.open();
    await w.rested();
    expect(await lastTurn(w)).toMatchObject({ actor: 'agent', data: { stopReason: 'end_turn' } });
    expect(await w.record()).toMatchObject({ executionStatus: 'idle', statusReason: null });
  });

  test('does not fail because the time of the machine jumps', async () => {
    const w = await createReady({ agent: { turnTimeoutMs: 10 * minute }, script: () => new Promise(() => {}) });
    await w.conversations.send('me', w.id, said('one'));
    await until(() => w.handed.length === 1);
    for (const jumpMs of [60 * minute, -120 * minute]) {
      w.clock.jump(jumpMs);
      await pass(w, 4 * minute, 30_000);
      expect(await w.record()).toMatchObject({ executionStatus: 'running' });
    }
    await pass(w, 3 * minute, 5000);
    expect(await lastTurn(w)).toMatchObject({ reason: { code: 'turn_silent' } });
  });

  test('does not end the agent of the next message, even if the kill takes long', async () => {
    const killing = gate();
    const w = await createReady({
      agent: { turnTimeoutMs: 10 * minute },
      script: async ({ message }) => (message.content[0]?.text === 'one' ? await new Promise(() => {}) : undefined),
    });
    w.host.killing = killing.opened;
    for (const text of ['one', 'two']) await w.conversations.send('me', w.id, said(text));
    await until(() => w.handed.length === 1);
    await pass(w, 10 * minute, 30_000);
    const isKilled = () => !w.host.running.some((each) => each === w.host.executed[0]);
    while (!isKilled()) await pass(w, 1000, 1000);
    await calm();
    expect(w.host.executed).toHaveLength(1);
    killing.open();
    await w.rested();
    expect(w.handed).toEqual(['one', 'two']);
    expect(await w.record()).toMatchObject({ executionStatus: 'idle' });
  });

  test('continues if the agent sends output again, and its time does not count while it is frozen', async () => {
    const steps = [gate(), gate()];
    const w = await createReady({
      agent: { turnTimeoutMs: 10 * minute },
      script: async (turn) => {
        for (const { opened } of steps) {
          await opened;
          await turn.say('still here');
        }
        await new Promise(() => {});
      },
    });
    await w.conversations.send('me', w.id, said('one'));
    for (const { open } of steps) {
      await pass(w, 9 * minute, 30_000);
      open();
      await calm();
    }
    await w.sandboxes.pause('me', w.sandboxId, 'freeze');
    await pass(w, 60 * minute, 30_000);
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'frozen' } });
    await w.sandboxes.resume('me', w.sandboxId);
    await pass(w, 9 * minute, 30_000);
    expect(await w.record()).toMatchObject({ executionStatus: 'running' });
    await pass(w, 2 * minute, 5000);
    expect(await lastTurn(w)).toMatchObject({ reason: { code: 'turn_silent' } });
  });
});

describe('an agent that waits for a permission', () => {
  test('lets its sandbox be frozen, and the answer resumes it', async () => {
    const { w, answers, answer } = await asking();
    await pass(w, minute);
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'waiting_for_permission' }, sandboxStatus: 'PAUSED' });
    await answer();
    await w.rested();
    await until(w.view, ({ sandboxStatus }) => sandboxStatus === 'RUNNING');
    expect(answers).toEqual(['y']);
    expect(await lastTurn(w)).toMatchObject({ data: { stopReason: 'end_turn' } });
  });

  test('keeps its sandbox RUNNING if the runtime can only stop it', async () => {
    const { w, answers, answer } = await asking();
    w.engine.canFreeze = false;
    await pass(w, 2 * minute);
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'waiting_for_permission' }, sandboxStatus: 'RUNNING' });
    await answer();
    await w.rested();
    expect(answers).toEqual(['y']);
  });

  test('waits no longer than its spec allows, frozen or not', async () => {
    for (const spec of [{}, { rest }]) {
      const { w, answers } = await asking({ spec, agent: { permissionTimeoutMs: 60 * minute, turnTimeoutMs: 10 * minute } });
      await pass(w, 59 * minute, 30_000);
      expect(answers).toEqual([]);
      await pass(w, 2 * minute, 5000);
      await w.rested();
      expect(answers).toEqual([null]);
      const answered = (await w.log()).find(({ kind }) => kind === 'permission_answered');
      expect(answered).toMatchObject({ actor: 'skep', reason: { code: 'permission_unanswered', withinMs: 60 * minute }, data: { optionId: null } });
    }
  });
});

const permission = { permissionId: 'perm-msg-1-1', toolCallId: 'c', title: 'c', options };

/** An agent that requested the permission in an earlier process, and the answers that it gets in this one. */
async function askedEarlier(earlierMs = 0) {
  const answers: (string | null)[] = [];
  const script: MemoryAgentScript = async (turn) => void answers.push(await turn.ask({ toolCallId: 'c', title: 'c', options }));
  const executionStatus = 'waiting_for_permission';
  const open = (now: number) => ({ permission: { ...permission, requestedAt: now - earlierMs }, executionStatus } as const);
  const w = await createTakeover(script, open, { agent: { permissionTimeoutMs: 60 * minute } });
  return { w, answers };
}

const freezers = [null, 'skep', 'user'] as const;

test.each(freezers)('a request for permission is withdrawn in time after a restart (frozen by: %s)', async (frozenBy) => {
  const { w, answers } = await askedEarlier(40 * minute);
  if (frozenBy !== null) await w.sandboxes.pause('me', w.sandboxId, 'freeze');
  if (frozenBy === 'skep') {
    const { version, ...sandbox } = await w.sandboxes.get('me', w.sandboxId);
    await w.store.sandboxes.replace({ ...sandbox, version: version + 1, pausedBy: { actor: 'skep', reason: null, version } });
  }
  await pass(w, 19 * minute, minute);
  expect(told(await w.log(), 'permission_answered')).toEqual([]);
  await pass(w, 2 * minute, minute);
  const reason = { code: 'permission_unanswered', withinMs: 60 * minute };
  expect((await w.log()).find(({ kind }) => kind === 'permission_answered')).toMatchObject({ actor: 'skep', reason });
  if (frozenBy === 'user') await w.sandboxes.resume('me', w.sandboxId);
  await w.rested();
  expect(answers).toEqual([null]);
});

describe('a turn of an earlier process, in a sandbox that its owner froze', () => {
  test('continues after an answer', async () => {
    const { w, answers } = await askedEarlier();
    await w.sandboxes.pause('me', w.sandboxId, 'freeze');
    await w.sweeper.sweep();
    await calm();
    expect(await w.view()).toMatchObject({ sandboxStatus: 'PAUSED', conversation: { permission } });
    await w.conversations.answerPermission('me', w.id, permission.permissionId, 'y');
    await w.rested();
    expect(answers).toEqual(['y']);
    expect(await lastTurn(w)).toMatchObject({ data: { stopReason: 'end_turn' } });
  });

  test.each([false, true])('is cancelled, and its agent ends (with an open request: %s)', async (asks) => {
    const w = await createTakeover(async () => {}, () => ({ permission: asks ? permission : null }));
    const removed: string[] = [];
    w.runtime.executions.remove = async (_, id) => void removed.push(id);
    await w.sandboxes.pause('me', w.sandboxId, 'freeze');
    await w.conversations.cancel('me', w.id);
    await w.rested();
    expect(await lastTurn(w)).toMatchObject({ actor: 'user', userId: 'me', data: { stopReason: 'cancelled' } });
    expect(removed).toEqual([`agent-${w.id}`]);
    expect(await w.view()).toMatchObject({ sandboxStatus: 'PAUSED', conversation: { executionStatus: 'idle', permission: null } });
  });
});

test('a sandbox that a rule froze just as a turn began is resumed', async () => {
  const held = gate();
  const w = await createReady({ script: () => held.opened });
  await w.conversations.send('me', w.id, said('one'));
  await until(() => w.handed.length === 1);
  const sandbox = await w.sandboxes.get('me', w.sandboxId);
  const pausing = { status: 'PAUSING', pauseKind: 'freeze', pausedBy: { actor: 'skep', reason: null, version: sandbox.version + 1 } } as const;
  await w.store.sandboxes.replace({ ...sandbox, ...pausing, version: sandbox.version + 1 });
  await w.sandboxReconciler.reconcile(w.sandboxId);
  await pass(w, 35_000);
  expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'running' }, sandboxStatus: 'RUNNING' });
  held.open();
  await w.rested();
  expect(told(await w.log(), 'turn_ended')).toMatchObject([{ stopReason: 'end_turn' }]);
});

test('a sandbox is not paused during a turn, and is paused by its idle rule after it', async () => {
  const held = gate();
  const w = await createReady({ spec: { rest }, script: () => held.opened });
  await w.conversations.send('me', w.id, said('one'));
  await pass(w, 2 * minute);
  expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'running' }, sandboxStatus: 'RUNNING' });
  held.open();
  await w.rested();
  await pass(w, 30_000);
  expect(await w.view()).toMatchObject({ sandboxStatus: 'PAUSED' });
});

test('a shutdown waits for a turn that ends with this process, but no longer than the drain timeout', async () => {
  for (const [waitedMs, stopReason] of [[9_999, 'end_turn'], [10_000, 'interrupted']] as const) {
    const held = gate();
    const w = await createReady({ drainTimeoutMs: 10_000, script: () => held.opened });
    for (const text of ['one', 'two']) await w.conversations.send('me', w.id, said(text));
    await until(() => w.handed.length === 1);
    const closed = w.close();
    await calm();
    w.clock.advance(waitedMs);
    await calm();
    held.open();
    await closed;
    expect(told(await w.log(), 'turn_ended')).toMatchObject([{ stopReason }]);
    expect(w.handed).toEqual(['one']);
    expect(await w.record()).toMatchObject({ turn: null, queue: [{ message: said('two') }] });
  }
});
