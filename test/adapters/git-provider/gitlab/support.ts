import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { createGitLabProvider, type GitLabOptions } from '../../../../src/adapters/git-provider/gitlab/index.ts';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import type { GitProvider } from '../../../../src/ports/git-provider.ts';
import { createRepository, type CommitDescription, type RepositoryDescription } from '../../../contracts/git-repository.ts';
import { startGitLab, type GitLabDouble, type GitLabDoubleOptions } from '../../../doubles/gitlab/index.ts';
import { agents, start } from '../support.ts';

export const token = 'glpat-double';

export interface Host extends GitLabDouble {
  /** Creates the repository and serves it. Replaces an earlier one of the same name. */
  publish(description: RepositoryDescription | readonly CommitDescription[], name?: string): Promise<void>;
  /** Returns the number of requests for each route since the last call. */
  counts(): Record<string, number>;
}

/** Starts a double that is closed after the test. The test fails if the double got a request that GitLab does not know. */
export async function hostOf(options: GitLabDoubleOptions = {}): Promise<Host> {
  const root = await mkdtemp(join(tmpdir(), 'skep-gitlab-'));
  const double = await startGitLab(options);
  let made = 0;
  let counted = 0;
  onTestFinished(async () => {
    await double.close();
    await rm(root, { recursive: true, force: true });
    expect(double.unexpected).toEqual([]);
  });
  return Object.assign(double, {
    async publish(description: RepositoryDescription | readonly CommitDescription[], name = 'acme/shop') {
      made += 1;
      const gitDir = join(root, `${made}.git`);
      await createRepository(gitDir, 'commits' in description ? description : { commits: description });
      double.projects.put(name, gitDir);
    },
    counts() {
      const counts: Record<string, number> = {};
      for (const { route } of double.requests.slice(counted)) counts[route] = (counts[route] ?? 0) + 1;
      counted = double.requests.length;
      return counts;
    },
  });
}

/** Creates a provider that uses the double. It is closed after the test. */
export function providerOf(host: GitLabDouble, options: Partial<GitLabOptions> = {}): GitProvider {
  const provider = createGitLabProvider({ url: host.url, token, clock: createSystemClock(), ...options });
  onTestFinished(() => provider.close());
  return provider;
}

/** Describes `count` files, each added by a commit of its own. */
export function manyFiles(count: number): CommitDescription[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `c${index}`,
    at: start + index,
    files: [[`${agents}/${String(index).padStart(4, '0')}.md`, 'x'] as const],
  }));
}
