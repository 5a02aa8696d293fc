import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { AcpAgentOptions } from '../../../doubles/acp-agent/options.ts';
import { openScripted, type ScriptedSession } from './agents.ts';

let sessions: string;

beforeEach(async () => {
  sessions = await mkdtemp(join(tmpdir(), 'skep-acp-'));
});

afterEach(() => rm(sessions, { recursive: true }));

/** Runs a turn in a session, and continues the session with another process of the agent. */
async function continued(continues: AcpAgentOptions['continues']): Promise<ScriptedSession> {
  const first = await openScripted({ agent: { sessions } });
  await first.does({ say: 'an answer' }, { tool: { toolCallId: 'call', title: 'A call' } });
  return await openScripted({ agent: { sessions, ...(continues && { continues }) }, sessionId: first.session.id });
}

test('a history that the agent replays after it has loaded the session is not output of the next turn', async () => {
  const { session, client, does } = await continued('load_late');
  expect(session.loaded).toBe(true);
  await does({ say: 'new' });
  expect(client.updates).toEqual([{ kind: 'message_chunk', channel: 'answer', messageId: null, text: 'new' }]);
});

test('a session is resumed without its history if the agent offers that', async () => {
  const { session, client, does } = await continued('resume');
  expect(session.loaded).toBe(true);
  await does({ say: 'new' });
  expect(client.said()).toBe('new');
});
