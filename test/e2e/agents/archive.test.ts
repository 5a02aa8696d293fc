import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { acpAgentCommand } from '../../doubles/acp-agent/start.ts';
import { object } from '../../support/client.ts';
import { startConversation } from '../../support/conversation.ts';
import { runSkep } from '../../support/server.ts';
import { createScene, key, type Scene } from './scene.ts';

let scene: Scene;
beforeAll(async () => {
  const agent = { protocol: 'acp', command: acpAgentCommand(), permissions: 'allow' };
  scene = await createScene({ config: () => ({ specs: [{ id: 'scripted', command: ['sh', '-c', 'exec sleep infinity'], agent }] }) });
});
afterAll(async () => await scene?.close());

test('if the last changes of an archived conversation cannot be kept, its sandbox stays, and the command fails with the reason', async () => {
  const talk = await startConversation(() => scene.call, { selected_repository: 'acme/shop' });
  await talk.ready();
  await talk.turn(await talk.say('hello'));
  const sandbox = await talk.sandboxId();
  await rm(join(scene.dataDir, 'sandboxes', sandbox, 'workspace/.git'), { recursive: true });
  const archived = await runSkep(['conversations', 'archive', talk.id, '--url', scene.server.url], { SKEP_API_KEY: key });
  const stays = expect.stringContaining(`So its sandbox ${sandbox} stays.`);
  expect(archived).toMatchObject({ code: 1, stdout: expect.stringMatching(/archived +RUNNING/), stderr: stays });
  expect(object(await scene.call('GET', talk.path))).toMatchObject({
    sandbox_status: 'RUNNING', status_detail: stays, status_reason: { code: 'changes_not_kept', cause: { code: 'start_commit_missing' }, sandbox_id: sandbox },
  });
});
