import { writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import type { Reason } from '../../../../src/domain/reason.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { commits, createScene, open, start, noProgress } from './support.ts';

describe('A fetch', () => {
  test('gets only the new objects of the requested branch', async () => {
    const scene = await createScene({
      commits: [...commits(3), { id: 'side', parents: ['c0'], at: start + 50, files: [['side.txt', 'side']] }],
      branches: { main: 'c2', side: 'side' },
    });
    const mirror = scene.mirror();
    expect((await open(mirror, scene.request)).files).toEqual({ 'c0.txt': 'c 0\n', 'c1.txt': 'c 1\n', 'c2.txt': 'c 2\n' });
    // Three commits, each with a tree and a file.
    expect(scene.asked()).toEqual(['refs', 'ls-refs', 'refs', 'ls-refs', 'fetch 9']);
    await open(mirror, scene.request);
    expect(scene.asked()).toEqual(['refs', 'ls-refs']);
    await scene.publish(commits(4));
    expect((await open(mirror, scene.request)).files).toHaveProperty(['c3.txt']);
    expect(scene.asked()).toEqual(['refs', 'ls-refs', 'refs', 'ls-refs', 'fetch 3']);
  });

  test('asks only for the refs that it needs', async () => {
    const scene = await createScene({ commits: commits(2), branches: { main: 'c1', other: 'c0' } });
    const mirror = scene.mirror();
    await open(mirror, scene.request);
    await open(mirror, { ...scene.request, branch: 'other' });
    const bodies = scene.host.requests.filter(({ command }) => command === 'ls-refs').map(({ body }) => body);
    expect(bodies).toHaveLength(4);
    for (const body of bodies) expect(body).toContain('ref-prefix ');
    expect(bodies.slice(0, 2).join('')).not.toContain('other');
  });

  test('is not needed again after the mirror was closed and opened', async () => {
    const scene = await createScene();
    const first = scene.mirror();
    await open(first, scene.request);
    await first.close();
    scene.asked();
    await open(scene.mirror(), scene.request);
    expect(scene.asked()).toEqual(['refs', 'ls-refs']);
  });

  test('is shared by all checkouts at the same time', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    // The host answers no fetch before all checkouts have asked for the branch.
    const all = Promise.withResolvers<void>();
    let asking = 0;
    scene.host.interceptor = async ({ command }) => {
      if (command === 'fetch') await all.promise;
      if (command === 'ls-refs' && ++asking === 6) all.resolve();
      return false;
    };
    const trees = await Promise.all(Array.from({ length: 5 }, () => open(mirror, scene.request)));
    for (const { files } of trees) expect(Object.keys(files)).toHaveLength(3);
    expect(scene.asked().filter((command) => command.startsWith('fetch'))).toHaveLength(1);
  });

  test('continues for the other callers if the first one aborts', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const [fetching, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let asking = 0;
    scene.host.interceptor = async ({ command }) => {
      if (command === 'ls-refs' && ++asking === 3) fetching.resolve();
      if (command === 'fetch') await goOn.promise;
      return false;
    };
    const leaving = new AbortController();
    const left = mirror.checkOut(scene.request, noProgress, leaving.signal);
    const stays = open(mirror, scene.request);
    await fetching.promise;
    leaving.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    goOn.resolve();
    expect(Object.keys((await stays).files)).toHaveLength(3);
  });

  test('reports its progress', async () => {
    const scene = await createScene();
    const told: Reason[] = [];
    const { archive } = await scene.mirror().checkOut(scene.request, (reason) => void told.push(reason), neverAborts);
    await archive.cancel();
    expect(told[0]).toEqual({ code: 'fetching_repository', phase: null, percent: null });
    expect(told).toContainEqual({ code: 'fetching_repository', phase: 'receiving', percent: 100 });
  });

  test('gets the commit of a detached HEAD', async () => {
    const scene = await createScene();
    const head = (await open(scene.mirror(), scene.request)).commit ?? '';
    await writeFile(`${scene.served}/acme/shop.git/HEAD`, `${head}\n`);
    const tree = await open(scene.mirror(), scene.request);
    expect([tree.branch, tree.commit]).toEqual([null, head]);
    expect(await tree.git('status', '--porcelain', '--branch')).toBe('## HEAD (no branch)');
  });
});
