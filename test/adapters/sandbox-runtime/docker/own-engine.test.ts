import { readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { images } from '../../../support/docker.ts';
import { createOwnEngine, describeWithOwnEngine } from './own-engine.ts';
import { livingProcesses } from './processes.ts';

describeWithOwnEngine('A private engine of a test', () => {
  test('leaves nothing behind, even if it was killed and lost its containers', { timeout: 180_000 }, async () => {
    const engine = await createOwnEngine();
    const folder = dirname(engine.host.replace('unix://', ''));
    const ours = async () =>
      (await livingProcesses()).filter(({ commandLine }) => commandLine.includes(folder) || commandLine.includes('sleep 424242'));
    try {
      for (const frozen of [true, false]) {
        const container = await engine.docker.createContainer({
          Image: images.tiny,
          Cmd: ['sleep', '424242'],
          HostConfig: { NetworkMode: 'none' },
        });
        await container.start();
        if (frozen) await container.pause();
      }
      await engine.stop('SIGKILL');
      for (const name of await readdir(join(folder, 'data/containers')))
        await rm(join(folder, 'data/containers', name), { recursive: true });
      await engine.start();
      expect(await engine.docker.listContainers({ all: true })).toEqual([]);
      expect(await ours()).not.toEqual([]);
      // One that it lists has vanished by the time that it is removed.
      const vanished = await engine.docker.createContainer({ Image: images.tiny });
      const listed = await engine.docker.listContainers({ all: true });
      await vanished.remove();
      vi.spyOn(engine.docker, 'listContainers').mockResolvedValueOnce(listed);
    } finally {
      await engine.close();
    }
    expect(await ours()).toEqual([]);
    await expect(readdir(folder)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
