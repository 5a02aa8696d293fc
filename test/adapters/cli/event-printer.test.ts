import { expect, test } from 'vitest';
import { EventPrinter } from '../../../src/adapters/cli/event-printer.ts';
import type { api } from '../../../src/client/index.ts';

const place = { id: 1, at: '2026-01-01T00:00:00Z', conversation_id: 'c', sandbox_id: 's', owner_id: 'ann', reason: null, status_reason: null };

function shown(user_id: string | null): string {
  const written: string[] = [];
  const printer = new EventPrinter({ write: (text) => written.push(text), colored: false, json: false });
  const by = { ...place, actor: 'user', user_id } as const;
  const data: api.MessageEvent['data'] = { message_id: 'm', role: 'user', channel: 'answer', text: 'Hello' };
  printer.show({ ...by, kind: 'message', data });
  printer.show({ ...by, kind: 'permission_answered', data: { permission_id: 'p', option_id: 'yes' } });
  return written.join('');
}

test('names the users who wrote and who answered, unless it is the owner', () => {
  expect(shown('ann')).toBe('> Hello\n  answer: yes\n');
  expect(shown(null)).toBe('> Hello\n  answer: yes\n');
  expect(shown('root')).toBe('root> Hello\n  answer: yes, by root\n');
});
