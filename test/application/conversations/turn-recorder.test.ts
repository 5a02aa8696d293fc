import { expect, test } from 'vitest';
import { limitUpdate } from '../../../src/application/conversations/turns/turn-recorder.ts';
import type { AgentUpdate } from '../../../src/ports/agent-protocol.ts';

const update = (texts: number, length: number): Extract<AgentUpdate, { kind: 'tool_call' }> => ({
  kind: 'tool_call',
  call: {
    toolCallId: 'call',
    title: 'Edit',
    toolKind: 'edit',
    status: 'completed',
    paths: ['a.txt'],
    content: Array.from({ length: texts }, () => ({ type: 'diff', path: 'a.txt', oldText: 'o'.repeat(length), newText: 'n'.repeat(length) })),
  },
});

test('a tool call of normal size is not changed', () => {
  expect(limitUpdate(update(3, 1000))).toEqual(update(3, 1000));
});

test('the event of a large tool call is cut, and says how much was cut', () => {
  const told = limitUpdate(update(500, 100_000));
  expect(JSON.stringify(told).length).toBeLessThan(300_000);
  expect(JSON.stringify(told)).toContain('n [... 34464 more]');
});

test('a long list is cut, and its last item says how many are missing', () => {
  const { call } = update(250, 10);
  const cut = limitUpdate({ kind: 'tool_call', call: { ...call, paths: Array.from({ length: 201 }, () => 'a') } });
  expect(cut).toMatchObject({ call: { paths: { length: 201, 200: '[... 1 more]' }, content: { length: 201, 200: { type: 'text', text: '[... 50 more]' } } } });
  const entry = { content: 'a step', priority: 'high', status: 'completed' } as const;
  const plan = limitUpdate({ kind: 'plan', entries: Array.from({ length: 300 }, () => entry) });
  expect(plan).toMatchObject({ entries: { length: 201, 199: entry, 200: { content: '[... 100 more]', status: 'pending' } } });
});
