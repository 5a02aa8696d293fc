import { describe, expect, test } from 'vitest';
import { createGiteaHarness } from '../../examples/gitea-provider/gitea-harness.ts';
import type { GitProviderHarness } from '../contracts/git-provider-harness.ts';
import { createRepository } from '../contracts/git-repository.ts';
import { failureOfCase } from './failure-of-case.ts';

describe('The contract of git providers blames the harness for', () => {
  test.each([
    ['returns before the host has the repository', false, 'find fails with repository_not_found {"repository":"acme/shop"}'],
    ['returns before the host has the branches', true, 'find returns no default branch'],
  ])('a harness whose publish %s, in every case', async (_, isEmptyThere, result) => {
    const message = `publish resolves when the provider can see the branches of acme/shop, but then ${result}`;
    for (const name of ['dates a file by the committer date', 'gives git an Authorization that the host accepts']) {
      expect(await failureOfCase(name, () => createLateHarness(isEmptyThere))).toMatchObject({ message });
    }
  });

  test('a push that fails during a listing, and fails with its error', async () => {
    const refused = new Error('the host refuses the push');
    const failure = await failureOfCase('lists the files of one commit', () => createHarnessWithPushes(2, refused));
    expect(failure).toBe(refused);
  });

  test('nothing if the provider has several requests at once, because the suite pushes once', async () => {
    expect(await failureOfCase('lists the files of one commit', () => createHarnessWithPushes(3, new Error('a second push')))).toBeNull();
  });

  test("a harness that can't be closed, even if its case fails", async () => {
    const cannotClose = "the harness can't be closed: two requests were not expected";
    const name = 'gives git an Authorization that the host accepts';
    expect(await failureOfCase(name, createUnclosableHarness)).toMatchObject({ message: cannotClose });
    const failure = await failureOfCase(name, async () => ({ ...(await createUnclosableHarness()), acceptsGit: async () => false }));
    expect(failure).toMatchObject({ message: `the host refuses git with this Authorization; and ${cannotClose}` });
  });
});

/** The host refuses push `refused`, and later ones, to one repository. The provider asks for the dates of two files at once. */
async function createHarnessWithPushes(refused: number, error: Error): Promise<GitProviderHarness> {
  const harness = await createGiteaHarness();
  const pushes = new Map<string, number>();
  return {
    ...harness,
    async publish(gitDir, name) {
      const count = (pushes.get(name) ?? 0) + 1;
      pushes.set(name, count);
      if (count >= refused) throw error;
      return await harness.publish(gitDir, name);
    },
  };
}

/** The host has the repository, without branches, or does not have it when `publish` returns. */
async function createLateHarness(isEmptyThere: boolean): Promise<GitProviderHarness> {
  const harness = await createGiteaHarness();
  return {
    ...harness,
    async publish(gitDir, name) {
      if (!isEmptyThere) return name;
      const empty = `${gitDir}-empty`;
      await createRepository(empty, { commits: [] });
      return await harness.publish(empty, name);
    },
  };
}

async function createUnclosableHarness(): Promise<GitProviderHarness> {
  const harness = await createGiteaHarness();
  return {
    ...harness,
    async close() {
      await harness.close();
      throw new Error('two requests were not expected');
    },
  };
}
