import { expect, test } from 'vitest';
import type { PublishRequest } from '../../../src/application/conversations/publish-changes.ts';
import type { Caller } from '../../../src/domain/principal.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import { SnapshotRefusal, type WorkTreeSnapshot } from '../../../src/ports/work-tree-snapshot.ts';
import { createMemoryGitProvider } from '../../doubles/memory/index.ts';
import { createReady, failureOf } from './support.ts';

const listChanges = async () => ({ head: null, commits: [], files: [], complete: true });
const openPullRequest = async () => ({ number: 1, url: 'https://memory.invalid/1' });

/** A conversation, and a host with the branches that it pushes. */
async function createPublishing() {
  const branches = new Map<string, string>();
  const host = { branches, refuses: false, authors: [] as string[] };
  const pushedTo: string[] = [];
  const workTree = { isChanged: true };
  const snapshot: WorkTreeSnapshot = {
    tree: 'tree', head: 'c0ffee', complete: true,
    commits: async () => [],
    files: async () => [],
    patch: () => new Blob().stream(),
    commit: async ({ message, author }) => {
      host.authors.push(author.name);
      return workTree.isChanged ? (message.split('\n')[0] ?? '') : 'c0ffee';
    },
    push: async ({ request: { branch, remote }, commit, expected }) => {
      pushedTo.push(remote.url);
      if (host.refuses) throw new SnapshotRefusal({ code: 'push_forbidden', message: '' });
      if ((branches.get(branch) ?? null) !== expected) throw new SnapshotRefusal({ code: 'branch_moved' });
      branches.set(branch, commit);
    },
    [Symbol.asyncDispose]: async () => {},
  };
  const findBranch = async ({ branch }: { branch: string }) => ({ commit: branches.get(branch) ?? null, isDefault: false });
  const repository = { path: 'acme/shop', isArchived: false };
  const find = async () => ({ ...repository, defaultBranch: 'main' });
  const provider = { ...createMemoryGitProvider(), find, openPullRequest };
  const checkouts = { takeSnapshot: async () => snapshot, findBranch, listChanges };
  const w = await createReady({ providers: [provider], checkouts }, { selectedRepository: 'acme/shop', title: 'Work' });
  const publishTo = (branch: string, request: Partial<PublishRequest> = {}, caller: Caller = 'me') => (
    w.conversations.publish(caller, w.id, { branch, commitMessage: null, patterns: null, pullRequest: null, ...request }, neverAborts)
  );
  const publish = (commitMessage: string | null = null, patterns: readonly string[] | null = null, caller: Caller = 'me') => (
    publishTo('topic', { commitMessage, patterns }, caller)
  );
  return { ...w, repository, host, pushedTo, workTree, publish, publishTo };
}

test.each([[[null, 'other']], [['other', null]]])('publications at the same time leave a branch that can be published again: %j', async (messages) => {
  const { publish, host, record } = await createPublishing();
  await publish();
  await Promise.all(messages.map((message) => publish(message)));
  expect((await record()).publications).toEqual(Object.fromEntries(host.branches));
  await publish('next');
  expect(host.branches.get('topic')).toBe('next');
});

test('an administrator publishes the conversation of another user, as the author of the commit', async () => {
  const { publish, host } = await createPublishing();
  await publish('by root', null, { userId: 'root', access: 'admin' });
  expect([host.branches.get('topic'), host.authors]).toEqual(['by root', ['root']]);
  expect(await failureOf(publish('by ben', null, 'ben'))).toMatchObject({ code: 'conversation_not_found' });
});

test('the branch can be published again after many refused pushes', async () => {
  const { publish, host } = await createPublishing();
  await publish();
  host.refuses = true;
  for (let attempt = 0; attempt < 30; attempt += 1) {
    expect(await failureOf(publish(`attempt ${attempt}`))).toMatchObject({ context: { reason: { code: 'push_forbidden' } } });
  }
  host.refuses = false;
  await publish('next');
  expect(host.branches.get('topic')).toBe('next');
});

const moved = { code: 'conversation_publish_refused', context: { branch: 'topic', reason: { code: 'branch_moved' } } };

test('a branch is moved to later work, but not if somebody else has moved it meanwhile', async () => {
  const { publish, host: { branches } } = await createPublishing();
  for (const message of ['first', 'second', 'second']) {
    expect(await publish(message)).toMatchObject({ branch: 'topic', commit: message });
    expect(branches.get('topic')).toBe(message);
  }
  branches.set('topic', 'of another');
  expect(await failureOf(publish('third'))).toMatchObject(moved);
  expect(branches.get('topic')).toBe('of another');
});

test('a branch of somebody else is not moved, even after the work was at the same commit', async () => {
  const { publish, host: { branches } } = await createPublishing();
  branches.set('topic', 'of another');
  expect(await publish('of another')).toMatchObject({ branch: 'topic', commit: 'of another' });
  expect(await failureOf(publish('rewritten'))).toMatchObject(moved);
  expect(branches.get('topic')).toBe('of another');
});

test.each([null, '', ' \n\t'])('a commit has a subject if its message and the title are %j', async (blank) => {
  const { publish, host, conversations, id } = await createPublishing();
  await conversations.update('me', id, { title: blank });
  await publish(blank);
  expect(host.branches.get('topic')).toBe(`Changes of ${id}`);
});

test('a branch moves back to the start if all changes were reverted', async () => {
  const { publish, host, workTree, record } = await createPublishing();
  workTree.isChanged = false;
  const refused = { code: 'conversation_publish_refused', context: { reason: { code: 'nothing_to_publish' } } };
  expect(await failureOf(publish())).toMatchObject(refused);
  workTree.isChanged = true;
  await publish();
  workTree.isChanged = false;
  for (let repeat = 0; repeat < 2; repeat += 1) expect(await publish()).toMatchObject({ commit: 'c0ffee' });
  expect([...host.branches]).toEqual([['topic', 'c0ffee']]);
  expect((await record()).publications).toEqual({ topic: 'c0ffee' });
  host.branches.clear();
  expect(await failureOf(publish())).toMatchObject(refused);
});

test('the changes of an archived repository are not published, and the reason says so', async () => {
  const { publish, repository, host } = await createPublishing();
  repository.isArchived = true;
  expect(await failureOf(publish())).toMatchObject({ code: 'conversation_publish_refused', context: { reason: { code: 'repository_archived' } } });
  expect([...host.branches]).toEqual([]);
});

test('a conversation is published after its repository was renamed, but not to one that the key may not use', async () => {
  const { publish, repository, pushedTo, host } = await createPublishing();
  repository.path = 'acme/store';
  await publish('first', ['acme/*']);
  repository.path = 'others/store';
  expect(await failureOf(publish('second', ['acme/*']))).toMatchObject({ code: 'repository_not_found', context: { repository: 'acme/shop' } });
  expect(host.branches.get('topic')).toBe('first');
  await publish('second');
  expect(pushedTo).toEqual(['acme', 'others'].map((owner) => `https://memory.invalid/${owner}/store.git`));
});

test.each(['constructor', 'toString', '__proto__'])('a branch may be named like a member of every object: %s', async (branch) => {
  const { publishTo, host, conversations, id } = await createPublishing();
  await publishTo(branch);
  expect((await conversations.changes('me', id, neverAborts)).publications).toEqual([{ branch, commit: 'Work', pullRequest: null }]);
  const pullRequest = { title: 'T', body: '', base: null, draft: false };
  const published = await publishTo(branch, { commitMessage: 'next', pullRequest });
  expect(host.branches.get(branch)).toBe('next');
  expect(published.pullRequest).not.toBeNull();
  const { publications } = await conversations.changes('me', id, neverAborts);
  expect(publications).toEqual([{ branch, commit: 'next', pullRequest: published.pullRequest }]);
});
