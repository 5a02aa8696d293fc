import { execFileSync, spawnSync } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { reasonOf, receive, take } from './snapshot-support.ts';
import { authorization, createScene, never, open, token } from './support.ts';

describe('a push', () => {
  const change = { author: { name: 'Ann', email: 'ann@example.com' }, message: 'Work\n', at: 0 };

  test('is refused by a rule of the host, or with a credential that may only read, and shows nothing of it', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const tree = await open(mirror, scene.request);
    await writeFile(join(tree.folder, 'new'), 'new\n');
    await using snapshot = await take(mirror, tree);
    const commit = await snapshot.commit(change, never);
    const request = { ...scene.request, branch: 'skep/one' };
    const push = (): Promise<void> => snapshot.push({ request, commit, expected: null }, never);
    const hook = join(scene.served, 'acme/shop.git/hooks/pre-receive');
    await writeFile(hook, '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    expect(await reasonOf(push())).toEqual({ code: 'branch_protected' });
    await rm(hook);
    scene.host.mischief = (asked, response) => {
      if (!asked.path.endsWith('/git-receive-pack')) return false;
      response.writeHead(403).end(`${asked.authorization} may not`);
      return true;
    };
    const error = await push().then(() => null, (error: unknown) => error);
    expect(error).toMatchObject({ reason: { code: 'push_forbidden' } });
    expect(inspect(error, { depth: 10 })).not.toContain(token);
    scene.host.mischief = null;
    await push();
    expect((await mirror.findBranch(request, never)).commit).toBe(commit);
    // Neither the work tree nor the folder of this host ever had the credential.
    for (const folder of [tree.folder, scene.root]) expect(spawnSync('grep', ['-rqF', token, folder]).status).toBe(1);
    expect(spawnSync('grep', ['-rqF', authorization.split(' ')[1] ?? '', scene.root]).status).toBe(1);
  });

  test('is refused with commits whose objects are not all there', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const tree = await open(mirror, scene.request);
    const git = (args: readonly string[], input?: string): string => execFileSync('git', ['-C', tree.folder, ...args], { input, encoding: 'utf8' }).trim();
    const missing = git(['mktree', '--missing'], `100644 blob ${'1'.repeat(40)}\tmissing\n`);
    const head = git(['-c', 'user.name=A', '-c', 'user.email=a@example.com', 'commit-tree', missing, '-p', tree.commit ?? '', '-m', 'missing']);
    const input = [head, missing, tree.commit, git(['rev-parse', 'HEAD^{tree}'])].join('\n');
    const pack = execFileSync('git', ['-C', tree.folder, 'pack-objects', '-q', '--stdout'], { input });
    await using snapshot = await receive(mirror, tree.commit, [`snapshot ${head} ${missing} 1 ${tree.commit}\n`, new Uint8Array(pack)]);
    const request = { ...scene.request, branch: 'skep/one' };
    const before = scene.host.requests.length;
    expect(await reasonOf(snapshot.push({ request, commit: await snapshot.commit(change, never), expected: null }, never))).toEqual({ code: 'damaged' });
    expect(scene.host.requests).toHaveLength(before);
  });
});
