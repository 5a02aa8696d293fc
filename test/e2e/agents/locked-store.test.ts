import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { acpAgentCommand } from '../../doubles/acp-agent/start.ts';
import { acpScript } from '../../doubles/acp-agent/steps.ts';
import { messageOf, startConversation, answersIn } from '../../support/conversation.ts';
import { createScene } from './scene.ts';

/** Longer than the store waits for a lock. */
const lockedMs = 12_000;
const chunks = 20_000;

test('a turn continues while another program locks the database, and loses or repeats no chunk', async () => {
  const agent = { protocol: 'acp', command: acpAgentCommand() };
  const scene = await createScene({ config: () => ({ specs: [{ id: 'scripted', command: ['sh', '-c', 'while :; do sleep 1000; done'], agent }] }) });
  try {
    const talk = await startConversation(() => scene.call, { initial_message: messageOf(acpScript({ say: 'begin ' }, { flood: chunks })) });
    await talk.event('message_chunk');
    const other = new DatabaseSync(join(scene.dataDir, 'skep.db'), { timeout: 5000 });
    other.exec('BEGIN IMMEDIATE');
    const begun = performance.now();
    await pause(lockedMs / 2);
    // The server responds while the database is locked.
    expect(await talk.now()).toMatchObject({ execution_status: 'running' });
    await pause(lockedMs - (performance.now() - begun));
    other.exec('ROLLBACK');
    other.close();
    const turn = await talk.turn();
    expect(turn.stopReason).toBe('end_turn');
    expect(answersIn(turn).join('').replace(/^begin /, '')).toBe(Array.from({ length: chunks }, (_, n) => String(n)).join(''));
  } finally {
    await scene.close();
  }
});
