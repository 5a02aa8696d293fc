import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { git } from '../../../contracts/git-repository.ts';
import { commits, createScene, failureOf, never, open, noProgress, type Scene } from './support.ts';

/** A scene where this happens once a host has said where its branch is, before git fetches it. */
async function meanwhile(happens: (scene: Scene, gitDir: string) => Promise<unknown>): Promise<Scene> {
  const scene = await createScene({ commits: commits(2), branches: { topic: 'c0' } });
  let asked = 0;
  scene.host.interceptor = async () => {
    asked += 1;
    if (asked === 3) await happens(scene, join(scene.served, 'acme/shop.git'));
    return false;
  };
  return scene;
}

const topic = { branch: 'topic' };

describe('what goes away between being asked for and being fetched', () => {
  test('a branch: there is none', async () => {
    const scene = await meanwhile((_, gitDir) => git(gitDir, ['update-ref', '-d', 'refs/heads/topic']));
    const failure = await failureOf(scene.mirror().checkOut(scene.requestOf('acme/shop', topic), noProgress, never));
    expect(failure).toMatch(/^branch_not_found: .*"repository":"acme\/shop","branch":"topic"/u);
  });

  test('every commit: the repository is empty', async () => {
    const scene = await meanwhile((own) => own.publish([]));
    const failure = await failureOf(scene.mirror().checkOut(scene.requestOf('acme/shop', topic), noProgress, never));
    expect(failure).toMatch(/^repository_empty: .*"repository":"acme\/shop","branch":"topic"/u);
  });

  test('every commit, where no branch was asked for: the work tree is empty', async () => {
    const scene = await meanwhile((own) => own.publish([]));
    expect(await open(scene.mirror(), scene.request)).toMatchObject({ branch: null, commit: null, files: {} });
  });

  test('the repository: there is none', async () => {
    const scene = await meanwhile((_, gitDir) => rm(gitDir, { recursive: true }));
    const failure = await failureOf(scene.mirror().checkOut(scene.requestOf('acme/shop', topic), noProgress, never));
    expect(failure).toMatch(/^repository_not_found: .*"repository":"acme\/shop"/u);
  });
});
