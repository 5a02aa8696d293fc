import { describe, expect, test } from 'vitest';
import type { CommitDescription } from '../../../contracts/git-repository.ts';
import { agents, failureOf, list, start } from '../support.ts';
import { createScene, manyFiles, simple, simpleListing } from './support.ts';

const long: readonly CommitDescription[] = Array.from({ length: 250 }, (_, index) => ({
  id: `c${index}`,
  at: start + index,
  files: [[`${agents}/long.md`, `${index}`], ...(index === 100 ? [[`${agents}/short.md`, '1'] as const] : [])],
}));
const longListing = [[`${agents}/long.md`, start], [`${agents}/short.md`, start + 100]];

describe('A listing from a host with unusual answers', () => {
  test.each([
    [{ cursors: 'honoured' as const }, 3],
    [{ cursors: 'ignored' as const }, 5],
    [{ cursors: 'refused' as const }, 5],
    [{ cursorForm: 'opaque' as const }, 4],
  ])('is correct with %o', async (behavior, requests) => {
    const scene = await createScene();
    await scene.publish({ commits: long });
    Object.assign(scene.double.graphql, behavior);
    expect(await list(scene.provider())).toEqual(longListing);
    expect(scene.asked()).toHaveLength(requests);
  });

  test.each(['status', 'error', 'limit'] as const)('is split into several queries if the host gives up on one (%s)', async (failsWith) => {
    const scene = await createScene();
    await scene.publish(manyFiles(100));
    Object.assign(scene.double.graphql, { maxHistories: 25, failsWith });
    expect(await list(scene.provider())).toHaveLength(100);
    expect(scene.asked().filter((request) => request.endsWith(' 25 histories'))).toHaveLength(4);
  });

  test('fails if the host gives up on small queries, too', async () => {
    const scene = await createScene();
    await scene.publish(manyFiles(100));
    Object.assign(scene.double.graphql, { maxHistories: 3 });
    expect(await failureOf(list(scene.provider()))).toMatch(/^provider_failed: .*server_error.*502/u);
    expect(scene.asked().length).toBeLessThanOrEqual(1 + 1 + 2 + 4);
  });

  test('reads trees by REST if GraphQL does not return them', async () => {
    const scene = await createScene();
    await scene.publish({ commits: [{ id: 'a', at: start, files: [[`${agents}/x/a.md`, '1'], [`${agents}/b.md`, '1']] }] });
    Object.assign(scene.double.graphql, { servesTrees: false });
    expect(await list(scene.provider())).toEqual([[`${agents}/b.md`, start], [`${agents}/x/a.md`, start]]);
  });

  test('reads a tree that is too deep for one query with one more request', async () => {
    const scene = await createScene();
    const path = `${agents}/${Array.from({ length: 30 }, (_, index) => index).join('/')}/deep.md`;
    await scene.publish({ commits: [{ id: 'a', at: start, files: [[path, '1']] }] });
    expect(await list(scene.provider())).toEqual([[path, start]]);
    expect(scene.asked()).toHaveLength(3);
  });

  test('completes trees that the host truncated', async () => {
    const scene = await createScene();
    const paths = Array.from({ length: 40 }, (_, index) => `${agents}/${index % 3}/${index % 5}/1/2/3/4/5/6/7/8/${index}.md`).toSorted();
    await scene.publish({ commits: [{ id: 'a', at: start, files: paths.map((path) => [path, '1']) }] });
    for (const provider of [scene.provider(), scene.anonymous()]) {
      scene.double.treeLimit = 30;
      expect((await list(provider)).map(([path]) => path)).toEqual(paths);
    }
  });

  test('fails if the directory has too many files', async () => {
    const scene = await createScene();
    await scene.publish(manyFiles(20));
    for (const provider of [scene.provider({ maxFiles: 19 }), scene.anonymous({ maxFiles: 19 })]) {
      expect(await failureOf(list(provider))).toMatch(/^provider_failed: .*too_large.*19 files/u);
    }
  });
});

describe('A renamed repository', () => {
  const query = { directory: (name: string) => (name === '.skep' ? 'microagents' : agents), accepts: () => true };
  const both = { commits: [{ id: 'a', at: start, files: [[`${agents}/a.md`, '1'], ['microagents/b.md', '1']] }] } as const;

  test.each(['with', 'without'])('is listed with the directory for its new name, %s a token', async (way) => {
    const scene = await createScene();
    await scene.publish(both);
    const provider = way === 'with' ? scene.provider() : scene.anonymous();
    expect((await provider.listFiles('acme/shop', query)).directory).toBe(agents);
    scene.double.repositories.rename('acme/shop', 'acme/.skep');
    for (let time = 0; time < 2; time += 1) {
      expect(await provider.listFiles('acme/shop', query)).toEqual({
        directory: 'microagents',
        files: [{ path: 'microagents/b.md', blobId: expect.any(String), createdAt: start * 1000 }],
      });
    }
    expect(await provider.find('acme/shop')).toEqual({ path: 'acme/.skep', defaultBranch: 'main' });
    scene.double.repositories.rename('acme/.skep', 'acme/other');
    expect((await provider.listFiles('acme/.skep', query)).directory).toBe(agents);
  });

  test('is not mixed up with a new repository under its old name', async () => {
    const scene = await createScene();
    await scene.publish(simple);
    const provider = scene.provider();
    scene.double.repositories.rename('acme/shop', 'acme/store');
    expect(await list(provider)).toEqual(simpleListing);
    await scene.publish({ commits: [{ id: 'b', at: start + 5, files: [[`${agents}/b.md`, '1']] }] });
    expect(await list(provider)).toEqual([[`${agents}/b.md`, start + 5]]);
    scene.double.repositories.remove('acme/shop');
    scene.double.repositories.remove('acme/store');
    expect(await failureOf(list(provider))).toMatch(/^repository_not_found: /u);
  });
});
