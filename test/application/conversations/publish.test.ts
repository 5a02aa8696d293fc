import { expect, test } from 'vitest';
import type { RepositoryCheckouts } from '../../../src/ports/repository-checkouts.ts';
import { createReady, failureOf } from './support.ts';

const never = new AbortController().signal;

/** A conversation whose work the test changes. `host` has the branch, and all commits that were pushed. */
async function createWorking() {
  const work = { commit: 'first' };
  const host = { branch: null as string | null, pushed: [] as string[] };
  const takeSnapshot: RepositoryCheckouts['takeSnapshot'] = async () => ({
    tree: '', head: null, complete: true,
    commits: async () => [], files: async () => [], patch: () => new Blob().stream(),
    commit: async () => work.commit,
    push: async ({ commit }) => {
      host.branch = commit;
      host.pushed.push(commit);
    },
    [Symbol.asyncDispose]: async () => {},
  });
  const findBranch: RepositoryCheckouts['findBranch'] = async () => ({ commit: host.branch, isDefault: false });
  const w = await createReady({ checkouts: { takeSnapshot, findBranch } }, { selectedRepository: 'acme/shop' });
  const request = { branch: 'topic', commitMessage: null, userId: 'me', pullRequest: null };
  return { work, host, publish: () => w.conversations.publish('me', w.id, request, never) };
}

const moved = { code: 'conversation_publish_refused', context: { branch: 'topic', reason: { code: 'branch_moved' } } };

test('a branch is moved to later work, but not if somebody else has moved it meanwhile', async () => {
  const { work, host, publish } = await createWorking();
  expect(await publish()).toMatchObject({ branch: 'topic', commit: 'first' });
  work.commit = 'second';
  await publish();
  await publish();
  expect(host.pushed).toEqual(['first', 'second']);
  host.branch = 'first';
  work.commit = 'third';
  expect(await failureOf(publish())).toMatchObject(moved);
  expect(host).toEqual({ branch: 'first', pushed: ['first', 'second'] });
});

test('a branch of somebody else is not moved, even after the work was at the same commit', async () => {
  const { work, host, publish } = await createWorking();
  host.branch = 'of another';
  work.commit = 'of another';
  expect(await publish()).toMatchObject({ branch: 'topic', commit: 'of another' });
  work.commit = 'rewritten';
  expect(await failureOf(publish())).toMatchObject(moved);
  expect(host).toEqual({ branch: 'of another', pushed: [] });
});
