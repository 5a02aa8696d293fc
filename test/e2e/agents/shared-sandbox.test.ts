import { describe, expect, test } from 'vitest';
import { object } from '../../support/client.ts';
import { startConversation } from '../../support/conversation.ts';
import { clearEngine, deploymentOf } from '../../support/deployment.ts';
import { describeWithDocker, images } from '../../support/docker.ts';
import { createScene, type Scene } from './scene.ts';

/** Starts two conversations in the sandbox of a third one, which may still unpack its work tree, and requires that each has only its own files. */
async function expectOwnChanges(scene: Scene): Promise<void> {
  const first = await startConversation(() => scene.call, { selected_repository: 'acme/shop' });
  const inSandbox = { sandbox_id: await first.sandboxId(), selected_repository: 'acme/shop' };
  const others = [await startConversation(() => scene.call, inSandbox), await startConversation(() => scene.call, inSandbox)];
  await Promise.all([first, ...others].map((each) => each.ready()));
  const files = `/api/v1/sandboxes/${inSandbox.sandbox_id}/files?path=/workspace`;
  for (const { id, path } of others) {
    expect([200, 201]).toContain((await scene.call('PUT', `${files}/${id}/own.txt`, { id })).status);
    expect(object(await scene.call('GET', `${path}/changes`))).toMatchObject({ complete: true, files: [{ path: 'own.txt', status: 'added' }] });
  }
  expect((await scene.call('GET', `${files}/.git/info/exclude`)).body).toMatch(/^\/conv-\[a-z0-9\]/m);
  // Without it, git in the first work tree adds the others.
  expect((await scene.call('DELETE', `${files}/.git/info/exclude`)).status).toBe(204);
  await scene.call('PATCH', others[0]?.path ?? '', { archived: true });
  await scene.call('DELETE', others[1]?.path ?? '');
  expect(object(await scene.call('GET', `${first.path}/changes`))).toMatchObject({ complete: true, files: [] });
  const { body } = await scene.call('POST', `${first.path}/publish`, {});
  expect(body).toMatchObject({ code: 'conversation_publish_refused', reason: { code: 'nothing_to_publish' } });
}

const title = 'each of three conversations in one sandbox lists and publishes only its own work tree';

describe('In the process runtime', () => {
  test(title, async () => {
    const scene = await createScene({ config: () => ({ specs: [{ id: 'plain', command: ['sleep', 'infinity'] }] }) });
    try {
      await expectOwnChanges(scene);
    } finally {
      await scene.close();
    }
  });
});

describeWithDocker('In the Docker runtime', () => {
  test(title, async () => {
    const isolation = { read_only_root: true, user: '1000:1000' };
    const spec = { id: 'plain', image: images.debian, command: ['sleep', 'infinity'], isolation };
    const scene = await createScene({ env: { SKEP_SANDBOX_RUNTIME: 'docker' }, config: () => ({ specs: [spec] }) });
    try {
      await expectOwnChanges(scene);
    } finally {
      await scene.close((dataDir) => clearEngine(deploymentOf(dataDir)));
    }
  });
});
