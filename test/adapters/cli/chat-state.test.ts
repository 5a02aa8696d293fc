import { describe, expect, test } from 'vitest';
import {
  afterEvent, type ChatState, exitCodeOf, firstState, hasOpenTurn, withMessage, withTurnsEnded,
} from '../../../src/adapters/cli/chat-state.ts';
import type { api } from '../../../src/client/index.ts';

const ready: ChatState = { ...firstState, phase: 'ready' };
const done: ChatState = { ...ready, input: 'ended' };

function event(kind: api.Event['kind'], data: object, code: string | null = null): api.Event {
  return { id: 1, kind, data, status_reason: code === null ? null : { code } } as api.Event;
}

describe('a chat', () => {
  test.each<[string, ChatState]>([
    ['its input is open', ready],
    ['the events from before are being read', { ...done, phase: 'history' }],
    ['the conversation starts', { ...done, phase: 'starting' }],
    ['a line has not taken effect', { ...done, pendingWork: 1 }],
    ['a turn is open', withMessage(done, 'a')],
  ])('continues while %s', (_, state) => {
    expect(exitCodeOf(state)).toBeNull();
  });

  test('ends when its input has ended and all its turns have, with 1 if something failed', () => {
    expect(exitCodeOf(done)).toBe(0);
    expect(exitCodeOf(withTurnsEnded(withMessage(done, 'a')))).toBe(0);
    expect(exitCodeOf({ ...done, hasFailed: true })).toBe(1);
  });

  test('ends whatever waits if the person leaves, or if the agent is gone', () => {
    const busy = withMessage({ ...ready, pendingWork: 2 }, 'a');
    expect(exitCodeOf({ ...busy, input: 'left' })).toBe(0);
    expect(exitCodeOf(afterEvent(busy, event('conversation_archived', {})))).toBe(1);
  });
});

describe('a turn', () => {
  test('that ends before the response that accepts its message stays ended', () => {
    const ended = afterEvent(ready, event('turn_ended', { message_id: 'a', stop_reason: 'end_turn' }));
    expect(hasOpenTurn(withMessage(ended, 'a'))).toBe(false);
  });

  test('that fails counts only in this chat', () => {
    const failed = event('turn_ended', { message_id: 'a', stop_reason: 'failed' });
    expect(afterEvent(ready, failed).hasFailed).toBe(true);
    expect(afterEvent(firstState, failed).hasFailed).toBe(false);
  });

  test('goes on, without a failure, if its message is sent again', () => {
    const requeued = event('turn_ended', { message_id: 'a', stop_reason: 'interrupted' }, 'message_requeued');
    const open = afterEvent(withMessage(ready, 'a'), requeued);
    expect([hasOpenTurn(open), open.hasFailed]).toEqual([true, false]);
    expect(hasOpenTurn(afterEvent(open, event('turn_ended', { message_id: 'a', stop_reason: 'end_turn' })))).toBe(false);
  });

  test('ends with its sandbox, but not if the sandbox is only paused', () => {
    const open = withMessage(ready, 'a');
    const after = (to: string | null) => afterEvent(open, event('sandbox_moved', { to }));
    expect([after('MISSING'), after(null)]).toMatchObject([{ hasFailed: true }, { hasFailed: true }]);
    expect([hasOpenTurn(after('MISSING')), hasOpenTurn(after('PAUSED')), after('PAUSED').hasFailed]).toEqual([false, true, false]);
  });
});
