import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { items, object } from '../../support/client.ts';
import { startConversation } from '../../support/conversation.ts';
import { clearEngine, deploymentOf } from '../../support/deployment.ts';
import { describeWithDocker, images } from '../../support/docker.ts';
import { until } from '../../support/until.ts';
import { createScene, key, type Scene } from './scene.ts';

/** Kills the server while a file is written into the work tree, and requires that what is left of it is not among the changes. */
async function expectNoChanges(scene: Scene): Promise<void> {
  const conversation = await startConversation(() => scene.call, { selected_repository: 'acme/shop' });
  await conversation.ready();
  const sandbox = `/api/v1/sandboxes/${await conversation.sandboxId()}`;
  const upload = request(`${scene.server.url}${sandbox}/files?path=/workspace/large`, {
    method: 'PUT', headers: { 'X-Session-API-Key': key, 'Content-Type': 'application/octet-stream', 'Content-Length': String(1 << 30) },
  });
  upload.on('error', () => {}).write(Buffer.alloc(4 << 20));
  const left = async (): Promise<boolean> => items(await scene.call('GET', `${sandbox}/directories?path=/workspace`))
    .some(({ path }) => String(path).startsWith('/workspace/.skep-'));
  await until(left, Boolean);
  await scene.crash();
  upload.destroy();
  expect(await left()).toBe(true);
  expect(object(await scene.call('GET', `${conversation.path}/changes`))).toMatchObject({ complete: true, files: [] });
}

const title = 'a file that a killed server has written in part is not among the changes';

describe('In the process runtime', () => {
  test(title, async () => {
    const scene = await createScene({ config: () => ({ specs: [{ id: 'plain', command: ['sleep', 'infinity'] }] }) });
    try {
      await expectNoChanges(scene);
    } finally {
      await scene.close();
    }
  });
});

describeWithDocker('In the Docker runtime', () => {
  test(title, async () => {
    const spec = { id: 'plain', image: images.debian, command: ['sleep', 'infinity'] };
    const scene = await createScene({ env: { SKEP_SANDBOX_RUNTIME: 'docker' }, config: () => ({ specs: [spec] }) });
    try {
      await expectNoChanges(scene);
    } finally {
      await scene.close((dataDir) => clearEngine(deploymentOf(dataDir)));
    }
  });
});
