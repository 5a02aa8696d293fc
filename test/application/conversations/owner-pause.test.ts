import { expect, test } from 'vitest';
import { createInMemoryStore } from '../../../src/adapters/store/sqlite/index.ts';
import { isPausedByOwner } from '../../../src/application/conversations/conversation-work-steps.ts';
import { newConversation } from '../../../src/domain/conversation.ts';
import type { EventActor, EventDraft } from '../../../src/domain/event.ts';
import type { SandboxStatus } from '../../../src/domain/sandbox.ts';
import { sandboxSpec } from '../../../src/domain/sandbox-spec.ts';
import { plain } from './world.ts';

const conversation = newConversation({ ...plain, id: 'conv', ownerId: 'me', taken: null, sandboxId: 'sb', spec: sandboxSpec({ id: 'plain' }), gitProvider: null, initialMessage: null, now: 0 });
const origin = { at: 0, ownerId: 'me', reason: null };

function message(role: 'user' | 'agent', conversationId = 'conv'): EventDraft {
  return { ...origin, kind: 'message', data: { messageId: 'm', role, channel: 'answer', text: 'go on' }, conversationId, sandboxId: 'sb', actor: role };
}

function moved(to: SandboxStatus | null, actor: EventActor): EventDraft {
  return { ...origin, kind: 'sandbox_moved', data: { from: 'RUNNING', to, pauseKind: null }, conversationId: null, sandboxId: 'sb', actor };
}

const paused = [moved('PAUSING', 'user'), moved('PAUSED', 'skep')];

test.each<readonly [string, boolean, readonly EventDraft[]]>([
  ['nothing was said of a pause', false, [message('user')]],
  ['its owner paused it after the message', true, [message('user'), ...paused]],
  ['the message came after that', false, [message('user'), ...paused, message('user')]],
  ['only the agent said something after that, in the turn that was ended', true, [message('user'), moved('PAUSING', 'user'), message('agent'), moved('PAUSED', 'skep')]],
  ['only another conversation of the sandbox got a message after that', true, [message('user'), ...paused, message('user', 'other')]],
  ['a rule put it to rest', false, [message('user'), moved('PAUSING', 'skep'), moved('PAUSED', 'skep')]],
  ['it was ended from outside', false, [message('user'), moved('PAUSING', 'runtime'), moved('PAUSED', 'skep')]],
  ['it was resumed since, and rests by a rule now', false, [message('user'), ...paused, moved('RESUMING', 'user'), moved('RUNNING', 'runtime'), moved('PAUSING', 'skep'), moved('PAUSED', 'skep')]],
  ['its owner paused it again after a rule had', true, [message('user'), moved('PAUSING', 'skep'), moved('PAUSED', 'skep'), moved('RESUMING', 'user'), moved('RUNNING', 'runtime'), ...paused]],
])('is what waits held? %s: %s', async (_, held, events) => {
  const { events: store } = createInMemoryStore();
  await store.append(events);
  expect(await isPausedByOwner(store, conversation)).toBe(held);
});

test.each([1, 998, 999, 1000, 1001, 2500])('looks at all of the log, however long: a pause after %i messages', async (count) => {
  const { events: store } = createInMemoryStore();
  await store.append(Array.from({ length: count }, () => message('user')));
  expect(await isPausedByOwner(store, conversation)).toBe(false);
  await store.append(paused);
  expect(await isPausedByOwner(store, conversation)).toBe(true);
});
