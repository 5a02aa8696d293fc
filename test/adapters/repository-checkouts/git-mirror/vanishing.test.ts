import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { git } from '../../../contracts/git-repository.ts';
import { commits, createScene, failureOf, open, noProgress, type Scene } from './support.ts';

/** A scene in which `happens` runs after the host has listed its refs and before git fetches. */
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

describe('A checkout whose source is removed before git fetches it', () => {
  test('fails with `branch_not_found` if the branch is removed', async () => {
    const scene = await meanwhile((_, gitDir) => git(gitDir, ['update-ref', '-d', 'refs/heads/topic']));
    const failure = await failureOf(scene.mirror().checkOut(scene.requestOf('acme/shop', topic), noProgress, neverAborts));
    expect(failure).toMatch(/^branch_not_found: .*"repository":"acme\/shop","branch":"topic"/u);
  });

  test('fails with `repository_empty` if all commits are removed', async () => {
    const scene = await meanwhile((own) => own.publish([]));
    const failure = await failureOf(scene.mirror().checkOut(scene.requestOf('acme/shop', topic), noProgress, neverAborts));
    expect(failure).toMatch(/^repository_empty: .*"repository":"acme\/shop","branch":"topic"/u);
  });

  test('returns an empty work tree if all commits are removed and no branch was named', async () => {
    const scene = await meanwhile((own) => own.publish([]));
    expect(await open(scene.mirror(), scene.request)).toMatchObject({ branch: null, commit: null, files: {} });
  });

  test('fails with `repository_not_found` if the repository is removed', async () => {
    const scene = await meanwhile((_, gitDir) => rm(gitDir, { recursive: true }));
    const failure = await failureOf(scene.mirror().checkOut(scene.requestOf('acme/shop', topic), noProgress, neverAborts));
    expect(failure).toMatch(/^repository_not_found: .*"repository":"acme\/shop"/u);
  });
});
