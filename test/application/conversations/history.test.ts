import { describe, expect, test } from 'vitest';
import type { TranscriptEntry } from '../../../src/application/conversations/conversations.ts';
import type { PermissionOption } from '../../../src/domain/permission.ts';
import { type EventBody, eventOf, messageBody } from '../../../src/domain/event.ts';
import { createReady, failureOf } from './support.ts';
import { createOne, plain, said, told, until, type WorldOptions } from './world.ts';

async function entries(w: Pick<Awaited<ReturnType<typeof createReady>>, 'conversations' | 'id'>): Promise<TranscriptEntry[]> {
  const all: TranscriptEntry[] = [];
  for await (const entry of await w.conversations.transcript('me', w.id)) all.push(entry);
  return all;
}

describe('an archived conversation', () => {
  test('has no agent and no sandbox, accepts no message, and keeps its transcript', async () => {
    const w = await createReady();
    await w.conversations.send('me', w.id, said('hello'));
    await w.rested();
    const view = await w.conversations.update('me', w.id, { archived: true });
    expect(view).toMatchObject({ sandboxStatus: 'MISSING', conversation: { archivedAt: expect.any(Number), executionStatus: null, queue: [], turn: null } });
    expect(await w.record()).toMatchObject({ releasedAt: expect.any(Number), deletedAt: null });
    expect((await entries(w)).map((entry) => (entry.kind === 'message' ? entry.text : entry.kind))).toEqual(['hello', 'heard: hello']);
    expect(told(await w.log(), 'conversation_archived')).toHaveLength(1);

    expect(await failureOf(w.conversations.send('me', w.id, said('more')))).toMatchObject({
      code: 'conversation_not_ready', context: { reason: { code: 'conversation_archived' } },
    });
    expect(await failureOf(w.conversations.update('me', w.id, { archived: false }))).toMatchObject({ code: 'conversation_not_ready' });
    await w.conversations.update('me', w.id, { archived: true, title: 'Kept' });
    expect(await w.record()).toMatchObject({ title: 'Kept', archivedAt: view.conversation.archivedAt });
    expect(told(await w.log(), 'conversation_archived')).toHaveLength(1);
    await w.conversations.delete('me', w.id);
    expect(await failureOf(w.conversations.get('me', w.id))).toMatchObject({ code: 'conversation_not_found' });
  });

  test('ends its running turn and drops its waiting messages', async () => {
    const begun = Promise.withResolvers<void>();
    const w = await createReady({
      script: async (turn) => {
        await turn.say('working');
        begun.resolve();
        await new Promise<void>((resolve) => {
          turn.signal.addEventListener('abort', () => resolve());
        });
      },
    });
    await w.conversations.send('me', w.id, said('first'));
    await w.conversations.send('me', w.id, said('second'));
    await begun.promise;
    await w.conversations.update('me', w.id, { archived: true });
    await until(async () => (await w.record()).releasedAt !== null || null);
    expect(told(await w.log(), 'message', 'turn_ended', 'conversation_archived')).toMatchObject([
      { text: 'first' }, { text: 'second' }, { kind: 'conversation_archived' }, { text: 'working' }, { stopReason: 'interrupted' },
    ]);
    expect(await w.record()).toMatchObject({ turn: null, queue: [], executionStatus: null, statusReason: null });
    expect(w.handed).toEqual(['first']);
    expect(await entries(w)).toMatchObject([
      { text: 'first' }, { text: 'working' }, { stopReason: 'interrupted', reason: { code: 'interrupted_by_archiving' } }, { text: 'second', isDelivered: false },
    ]);
  });

  test('ends a turn of an earlier process', async () => {
    const w = await createReady();
    const record = await w.record();
    const turn = { messageId: 'msg-1', message: said('go'), sandboxVersion: 1 };
    await w.store.conversations.replace({ ...record, turn, archivedAt: w.clock.now(), executionStatus: null, version: record.version + 1 });
    await w.boot().conversationReconciler.reconcile(w.id);
    expect(await w.record()).toMatchObject({ turn: null, executionStatus: null, releasedAt: expect.any(Number) });
    expect((await w.log()).filter(({ kind }) => kind === 'turn_ended')).toMatchObject([{ actor: 'user', reason: { code: 'interrupted_by_archiving' } }]);
  });

  test('ends its start', async () => {
    const w = createOne();
    const { conversation: { id } } = await w.conversations.start('me', plain);
    const { conversation } = await w.conversations.update('me', id, { archived: true });
    const statusReason = { code: 'step_failed', step: expect.any(String), cause: { code: 'conversation_archived' } };
    expect(conversation).toMatchObject({ startStatus: 'ERROR', statusReason });
    expect((await w.log(id)).findLast(({ kind }) => kind === 'start_step')).toMatchObject({ data: { to: 'ERROR' }, reason: statusReason, actor: 'user' });
  });

  test('can be archived and read only by its owner', async () => {
    const w = await createReady();
    expect(await failureOf(w.conversations.update('you', w.id, { archived: true }))).toMatchObject({ code: 'conversation_not_found' });
    expect(await failureOf(w.conversations.transcript('you', w.id))).toMatchObject({ code: 'conversation_not_found' });
    expect(await w.record()).toMatchObject({ archivedAt: null });
  });
});

test('a title is changed and removed, and an update without a change writes nothing', async () => {
  const w = await createReady();
  expect(await w.conversations.update('me', w.id, { title: 'New' })).toMatchObject({ conversation: { title: 'New' } });
  const { version } = await w.record();
  await w.conversations.update('me', w.id, { title: 'New' });
  await w.conversations.update('me', w.id, {});
  expect(await w.record()).toMatchObject({ title: 'New', version });
  expect(await w.conversations.update('me', w.id, { title: null })).toMatchObject({ conversation: { title: null } });
});

test('a transcript has each tool call once, with its last status and why it failed, and no thoughts', async () => {
  const w = await createReady({
    script: async (turn) => {
      await turn.say('let me think', { channel: 'thought' });
      await turn.tool({ toolCallId: 'edit', title: 'Edit', paths: ['a.ts'] });
      await turn.tool({ toolCallId: 'edit', status: 'in_progress' });
      await turn.tool({ toolCallId: 'left', title: 'Never ends' });
      await turn.tool({ toolCallId: 'edit', status: 'completed', content: [{ type: 'text', text: 'the whole file' }] });
      await turn.tool({ toolCallId: 'run', title: 'npm test', status: 'failed', content: [
        { type: 'text', text: 'one' }, { type: 'diff', path: 'a.ts', oldText: null, newText: 'x' }, { type: 'text', text: 'two' },
      ] });
      await turn.tool({ toolCallId: 'silent', title: 'false', status: 'failed' });
      await turn.say('done');
    },
  });
  await w.conversations.send('me', w.id, said('go'));
  await w.rested();
  expect(await entries(w)).toMatchObject([
    { kind: 'message', role: 'user', text: 'go' },
    { kind: 'tool_call', title: 'Edit', status: 'completed', paths: ['a.ts'], failure: null },
    { title: 'npm test', status: 'failed', failure: 'one\ntwo' },
    { title: 'false', status: 'failed', failure: null },
    { kind: 'message', role: 'agent', text: 'done' },
    { kind: 'tool_call', title: 'Never ends', status: 'failed', failure: null },
  ]);
});

test('a transcript has a message at the start of its turn, after the answer before it', async () => {
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const w = await createReady({
    script: async (turn) => {
      const text = turn.message.content.at(-1)?.text;
      begun.resolve();
      if (text === 'one') await goOn.promise;
      await turn.say(`heard: ${text}`);
    },
  });
  await w.conversations.send('me', w.id, said('one'));
  await begun.promise;
  await w.conversations.send('me', w.id, said('two'));
  expect((await entries(w)).map((entry) => entry.kind === 'message' && entry.text)).toEqual(['one', 'two']);
  w.clock.advance(1000);
  goOn.resolve();
  await w.rested();
  const all = await entries(w);
  expect(all).toMatchObject([{ text: 'one' }, { text: 'heard: one' }, { text: 'two' }, { text: 'heard: two' }]);
  expect(all.map(({ at }) => at)).toEqual(all.map(({ at }) => at).toSorted((a, b) => a - b));
});

test('a transcript has messages without a turn, with the time when they were sent', async () => {
  const w = await createReady();
  const record = await w.record();
  const bodies: EventBody[] = [
    messageBody({ messageId: 'a', message: said('dropped'), sandboxVersion: 0 }),
    messageBody({ messageId: 'b', message: said('go'), sandboxVersion: 0 }),
    { kind: 'turn_started', data: { messageId: 'b' } },
    messageBody({ messageId: 'c', message: said('waits'), sandboxVersion: 0 }),
    // After it went back into the queue.
    { kind: 'turn_started', data: { messageId: 'b' } },
    { kind: 'message', data: { messageId: 'd', role: 'agent', channel: 'answer', text: 'gone' } },
  ];
  await w.store.events.append(bodies.map((body, at) => eventOf(record, body, { at, actor: 'skep', reason: null })));
  expect(await entries(w)).toMatchObject([
    { text: 'dropped', at: 0, isDelivered: false }, { text: 'go', at: 2, isDelivered: true }, { text: 'gone', at: 5 }, { text: 'waits', at: 3, isDelivered: false },
  ]);
});

test.each([
  ['is withdrawn', { kind: 'turn_ended', data: { messageId: 'a', stopReason: 'cancelled' } }, 'message_withdrawn', { at: 0, isDelivered: false }],
  ['has its next turn', { kind: 'turn_started', data: { messageId: 'a' } }, null, { at: 3, isDelivered: true }],
] as const)('a message that went back into the queue, and then %s, has the place and time of that', async (_, last, code, expected) => {
  const w = await createReady();
  const record = await w.record();
  const bodies: (readonly [EventBody, 'message_requeued' | 'message_withdrawn' | null])[] = [
    [messageBody({ messageId: 'a', message: said('go'), sandboxVersion: 0 }), null],
    [{ kind: 'turn_started', data: { messageId: 'a' } }, null],
    [{ kind: 'turn_ended', data: { messageId: 'a', stopReason: 'interrupted' } }, 'message_requeued'],
    [last, code],
  ];
  await w.store.events.append(bodies.map(([body, reason], at) => eventOf(record, body, { at, actor: 'skep', reason: reason && { code: reason } })));
  expect(await entries(w)).toMatchObject([{ kind: 'turn_ended' }, { text: 'go', ...expected }]);
});

const options: readonly PermissionOption[] = [{ optionId: 'yes', name: 'Yes, once', kind: 'allow_once' }, { optionId: 'no', name: 'No', kind: 'reject_once' }];
const asks: WorldOptions['script'] = async (turn) => {
  await turn.tool({ toolCallId: 'edit', title: 'Edit' });
  await turn.ask({ toolCallId: 'edit', title: 'Write a file', options });
  await turn.tool({ toolCallId: 'edit', status: 'completed' });
};

test('a transcript says who answered a permission request, and how', async () => {
  const w = await createReady({ agent: { permissions: 'ask' }, script: asks });
  await w.conversations.send('me', w.id, said('go'));
  const permission = await until(async () => (await w.record()).permission);
  expect(await entries(w)).toMatchObject([
    { text: 'go' }, { title: 'Edit', status: 'pending' }, { kind: 'permission', at: w.clock.now(), title: 'Write a file', answer: null },
  ]);
  await w.conversations.answerPermission('me', w.id, permission?.permissionId ?? '', 'yes');
  await w.rested();
  expect(await entries(w)).toMatchObject([
    { text: 'go' },
    { kind: 'permission', title: 'Write a file', answer: { option: options[0], actor: 'user', reason: null } },
    { title: 'Edit', status: 'completed' },
  ]);
});

test('a transcript has permission decisions of a policy, and withdrawn requests', async () => {
  const byPolicy = await createReady({ agent: { permissions: 'deny' }, script: asks });
  await byPolicy.conversations.send('me', byPolicy.id, said('go'));
  await byPolicy.rested();
  expect(await entries(byPolicy)).toContainEqual({
    kind: 'permission', at: expect.any(Number), title: 'Write a file',
    answer: { option: options[1], actor: 'skep', userId: null, reason: { code: 'permission_by_policy', policy: 'deny' } },
  });
  const withdrawn = await createReady({ agent: { permissions: 'ask' }, script: asks });
  await withdrawn.conversations.send('me', withdrawn.id, said('go'));
  await until(async () => (await withdrawn.record()).permission);
  await withdrawn.conversations.update('me', withdrawn.id, { archived: true });
  await until(async () => (await withdrawn.record()).releasedAt !== null || null);
  expect(await entries(withdrawn)).toContainEqual({
    kind: 'permission', at: expect.any(Number), title: 'Write a file', answer: { option: null, actor: 'user', userId: 'me', reason: null },
  });
});

test('a request for permission waits for no answer after its turn has ended', async () => {
  const w = await createReady();
  const record = await w.record();
  const bodies: EventBody[] = [
    { kind: 'permission_requested', data: { permissionId: 'p', toolCallId: 'edit', title: 'Write a file', options } },
    { kind: 'turn_ended', data: { messageId: 'a', stopReason: 'interrupted' } },
  ];
  await w.store.events.append(bodies.map((body, at) => eventOf(record, body, { at, actor: 'skep', reason: null })));
  expect(await entries(w)).toMatchObject([{ kind: 'turn_ended' }]);
});
