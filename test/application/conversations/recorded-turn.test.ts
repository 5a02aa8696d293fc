import { expect, test, vi } from 'vitest';
import { createInMemoryStore } from '../../../src/adapters/store/sqlite/index.ts';
import { readRecordedTurn } from '../../../src/application/conversations/turns/turn-recorder.ts';
import { eventOf, someConversation } from '../../contracts/records.ts';

test('The recorded part of a turn is read in small pages: its events may be large', async () => {
  const { events } = createInMemoryStore();
  const conversation = someConversation('one');
  const chunk = eventOf('message_chunk', { messageId: 'm', channel: 'answer', text: 'abc' }, { conversationId: 'one', actor: 'agent' });
  await events.append(Array.from({ length: 250 }, () => chunk));
  const read = vi.spyOn(events, 'read');
  expect(await readRecordedTurn(events, conversation, { sessionId: 's', requestId: 1, stdin: 0, stdout: 0, from: 0, context: null })).toMatchObject({ written: 750, lastSequence: 250 });
  expect(read.mock.calls.map(([, , limit]) => limit)).toEqual([100, 100, 100]);
});
